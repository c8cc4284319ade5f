"""The commands and their help; everything heavy is imported by a command when it runs."""

import inspect
from typing import Annotated

import typer

from shortlist.cli.bench import bench
from shortlist.cli.cv import cv
from shortlist.cli.declare import MAX_WIDTH, HelpfulCommand, HelpfulGroup, flowing, unfold
from shortlist.cli.evaluate import evaluate
from shortlist.cli.export import export
from shortlist.cli.features import features
from shortlist.cli.info import info
from shortlist.cli.output import REFUSED
from shortlist.cli.predict import predict
from shortlist.cli.reproduce import reproduce
from shortlist.cli.train import train
from shortlist.cli.warm import warm

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=HelpfulGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MAX_WIDTH},
    epilog="Exit codes: 0 done (a warning tells if training has not converged), 1 out of memory or "
    "disk, or a package is missing, 2 wrong usage or bad data, 130 interrupted (by SIGTERM 143, by "
    "SIGHUP 129). Errors are one line on standard error; with SHORTLIST_DEBUG=1 in the environment "
    "they come with a traceback.",
)

_PANELS = {
    "Models": (train, cv, predict, evaluate, info, export, features),
    "Studies": (reproduce, bench),
    "This machine": (warm,),
}
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        _text = flowing(inspect.getdoc(_command) or "")
        _declare = app.command(help=_text, rich_help_panel=_panel, cls=HelpfulCommand)
        _declare(unfold(_command))


def _show_version(wanted: bool) -> None:
    if wanted:
        from shortlist import __version__

        typer.echo(f"shortlist {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def shortlist(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Classifiers whose shortlist of k labels contains the right one.

    Train with a top-k loss, predict shortlists, measure top-k accuracy.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(REFUSED)
