"""``shortlist reproduce``: the paper's tables and figures."""

import ast
from typing import Any

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import print_json, print_line, print_table, report


def reproduce(
    *,
    name: str | None = None,
    dataset: str | None = None,
    features: str | None = None,
    data: list[str] | None = None,
    test_data: str | None = None,
    download: bool = False,
    quick: bool = False,
    jobs: int | None = None,
    seed: int = 0,
    settings: list[str] | None = None,
    folder: str | None = None,
    output: OutputOptions,
) -> None:
    """Compute the paper's tables and figures, and set its numbers beside ours.

    Writes tables (CSV, JSON), figures and one HTML page into a folder. What is finished is kept
    there: after Ctrl-C, or a crash, the same command goes on where it stopped.

    Examples:
      shortlist reproduce letter
      shortlist reproduce caltech101 --data caltech101_silhouettes_28_split1.mat
      shortlist reproduce features flowers vgg16
      shortlist reproduce all --quick --output check
    """
    if name is None:
        _list_experiments(output)
        return
    from shortlist.experiments import MissingData, UnknownOption, run

    if dataset is not None and name != "features":
        raise ValueError(f"{name} takes no DATASET: only features does")
    files = [*(data or []), *([] if features is None else [features])]
    options = _settings(settings) | ({} if dataset is None else {"dataset": dataset})
    try:
        outcome = run(
            name,
            f"results/{dataset or name}" if folder is None else folder,
            data=_data_files(files, name),
            test_data=test_data,
            download=download,
            jobs=jobs,
            seed=seed,
            quick=quick,
            console=None if output.as_json or output.quiet else _console(),
            progress=None if output.quiet else _console(stderr=True),
            **options,
        )
    except MissingData as error:
        raise ValueError(f"{error} (--data FILE, --test-data FILE, --download)") from error
    except UnknownOption as error:
        raise ValueError(f"--set: {error}") from error

    facts = {"page": outcome.page, "files": outcome.files}
    report(output, "reproduce", facts, [f"The report: {outcome.page}"])


def _console(stderr: bool = False) -> Any:
    import os

    from rich.console import Console

    console = Console(stderr=stderr)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    # A file or a pipe has no width: wide enough for the tables, and still good to read.
    return Console(stderr=stderr, width=100)


def _list_experiments(output: OutputOptions) -> None:
    from shortlist.experiments import EXPERIMENTS

    if output.as_json:
        shown = {e.name: {"shows": e.shows, "summary": e.summary} for e in EXPERIMENTS.values()}
        print_json("reproduce", {"experiments": shown})
        return
    rows = []
    for experiment in EXPERIMENTS.values():
        # features has no data set of its own: its summary says how to give one.
        need = " Needs --data." if experiment.needs_data and experiment.dataset else ""
        rows.append([experiment.name, experiment.shows, experiment.summary + need])
    print_table("", ["name", "in the paper", "what"], rows, text_columns=(0, 1, 2))
    print_line("shortlist reproduce NAME computes one, shortlist reproduce all every one.")


def _data_files(given: list[str], name: str) -> Any:
    """The ``data`` of run(): a file, or with "all" a file for each experiment."""
    if not given:
        return None
    if name == "all":
        for entry in given:
            if "=" not in entry:
                raise ValueError(f"--data: with all it is NAME=FILE; got {entry!r}")
        return dict(entry.split("=", 1) for entry in given)
    if len(given) > 1:
        raise ValueError("--data: an experiment takes one file; only with all may it be repeated")
    return given[0]


def _settings(given: list[str] | None) -> dict[str, Any]:
    options = {}
    for entry in given or []:
        key, equals, text = entry.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"--set must be NAME=VALUE; got {entry!r}")
        try:
            options[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[key] = text
    return options
