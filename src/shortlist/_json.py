"""Values as JSON can express them, and back."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def plain(value: Any, *, keep_nan: bool = False) -> Any:
    """Data of JSON's types.

    NumPy's types become Python's, tuples lists, dataclasses mappings, keys and paths text. NaN and
    infinities, which JSON has not, become None; with ``keep_nan`` they stay, for readers that know
    them as Python's does.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry, keep_nan=keep_nan) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, keep_nan=keep_nan) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist(), keep_nan=keep_nan)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value) and not keep_nan:
        return None
    return value


def typed(kind: Any, data: Any) -> Any:
    """The value of a type whose plain form is ``data``: the inverse of :func:`plain`.

    Types are dataclasses, tuples, dictionaries, ``X | None`` and JSON's own. Data that does not
    fit raises KeyError, TypeError or ValueError.
    """
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(
            **{each.name: typed(hints[each.name], data[each.name]) for each in fields(kind)}
        )
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if data is None else typed(inner, data)
    if origin is dict:
        key, value = arguments
        return {typed(key, each): typed(value, entry) for each, entry in data.items()}
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            arguments = (arguments[0],) * len(data)
        return tuple(typed(each, entry) for each, entry in zip(arguments, data, strict=True))
    if kind in (int, float):
        return kind(data)  # in JSON keys are text, and 1.0 may be written as 1
    if not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, got {data!r}")
    return data
