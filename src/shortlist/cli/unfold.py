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

_DECLARATION = "declaration"


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
    return field(default=default, metadata={_DECLARATION: info})


def argument(placeholder: str, text: str, default: Any = None) -> Any:
    """Declare an argument: an option without a flag."""
    info = typer.Argument(metavar=placeholder, help=text)
    return field(default=default, metadata={_DECLARATION: info})


def unfold(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer wants it, with the fields of groups in place of the groups.

    Help shows the options of a group under the heading that the group calls ``panel``.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            members = list(_members(kind))
            groups[parameter.name] = (kind, [member.name for member in members])
            parameters += members
        elif isinstance(parameter.default, Field):
            parameters.append(_declared(parameter.name, kind, parameter.default))
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


def _members(group: type) -> Iterator[inspect.Parameter]:
    """The options of a group, under its heading unless they have one of their own."""
    hints = get_type_hints(group, include_extras=True)
    for member in fields(group):
        parameter = _declared(member.name, hints[member.name], member)
        info = parameter.annotation.__metadata__[0]
        info.rich_help_panel = info.rich_help_panel or vars(group)["panel"]
        yield parameter


def _declared(name: str, kind: Any, declared: Field[Any]) -> inspect.Parameter:
    """The parameter that typer reads an option from: its type, its declaration, its default."""
    if _DECLARATION in declared.metadata:
        kind = Annotated[kind, declared.metadata[_DECLARATION]]
    default = inspect.Parameter.empty if declared.default is ... else declared.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
