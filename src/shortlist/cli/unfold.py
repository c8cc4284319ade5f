"""Options of commands, each declared once, and shared by commands in groups.

A command takes a group, a dataclass of options, as one parameter; :func:`unfold` shows its fields
to typer.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo

Command = Callable[..., None]

# What a field keeps: typer's declaration, and how the option is written in messages.
_DECLARATION, _FLAG = "declaration", "flag"


def option(
    usage: str, text: str, default: Any = None, *, panel: str | None = None, **limits: Any
) -> Any:
    """Declare an option: ``cost: float = option("-C --cost NUMBER", "Weight of ...", 1.0)``.

    ``usage`` holds the flags and what stands for the value, ``text`` is the help, and ``panel`` the
    heading that it is shown under, if it is not that of its group. A default of ``...`` makes the
    option required. ``limits`` are typer's, such as ``min``.
    """
    words = usage.split()
    flags = [word for word in words if word.startswith("-")]
    placeholder = " ".join(words[len(flags) :]) or None
    info = typer.Option(*flags, metavar=placeholder, help=text, rich_help_panel=panel, **limits)
    flag = flags[-1].partition("/")[0]
    return field(default=default, metadata={_DECLARATION: info, _FLAG: flag})


def argument(placeholder: str, text: str, default: Any = None) -> Any:
    """Declare an argument: an option without a flag."""
    info = typer.Argument(metavar=placeholder, help=text)
    return field(default=default, metadata={_DECLARATION: info})


def changed(group: Any) -> Iterator[tuple[Field[Any], str]]:
    """The options of a group that are not at their default, and how each is written."""
    for member in fields(group):
        if getattr(group, member.name) != member.default:
            yield member, member.metadata[_FLAG]


def headed(panel: str) -> Callable[[Command], Command]:
    """Let help show a command's own options under this heading, unless they have another."""

    def with_heading(command: Command) -> Command:
        command.panel = panel  # type: ignore[attr-defined]
        return command

    return with_heading


def unfold(command: Command) -> Command:
    """Return the command as typer wants it, with the fields of groups in place of the groups.

    Help shows the options of a group under the heading that the group calls ``panel``.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            hints = get_type_hints(kind, include_extras=True)
            members = [_declared(kind, f.name, hints[f.name], f) for f in fields(kind)]
            groups[parameter.name] = (kind, [member.name for member in members])
            parameters += members
        elif isinstance(parameter.default, Field):
            parameters.append(_declared(command, parameter.name, kind, parameter.default))
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def unfolded(**values: Any) -> None:
        for name, (kind, members) in groups.items():
            values[name] = kind(**{member: values.pop(member) for member in members})
        command(**values)

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {p.name: p.annotation for p in parameters}
    del unfolded.__wrapped__
    return unfolded


def _declared(owner: Any, name: str, kind: Any, declared: Field[Any]) -> inspect.Parameter:
    """The parameter that typer reads an option from: its type, its declaration, its default.

    Without a heading of its own an option is under its owner's, a group's or a command's.
    """
    info = declared.metadata[_DECLARATION]
    if isinstance(info, OptionInfo) and info.rich_help_panel is None:
        info.rich_help_panel = getattr(owner, "panel", None)
    default = inspect.Parameter.empty if declared.default is ... else declared.default
    kind = Annotated[kind, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
