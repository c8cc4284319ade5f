"""Labels: exact, or refused with the place.

A label that is a whole number becomes an int64 of the same value, however it is written: ``3``,
``+3``, ``3.0`` and ``3e0`` are 3, and ``9007199254740993`` is itself. These are refused, never
changed:

- whole numbers beyond 64 bits, such as ``9223372036854775808`` or ``1e300``;
- numbers that are not whole (``1.5``) and those that are not finite (``nan``, ``inf``);
- floats in binary files beyond 2**53 (2**24 in single precision): there neighbouring whole numbers
  are stored as the same float, and two classes may already be one.

``label_type="str"`` keeps every label as the text it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import sparse

from .._text import Setting, Words
from ..errors import DataError

LABEL_TYPES = ("auto", "int", "float", "str")

_INT64 = np.iinfo(np.int64)
# Numbers with more digits, leading zeros not counted, do not fit 64 bits.
_MAX_DIGITS = 20
_WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", flags=re.IGNORECASE)
_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)

NOT_A_NUMBER = "is not a number"
_TOO_LARGE = "is beyond 64-bit integers"


def check_label_type(label_type: Any, allowed: Sequence[str] = LABEL_TYPES) -> None:
    """Raise ValueError unless ``label_type`` is one of those allowed."""
    if label_type not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"label_type must be one of {listed}; got {label_type!r}")


def shown(token: str) -> str:
    """Return a token for a message: quoted, and cut if it is long."""
    return repr(token if len(token) <= 30 else token[:27] + "...")


def parse_labels(
    texts: Sequence[str], lines: Sequence[int], label_type: str, path: str
) -> np.ndarray:
    """Return labels from their texts, by the rules above.

    "auto" takes whole numbers as integers, and text where no label is a number. A mixture is an
    error.
    """
    if label_type == "str":
        return np.array(texts, dtype=np.str_)
    distinct = set(texts)
    convert = _as_float if label_type == "float" else _as_integer
    values = {text: convert(text) for text in distinct}
    if label_type == "auto" and all(value == NOT_A_NUMBER for value in values.values()):
        return np.array(texts, dtype=np.str_)
    if any(isinstance(value, str) for value in values.values()):
        place = next(i for i, text in enumerate(texts) if isinstance(values[text], str))
        raise DataError(
            _problem(texts[place], str(values[texts[place]]), label_type),
            path=path,
            line=lines[place],
        )
    dtype = np.float64 if label_type == "float" else np.int64
    return np.array([values[text] for text in texts], dtype=dtype)


def parse_label_sets(
    texts: Sequence[str],
    lines: Sequence[int],
    label_type: str,
    path: str,
    classes: Sequence[Any] | None = None,
) -> tuple[sparse.csr_matrix, list[Any]]:
    """Return an indicator of several labels an example, and the label of each column.

    A text such as ``1,2`` holds the labels 1 and 2, an empty one none. With ``classes`` the
    columns are those, and other labels are an error.
    """
    parts = [text.split(",") if text else [] for text in texts]
    flat = [part.strip() for labels in parts for part in labels]
    flat_lines = [line for labels, line in zip(parts, lines, strict=True) for _ in labels]
    for part, line in zip(flat, flat_lines, strict=True):
        if not part:
            raise DataError("a label between commas is empty", path=path, line=line)
    labels = parse_labels(flat, flat_lines, label_type, path)
    columns = sorted(set(labels.tolist())) if classes is None else list(classes)
    number = {label: column for column, label in enumerate(columns)}
    for label, line in zip(labels.tolist(), flat_lines, strict=True):
        if label not in number:
            raise DataError(f"label {label!r} is none of the model's", path=path, line=line)
    counts = np.array([len(part) for part in parts])
    indices = np.array([number[label] for label in labels.tolist()], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    ones = np.ones(len(indices), dtype=np.int64)
    indicator = sparse.csr_matrix((ones, indices, indptr), shape=(len(texts), len(columns)))
    indicator.sum_duplicates()
    indicator.data[:] = 1  # a label written twice counts once
    return indicator, columns


def _problem(text: str, problem: str, label_type: str) -> Words:
    message = f"label {shown(text)} {problem}"
    as_text = Setting("label_type", "str")
    if label_type == "auto" and problem == NOT_A_NUMBER:
        return f"{message}, unlike others here (" + as_text + " takes all as text)"
    if problem in (NOT_A_NUMBER, _TOO_LARGE):
        return f"{message} (" + as_text + " takes labels as text)"
    return message


def _as_integer(text: str) -> int | str:
    """Return the whole number a text stands for, or what is wrong with it."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        digits = whole[2].lstrip("0") or "0"
        if len(digits) > _MAX_DIGITS:
            return _TOO_LARGE
        return _in_range(int(whole[1] + digits))
    if _NUMBER.fullmatch(text):
        try:
            value = Decimal(text)
        except ArithmeticError:  # an exponent beyond 10**18
            return _TOO_LARGE
        if not value:
            return 0
        if value.adjusted() > _MAX_DIGITS:
            return _TOO_LARGE
        if value != value.to_integral_value():
            return "is not an integer"
        return _in_range(int(value))
    return "is not finite" if _NOT_FINITE.fullmatch(text) else NOT_A_NUMBER


