"""Help as plain text, with the options in groups.

typer would draw boxes with Rich, which takes twice as long to import as all the rest of the help,
and reads :100: in a text as the name of an emoji.
"""

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The widest help text; beyond it lines are hard to read.
MAX_WIDTH = 100

_ARGUMENTS, _OTHERS = "Arguments", "Options"


class HelpfulCommand(TyperCommand):
    """A command whose help shows its options under the headings of their groups."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Some versions of typer put what is required into braces.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_groups(formatter, _parameters(self, ctx))


class HelpfulGroup(TyperGroup):
    """The command that the others belong to; its help shows those under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        commands = [self.commands[name] for name in self.list_commands(ctx)]
        shown = [(_heading(c), str(c.name), _first_paragraph(c)) for c in commands]
        _write_groups(formatter, [*shown, *_parameters(self, ctx)])


def flowing(docstring: str) -> str:
    """Paragraphs as single lines, to be broken at the terminal's width; examples as they are."""
    # A line with \b alone tells the formatter to keep the lines of the paragraph after it.
    paragraphs = docstring.split("\n\n")
    return "\n\n".join(f"\b\n{p}" if "\n  " in p else " ".join(p.split()) for p in paragraphs)


def _parameters(command: Any, ctx: Any) -> Iterable[tuple[str, str, str]]:
    """Heading, name and help of every argument and option."""
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        is_argument = parameter.param_type_name == "argument"
        name = parameter.metavar if is_argument and parameter.metavar else record[0]
        yield _heading(parameter, _ARGUMENTS if is_argument else _OTHERS), name, record[1]


def _heading(thing: Any, usual: str = _OTHERS) -> str:
    return getattr(thing, "rich_help_panel", None) or usual


def _first_paragraph(command: Any) -> str:
    return (command.help or "").split("\n\n")[0]


def _write_groups(formatter: Any, entries: Iterable[tuple[str, str, str]]) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for heading, name, text in entries:
        groups.setdefault(heading, []).append((name, text))
    # What belongs to no group, such as --help, comes last.
    for heading in sorted(groups, key=lambda heading: heading == _OTHERS):
        with formatter.section(heading):
            formatter.write_dl(groups[heading])
