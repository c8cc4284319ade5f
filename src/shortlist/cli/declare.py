"""Commands as typer wants them: with options instead of groups of options, and with help.

A command is a function. Its parameters are options and groups of options: dataclasses, which
several commands share. How an option is written, and what help says of it, is in ``options.ini``.

Help is plain text, with the options in groups. typer would draw boxes with Rich, which takes twice
as long to import as all the rest of the help, and reads :100: in a text as the name of an emoji.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from configparser import ConfigParser, SectionProxy
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from shortlist.cli.start import fit_into_address_space
from shortlist.losses.entries import ENTRIES

Command = Callable[..., None]

#: The widest help text; beyond it lines are hard to read.
MAX_WIDTH = 100

_ARGUMENTS, _OTHERS = "Arguments", "Options"
# As in "-o --output MODEL [Output]": flags, what stands for the value, and a heading.
_USAGE = re.compile(r"(?P<flags>(?:-\S+ ?)*)(?P<placeholder>.*?)(?: ?\[(?P<heading>[^:\]]+)\])?")


class Words(NamedTuple):
    """How an option is written, its heading, and what help says. An argument has no flags."""

    flags: list[str]
    placeholder: str | None
    heading: str | None
    text: str


def words_of(owner: Any, name: str) -> Words:
    """The words for a parameter of a command, or for a field of a group."""
    own, shared = _manual()[owner.__name__], _manual()["shared"]
    return _words(own if name in own else shared, name, own.get("heading"))


def words_of_option(name: str) -> Words | None:
    """The words for an option, by the name of its field or parameter; None if there is none.

    Groups of options come first: commands may have an option of the same name for something else.
    """
    sections = sorted(_manual().sections(), key=lambda section: not section.endswith("Options"))
    found = (_words(_manual()[s], name, None) for s in sections if name in _manual()[s])
    return next((words for words in found if words.flags), None)


def _words(section: SectionProxy, name: str, heading: str | None) -> Words:
    usage, _, text = section[name].partition("\n")
    found = _USAGE.fullmatch(usage)
    assert found is not None, usage
    flags = found["flags"].split()
    own = found["heading"] or (heading if flags else None)
    return Words(flags, found["placeholder"] or None, own, " ".join(text.split()))


@cache
def _manual() -> ConfigParser:
    manual = ConfigParser(delimiters=["="], interpolation=None)
    manual.optionxform = str  # type: ignore[assignment, method-assign]
    losses = "; ".join(f"{entry.name}, {entry.title}" for entry in ENTRIES.values())
    text = Path(__file__).with_name("options.ini").read_text(encoding="utf-8")
    manual.read_string(text.replace("{losses}", losses))
    return manual


def changed(group: Any) -> Iterator[tuple[str, str]]:
    """The fields of a group that are not at their default, and how each option is written."""
    for member in fields(group):
        if getattr(group, member.name) != member.default:
            flag = words_of(type(group), member.name).flags[-1]
            yield member.name, flag.partition("/")[0]


def unfold(command: Command) -> Command:
    """Return the command as typer wants it, with the fields of groups in place of the groups.

    It first checks that the address space has room for the libraries that it loads.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(_declared(command, parameter))
            continue
        hints = get_type_hints(kind, include_extras=True)
        members = inspect.signature(kind).parameters.values()
        groups[parameter.name] = (kind, [member.name for member in members])
        parameters += [_declared(kind, m.replace(annotation=hints[m.name])) for m in members]

    @wraps(command)
    def unfolded(**values: Any) -> None:
        fit_into_address_space()
        values = {name: _plain(value) for name, value in values.items()}
        for name, (kind, members) in groups.items():
            values[name] = kind(**{member: values.pop(member) for member in members})
        command(**values)

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {p.name: p.annotation for p in parameters}
    del unfolded.__wrapped__
    return unfolded


def _plain(value: Any) -> Any:
    """What a parameter is given; a choice, a member of an enumeration for typer, as text."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value


def _declared(owner: Any, parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter with a declaration for typer; an annotation may hold limits, such as min."""
    kind, limits = parameter.annotation, {}
    if get_origin(kind) is Annotated:
        kind, limits = get_args(kind)
    words = words_of(owner, parameter.name)
    shown: dict[str, Any] = {"metavar": words.placeholder, "help": words.text}
    if words.flags:
        shown |= {"rich_help_panel": words.heading, **limits}
    declare: Any = typer.Option if words.flags else typer.Argument
    kind = Annotated[kind, declare(*words.flags, **shown)]
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)


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
        shown = [(_heading(c), str(c.name), (c.help or "").split("\n\n")[0]) for c in commands]
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


def _write_groups(formatter: Any, entries: Iterable[tuple[str, str, str]]) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for heading, name, text in entries:
        groups.setdefault(heading, []).append((name, text))
    # What belongs to no group, such as --help, comes last.
    for heading in sorted(groups, key=lambda heading: heading == _OTHERS):
        with formatter.section(heading):
            formatter.write_dl(groups[heading])