def _in_range(value: int) -> int | str:
    return value if _INT64.min <= value <= _INT64.max else _TOO_LARGE


def _as_float(text: str) -> float | str:
    """Return a number as a float, or what is wrong with it."""
    if not _NUMBER.fullmatch(text):
        return "is not finite" if _NOT_FINITE.fullmatch(text) else NOT_A_NUMBER
    value = float(text)
    if not np.isfinite(value):
        return "is not finite"
    whole = _as_integer(text)
    if isinstance(whole, int) and int(value) != whole:
        return "cannot be held as a float"
    return value


def check_labels(y: Any, n_samples: int, path: str) -> np.ndarray:
    """Return one label an example from an array: integers, booleans or text, unchanged in value."""
    y = np.asarray(y)
    if y.ndim == 2 and 1 in y.shape:
        y = y.ravel()
    if y.ndim != 1:
        raise DataError(f"the labels have shape {y.shape}, not one dimension", path=path)
    if len(y) != n_samples:
        raise DataError(f"has {n_samples} examples but {len(y)} labels", path=path)
    if y.dtype.kind == "f":
        return _whole_floats(y, path)
    if y.dtype.kind in "iu":
        if y.dtype == np.uint64:
            _refuse_labels(y > np.uint64(_INT64.max), y, _TOO_LARGE, path)
        return y.astype(np.int64)
    if y.dtype.kind in "SU":
        return text_array(y, path, "the labels")
    if y.dtype.kind != "b":
        raise DataError(f"labels of type {y.dtype} are neither numbers nor text", path=path)
    return y


def _whole_floats(y: np.ndarray, path: str) -> np.ndarray:
    _refuse_labels(~np.isfinite(y) | (y != np.floor(y)), y, "is not an integer", path)
    exact = 2.0 ** (np.finfo(y.dtype).nmant + 1)
    if exact <= _MAX_EXACT:
        largest = f"is beyond {int(exact)}, up to which {y.dtype} holds every whole number"
        _refuse_labels(np.abs(y) > exact, y, largest, path)
    else:  # extended precision
        _refuse_labels(np.abs(y) > _MAX_EXACT, y, _TOO_LARGE, path)
    return y.astype(np.int64)


_MAX_EXACT = 2.0**53


def _refuse_labels(bad: np.ndarray, y: np.ndarray, problem: str, path: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"label {y[row]} {problem}", path=path, row=row + 1)


def text_array(values: np.ndarray, path: str, what: str) -> np.ndarray:
    """Return an array of text, with every character checked to be one: files may hold any bits."""
    if values.dtype.kind == "S":
        try:
            return np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{what} are not UTF-8 text ({error.reason})", path=path) from None
    # Code points are stored as 32-bit numbers in the array's own byte order.
    if values.dtype.itemsize and values.size:
        codes = np.ascontiguousarray(values).view(values.dtype.byteorder + "u4")
        surrogate = (codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])
        if surrogate.any() or codes.max() > _MAX_CODE_POINT:
            raise DataError(f"{what} hold something that is not text", path=path)
    return values


def plain_label(label: Any) -> int | float | str | bool:
    """Return a label as Python's own type, for JSON."""
    return label.item() if isinstance(label, np.generic) else label


def plain_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(plain_label(label) for label in labels)
