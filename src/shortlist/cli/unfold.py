"""Commands as typer wants them: with options instead of groups of options, and with help.

A command is a function. Its parameters are options and groups of options: dataclasses, which
several commands share. How an option is written, and what help says of it, is in ``options.ini``.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from configparser import ConfigParser, SectionProxy
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer

from shortlist.losses.entries import ENTRIES

Command = Callable[..., None]

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
    """Return the command as typer wants it, with the fields of groups in place of the groups."""
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
        for name, (kind, members) in groups.items():
            values[name] = kind(**{member: values.pop(member) for member in members})
        command(**values)

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {p.name: p.annotation for p in parameters}
    del unfolded.__wrapped__
    return unfolded


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
