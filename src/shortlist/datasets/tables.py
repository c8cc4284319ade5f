"""Tables: CSV text and Parquet files, with the label in one of the columns."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from .checks import check_features, check_labels
from .containers import LabeledData
from .errors import DataError
from .files import as_text, check_readable, format_suffix, open_data, plain_errors

# Without further word, a column with one of these names holds the labels; else the last one does.
_LABEL_NAMES = ("label", "target", "class", "y")


def read_csv(
    path: str | os.PathLike[str],
    *,
    label: int | str | None = "auto",
    header: bool | str = "auto",
    delimiter: str | None = None,
    label_type: str = "auto",
    n_features: int | None = None,
    dtype: Any = np.float64,
) -> LabeledData:
    """Read CSV text: plain, .gz, .bz2 or .xz; "-" reads standard input.

    Parameters
    ----------
    path : path-like
    label : int, str or None
        The labels' column, by number (negative counts from the end) or name; None: there are no
        labels. "auto" takes the column named label, target, class or y, otherwise the last one;
        but no column if without one there are just ``n_features``.
    header : bool or "auto"
        Whether the first line names the columns. "auto": it does if none of it is a number.
    delimiter : str or None
        None is a tab for names ending in .tsv and a comma otherwise.
    label_type : "auto", "int" or "str"
        "auto": labels are integers if every one is, text if none is a number, and an error that
        names the line where they are mixed.
    n_features : int or None
        Number of features the file must have.
    dtype : float64 or float32
    """
    if label_type not in ("auto", "int", "str"):
        raise ValueError(f'label_type must be "auto", "int" or "str", got {label_type!r}')
    if header not in (True, False, "auto"):
        raise ValueError(f'header must be True, False or "auto", got {header!r}')
    name = check_readable(path)
    if delimiter is None:
        delimiter = "\t" if format_suffix(name) == ".tsv" else ","
    with open_data(name) as file, as_text(file) as text:
        try:
            return _parse_csv(
                text, name, label, header, delimiter, label_type, n_features, np.dtype(dtype)
            )
        except UnicodeDecodeError as error:
            raise DataError(f"is not UTF-8 text ({error.reason})", path=name) from None
        except csv.Error as error:
            raise DataError(f"is not CSV text ({error})", path=name) from None


def _parse_csv(
    text: Any,
    name: str,
    label: int | str | None,
    header: bool | str,
    delimiter: str,
    label_type: str,
    n_features: int | None,
    dtype: np.dtype,
) -> LabeledData:
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    rows = (row for row in reader if row)  # blank lines are no examples
    first = next(rows, None)
    if first is None:
        raise DataError("holds no examples", path=name)
    first = [cell.strip() for cell in first]
    first_line = reader.line_num
    names = first if _is_header(first, label, header, name, first_line) else None
    width = len(first)
    column = _label_column(label, names, width, name)
    if label == "auto" and not _names_label(names) and width == n_features:
        column = None
    if n_features is not None and width - (column is not None) != n_features:
        message = f"has {width - (column is not None)} features where {n_features} are expected"
        raise DataError(message, path=name, line=first_line)
    if column is not None and width == 1:
        raise DataError("has one column, so no features", path=name, line=first_line)

    values = array("d")
    label_texts: list[str] = []
    lines: list[int] = []
    for row in rows if names is not None else chain([first], rows):
        line = reader.line_num if lines or names is not None else first_line
        if len(row) != width:
            raise DataError(
                f"has {len(row)} columns where {width} are expected", path=name, line=line
            )
        if column is not None:
            label_texts.append(row.pop(column).strip())
        try:
            values.extend(map(float, row))
        except ValueError:
            raise _bad_cell(row, names, column, name, line) from None
        lines.append(line)
    if not lines:
        raise DataError("holds no examples, only a header", path=name)
    X = np.frombuffer(values, dtype=np.float64).reshape(len(lines), -1)
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if bad.size:
        cells = [repr(float(value)) for value in X[bad[0]]]
        raise _bad_cell(cells, names, column, name, lines[bad[0]])
    y = None if column is None else _parse_labels(label_texts, lines, label_type, name)
    feature_names = None
    if names is not None:
        feature_names = tuple(n for i, n in enumerate(names) if i != column)
    return LabeledData(X.astype(dtype, copy=False), y, feature_names, source=name)


def _float_or_none(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _names_label(names: Sequence[str] | None) -> bool:
    return any(name.lower() in _LABEL_NAMES for name in names or ())


def _is_header(
    first: list[str], label: int | str | None, header: bool | str, name: str, line: int
) -> bool:
    if header != "auto":
        return bool(header)
    if isinstance(label, str) and label != "auto":
        return True  # a column is asked for by its name
    if _names_label(first):
        return True
    # The label may be a word in a line of data; the features may not.
    column = _label_column(label, None, len(first), name)
    features = [cell for i, cell in enumerate(first) if i != column]
    numbers = [_float_or_none(cell) is not None for cell in features]
    if all(numbers):
        return False
    if any(numbers):
        word = features[numbers.index(False)]
        raise DataError(
            f"is neither all names nor all numbers ({word!r} is not a number): "
            "pass header=True or header=False",
            path=name,
            line=line,
        )
    return True


def _label_column(
    label: int | str | None, names: Sequence[str] | None, width: int, path: str
) -> int | None:
    """Return the number of the labels' column, or None if there is to be none."""
    if label is None:
        return None
    if label == "auto":
        lowered = [n.lower() for n in names or ()]
        found = [lowered.index(n) for n in _LABEL_NAMES if n in lowered]
        return found[0] if found else width - 1
    if isinstance(label, str):
        if names is None or label not in names:
            shown = ", ".join((names or ())[:12]) or "none are named"
            raise DataError(f"has no column {label!r} (columns: {shown})", path=path)
        return list(names).index(label)
    if not -width <= label < width:
        raise DataError(f"has no column {label}, only {width} columns", path=path)
    return label % width


