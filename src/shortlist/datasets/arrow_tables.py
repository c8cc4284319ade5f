"""Parquet, Arrow and Feather files: tables whose columns are numbers or lists of numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .checks import check_features
from .columns import Roles, TableOptions, assign_roles, no_feature_hint
from .containers import LabeledData
from .files import check_readable, parser_errors
from .how_read import Column, Reading
from .labels import check_labels
from .limits import check_read_size
from .missing import fill_missing

_ARROW_FILE = b"ARROW1"
_FEATHER_1 = b"FEA1"


def read_parquet(
    path: str | os.PathLike[str],
    *,
    label: Column | None = "auto",
    drop: Sequence[Column] = (),
    id_column: Column | None = None,
    weight_column: Column | None = None,
    missing: str | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    like: Reading | None = None,
) -> LabeledData:
    """Read a Parquet file whose columns are numbers, or lists of numbers (embeddings).

    A column of lists is one feature for each entry, named ``embedding[0]``, ``embedding[1]``, ...

    Parameters
    ----------
    path : path-like
    label, drop, id_column, weight_column, missing, like
        As for :func:`read_csv`. Missing values are nulls and NaN.
    n_features : int or None
        Number of features the file must have.
    dtype : dtype or None
        Type of the features; None takes the smallest that holds every column.
    """
    options = _options(label, drop, id_column, weight_column, missing, n_features, like)
    name = check_readable(path)
    _require_pyarrow("Parquet")
    return _labeled(_parquet_table(name), name, "parquet", options, dtype)


def read_arrow(
    path: str | os.PathLike[str],
    *,
    label: Column | None = "auto",
    drop: Sequence[Column] = (),
    id_column: Column | None = None,
    weight_column: Column | None = None,
    missing: str | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    like: Reading | None = None,
) -> LabeledData:
    """Read an Arrow file (.arrow, .ipc; file or stream) or a Feather file, as a Parquet file is.

    Parameters are those of :func:`read_parquet`.
    """
    options = _options(label, drop, id_column, weight_column, missing, n_features, like)
    name = check_readable(path)
    _require_pyarrow("Arrow")
    return _labeled(_arrow_table(name), name, "arrow", options, dtype)


def table_data(table: Any, name: str, label: Column | None = "auto") -> LabeledData:
    """Return the examples of an Arrow table in memory; ``name`` is for messages."""
    return _labeled(table, name, "arrow", _options(label, (), None, None, None, None, None), None)


def _options(
    label: Column | None,
    drop: Sequence[Column],
    id_column: Column | None,
    weight_column: Column | None,
    missing: str | None,
    n_features: int | None,
    like: Reading | None,
) -> TableOptions:
    policy = missing or (like.missing if like is not None else "error")
    return TableOptions(label, tuple(drop), id_column, weight_column, policy, n_features, like)


def _require_pyarrow(what: str) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{what} files need pyarrow: install it with pip install 'shortlist[data]'"
        ) from None


def _parquet_table(name: str) -> Any:
    from pyarrow import parquet

    with parser_errors("is not a complete Parquet file", name), open(name, "rb") as file:
        stored = parquet.ParquetFile(file)
        metadata = stored.metadata
        # Parquet stores a run of equal values in a few bytes. In the matrix of features each value
        # takes eight.
        values = 8 * metadata.num_rows * max(metadata.num_columns, 1)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        announced = max(values, sum(group.total_byte_size for group in groups))
        check_read_size(announced, os.path.getsize(name), name)
        return _validated(stored.read())


def _arrow_table(name: str) -> Any:
    import pyarrow

    with parser_errors("is not a complete Arrow file", name), open(name, "rb") as file:
        start = file.read(len(_ARROW_FILE))
        file.seek(0)
        if start.startswith(_FEATHER_1):
            raise DataError("is a Feather file of version 1: save it as version 2", path=name)
        if start == _ARROW_FILE:
            reader = pyarrow.ipc.open_file(file)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            reader = batches = pyarrow.ipc.open_stream(file)
        kept, size = [], 0
        for batch in batches:
            size += batch.nbytes
            check_read_size(size, os.path.getsize(name), name)
            kept.append(batch)
        return _validated(pyarrow.Table.from_batches(kept, reader.schema))


def _validated(table: Any) -> Any:
    """Check every offset and length of a table: a damaged file can point anywhere."""
    table.validate(full=True)
    return table


def _labeled(table: Any, name: str, kind: str, options: TableOptions, dtype: Any) -> LabeledData:
    names = list(table.column_names)
    with parser_errors(f"is not a complete {kind.capitalize()} file", name):
        per_row = _values_per_row(table)
    roles = assign_roles(names, len(names), options, name, per_row)
    if not roles.features:
        raise DataError("has no feature columns", path=name)
    blocks: list[np.ndarray] = []
    feature_names: list[str] = []
    keep_nulls = options.missing != "error"
    for i in roles.features:
        with parser_errors(f"column {names[i]!r} cannot be read", name):
            _refuse_text(table.column(i).type, roles, i, name)
            block = _block(table.column(i), names[i], name, keep_nulls)
        blocks.append(block)
        width = block.shape[1]
        feature_names += [names[i]] if width == 1 else [f"{names[i]}[{j}]" for j in range(width)]
    X = blocks[0] if len(blocks) == 1 else np.hstack(blocks)
    filled = fill_missing(X, options, tuple(feature_names), name)
    X = filled.X if dtype is None else filled.X.astype(dtype, copy=False)
    X = check_features(X, name, options.expected)
    kept = np.flatnonzero(filled.kept)
    return LabeledData(
        X,
        _labels(table, roles, kept, name),
        tuple(feature_names),
        source=name,
        reading=roles.reading(
            kind,
            X.shape[1],
            feature_names=tuple(feature_names),
            missing=options.missing,
            fill=filled.means,
        ),
        ids=_ids(table, roles, kept, name),
        weight=_weights(table, roles, kept, name),
        left_out=int((~filled.kept).sum()),
    )


def _labels(table: Any, roles: Roles, kept: np.ndarray, path: str) -> np.ndarray | None:
    if roles.label is None:
        return None
    import pyarrow

    types = pyarrow.types
    name = table.column_names[roles.label]
    with parser_errors(f"column {name!r} cannot be read", path):
        values = table.column(roles.label).combine_chunks()
        _refuse_nulls(values, name, path)
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        kind = values.type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            y = np.array(values.to_pylist(), dtype=np.str_)
        elif types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            y = np.asarray(values.to_numpy(zero_copy_only=False))
        else:
            raise DataError(f"labels of type {kind} are neither numbers nor text", path=path)
    return check_labels(y[kept], len(kept), path)


def _ids(table: Any, roles: Roles, kept: np.ndarray, path: str) -> np.ndarray | None:
    if roles.id_column is None:
        return None
    with parser_errors(f"column {table.column_names[roles.id_column]!r} cannot be read", path):
        values = table.column(roles.id_column).to_pylist()
        return np.array([str(values[i]) for i in kept])


def _weights(table: Any, roles: Roles, kept: np.ndarray, path: str) -> np.ndarray | None:
    if roles.weight_column is None:
        return None
    name = table.column_names[roles.weight_column]
    with parser_errors(f"column {name!r} cannot be read", path):
        column = table.column(roles.weight_column)
        _refuse_nulls(column, name, path)
        weights = _numbers(column, name, path).astype(np.float64)
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if bad.size:
        message = f"the weight is {weights[bad[0]]}, not a number from 0 on"
        raise DataError(message, path=path, row=int(bad[0]) + 1)
    return np.asarray(weights[kept])


def _refuse_text(kind: Any, roles: Roles, column: int, path: str) -> None:
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
        words = f"{roles.shown(column)} is of type {kind}, not numbers"
        raise DataError(words + no_feature_hint(roles, column), path=path)


def _values_per_row(table: Any) -> int:
    """The number of values in the first row, each entry of a list counting for one."""
    first = table.slice(0, 1).to_pylist()
    values = first[0].values() if first else ()
    return sum(len(value) if isinstance(value, list) else 1 for value in values)


def _refuse_nulls(column: Any, column_name: str, path: str) -> None:
    if column.null_count:
        row = column.is_null().to_pylist().index(True) + 1
        raise DataError(f"column {column_name!r} is empty", path=path, row=row)


def _block(column: Any, column_name: str, path: str, keep_nulls: bool) -> np.ndarray:
    """Return a column as a matrix: one column of numbers, or one for each entry of its lists."""
    import pyarrow
    import pyarrow.compute

    types = pyarrow.types
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        _refuse_nulls(column, column_name, path)
        widths = pyarrow.compute.list_value_length(column).to_numpy()
        odd = np.flatnonzero(widths != widths[0]) if len(widths) else np.empty(0, int)
        if odd.size:
            message = f"column {column_name!r} holds lists of different lengths"
            raise DataError(message, path=path, row=int(odd[0]) + 1)
        flat = pyarrow.compute.list_flatten(column)
        if flat.null_count and not keep_nulls:
            raise DataError(f"column {column_name!r} holds lists with empty entries", path=path)
        return _numbers(flat, column_name, path).reshape(len(widths), -1)
    if not keep_nulls:
        _refuse_nulls(column, column_name, path)
    return _numbers(column, column_name, path).reshape(-1, 1)


def _numbers(column: Any, column_name: str, path: str) -> np.ndarray:
    """Return numbers as an array, nulls as NaN."""
    import pyarrow

    types = pyarrow.types
    kind = column.type
    if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        raise DataError(f"column {column_name!r} is of type {kind}, not numbers", path=path)
    if column.null_count:
        wide = kind if types.is_floating(kind) else pyarrow.float64()
        numbers = column.cast(pyarrow.int8()) if types.is_boolean(kind) else column
        column = numbers.cast(wide, safe=False).fill_null(np.nan)
    return np.asarray(column.to_numpy())
