"""Names of classes: from a file of names, or from the data file itself, put to the labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataError
from .containers import LabeledData
from .files import as_text, check_readable, open_data, parser_errors
from .labels import plain_labels

Names = Sequence[str] | Mapping[str, str]


def read_class_names(path: str | os.PathLike[str]) -> Names:
    """Read names of classes: text with one name a line, or a JSON object ``{"label": "name"}``.

    Names without labels are in the order of the sorted labels.
    """
    name = check_readable(path)
    with parser_errors("is not UTF-8 text", name), open_data(name) as file, as_text(file) as text:
        content = text.read()
    if content.lstrip().startswith("{"):
        with parser_errors("is not a JSON object of names", name):
            names = json.loads(content)
        for label, value in names.items():
            if not isinstance(value, str):
                raise DataError(f"the name of {label!r} is {value!r}, not text", path=name)
        return dict(names)
    lines = [line.strip() for line in content.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DataError("the name is empty", path=name, line=number)
    if not lines:
        raise DataError("holds no names", path=name)
    return lines


def distinct_labels(parts: Iterable[LabeledData]) -> list[Any]:
    """Return the sorted labels of all parts; of indicators, the labels of their columns."""
    labels: set[Any] = set()
    for part in parts:
        if part.reading is not None and part.reading.classes is not None:
            labels.update(part.reading.classes)
        elif part.y is not None and not sparse.issparse(part.y):
            labels.update(plain_labels(np.unique(part.y)))
    return sorted(labels)


def pair_names(labels: list[Any], names: Names, first: int = 0) -> tuple[tuple[Any, str], ...]:
    """Return (label, name) pairs; ValueError if the names do not tell which label is whose.

    As many names as labels go by the labels' order. More names than labels are for labels that do
    not occur here: then whole numbers count them, from ``first`` or, if the largest says so, 1.
    """
    if isinstance(names, Mapping):
        missing = [label for label in labels if str(label) not in names]
        if missing:
            raise ValueError(f"there is no name for label {missing[0]!r}")
        known = {str(label): label for label in labels}
        return tuple((known.get(label, label), name) for label, name in names.items())
    if len(labels) == len(names):
        return tuple(zip(labels, names, strict=True))
    numbers = [label for label in labels if isinstance(label, int) and not isinstance(label, bool)]
    if len(numbers) == len(labels) and labels and len(names) > len(labels):
        base = 1 if labels[-1] == len(names) else first
        if labels[0] >= base and labels[-1] < base + len(names):
            return tuple((base + i, name) for i, name in enumerate(names))
    raise ValueError(f"there are {len(names)} names for {len(labels)} labels")


def named_labels(
    labels: list[Any], names: str | os.PathLike[str] | Sequence[str] | Mapping[Any, str]
) -> tuple[tuple[Any, str], ...]:
    """Return the pairs of :func:`pair_names`, by a list, a mapping, or a file of either."""
    source = os.fspath(names) if isinstance(names, str | os.PathLike) else None
    listed: Any = names if source is None else read_class_names(source)
    if isinstance(listed, Mapping):
        listed = {str(label): str(name) for label, name in listed.items()}
    try:
        return pair_names(labels, listed)
    except ValueError as error:
        raise DataError(str(error), path=source) from None