def _bad_cell(
    row: list[str], names: list[str] | None, column: int | None, path: str, line: int
) -> DataError:
    """Say which of a line's features is not a finite number."""
    places = [i for i in range(len(row) + (column is not None)) if i != column]
    for place, cell in zip(places, row, strict=True):
        where = f"column {place + 1}" + (f" ({names[place]})" if names else "")
        value = _float_or_none(cell)
        if not cell.strip():
            return DataError(f"{where} is empty", path=path, line=line)
        if value is None:
            return DataError(f"{where} is {cell!r}, not a number", path=path, line=line)
        if not math.isfinite(value):
            return DataError(f"{where} is {cell}, not finite", path=path, line=line)
    raise AssertionError("every cell of this line is a finite number")


def _parse_labels(texts: list[str], lines: list[int], label_type: str, path: str) -> np.ndarray:
    for text, line in zip(texts, lines, strict=True):
        if not text:
            raise DataError("the label is empty", path=path, line=line)
    if label_type == "str":
        return np.array(texts)
    values = [_float_or_none(text) for text in texts]
    if label_type == "auto" and all(value is None for value in values):
        return np.array(texts)
    for text, value, line in zip(texts, values, lines, strict=True):
        if value is None:
            message = f"label {text!r} is not a number"
            if label_type == "auto":
                message += ", unlike others here (label_type='str' takes all as text)"
            raise DataError(message, path=path, line=line)
        if not math.isfinite(value) or value != math.floor(value):
            raise DataError(f"label {text!r} is not an integer", path=path, line=line)
    return np.array([int(value) for value in values if value is not None], dtype=np.int64)


def read_parquet(
    path: str | os.PathLike[str],
    *,
    label: int | str | None = "auto",
    n_features: int | None = None,
    dtype: Any = None,
) -> LabeledData:
    """Read a Parquet file whose columns are numbers, or lists of numbers (embeddings).

    Parameters
    ----------
    path : path-like
    label : int, str or None
        As for :func:`read_csv`.
    n_features : int or None
        Number of features the file must have.
    dtype : dtype or None
        Type of the features; None takes the smallest that holds every column.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow: install it with pip install 'shortlist[data]'"
        ) from None

    name = check_readable(path)
    try:
        with plain_errors(name), open(name, "rb") as file:
            table = parquet.read_table(file)
    except (pyarrow.ArrowException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not a complete Parquet file ({error})", path=name) from None
    names = list(table.column_names)
    column = _label_column(label, names, len(names), name)
    if label == "auto" and not _names_label(names) and _values_per_row(table) == n_features:
        column = None
    blocks, feature_names = [], []
    for i, column_name in enumerate(names):
        if i == column:
            continue
        block = _parquet_block(table.column(i), column_name, name)
        blocks.append(block)
        width = block.shape[1]
        feature_names += (
            [column_name] if width == 1 else [f"{column_name}[{j}]" for j in range(width)]
        )
    if not blocks:
        raise DataError("has no feature columns", path=name)
    X = blocks[0] if len(blocks) == 1 else np.hstack(blocks)
    if dtype is not None:
        X = X.astype(dtype, copy=False)
    X = check_features(X, name, n_features)
    y = None
    if column is not None:
        stored = table.column(column)
        _refuse_nulls(stored, names[column], name)
        values = stored.combine_chunks()
        if pyarrow.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        y = np.asarray(values.to_numpy(zero_copy_only=False))
        if y.dtype == object:
            y = y.astype(str)
        y = check_labels(y, X.shape[0], name)
    return LabeledData(X, y, tuple(feature_names), source=name)


def _values_per_row(table: Any) -> int:
    """The number of values in the first row, each entry of a list counting for one."""
    first = table.slice(0, 1).to_pylist()
    values = first[0].values() if first else ()
    return sum(len(value) if isinstance(value, list) else 1 for value in values)


def _refuse_nulls(column: Any, column_name: str, path: str) -> None:
    if column.null_count:
        row = column.is_null().to_pylist().index(True) + 1
        raise DataError(f"column {column_name!r} is empty", path=path, row=row)


def _parquet_block(column: Any, column_name: str, path: str) -> np.ndarray:
    """Return a column as a matrix: one column of numbers, or one for each entry of its lists."""
    import pyarrow
    import pyarrow.compute

    types = pyarrow.types
    _refuse_nulls(column, column_name, path)
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        widths = pyarrow.compute.list_value_length(column).to_numpy()
        odd = np.flatnonzero(widths != widths[0]) if len(widths) else np.empty(0, int)
        if odd.size:
            message = f"column {column_name!r} holds lists of different lengths"
            raise DataError(message, path=path, row=int(odd[0]) + 1)
        flat = pyarrow.compute.list_flatten(column)
        if flat.null_count:
            raise DataError(f"column {column_name!r} holds lists with empty entries", path=path)
        return _numbers(flat, column_name, path).reshape(len(widths), -1)
    return _numbers(column, column_name, path).reshape(-1, 1)


def _numbers(column: Any, column_name: str, path: str) -> np.ndarray:
    import pyarrow

    types = pyarrow.types
    kind = column.type
    if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        raise DataError(f"column {column_name!r} is of type {kind}, not numbers", path=path)
    return np.asarray(column.to_numpy())
