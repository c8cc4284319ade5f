"""Groups of command-line options as dataclasses, each written once and shared by commands.

A command takes a group as one parameter; :func:`unfold` shows its fields to typer as options.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def unfold(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with every dataclass parameter replaced by that class's fields.

    Each field is annotated as typer wants an option to be and has a default. Help shows it under
    the heading that the class calls ``panel``, unless the option has one of its own.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(kind, include_extras=True)
        for option in (hints[field.name].__metadata__[0] for field in fields(kind)):
            option.rich_help_panel = option.rich_help_panel or vars(kind)["panel"]
        groups[parameter.name] = (kind, [field.name for field in fields(kind)])
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )
            for field in fields(kind)
        ]

    @wraps(command)
    def unfolded(**values: Any) -> None:
        for name, (kind, members) in groups.items():
            values[name] = kind(**{member: values.pop(member) for member in members})
        command(**values)

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {p.name: p.annotation for p in parameters}
    del unfolded.__wrapped__
    return unfolded
