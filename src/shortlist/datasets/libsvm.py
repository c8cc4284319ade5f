"""LibSVM (svmlight) text: ``label index:value index:value ...``, one example a line.

scikit-learn's compiled parser does the reading. It does not say where a file is wrong, so on any
failure the file is read a second time, line by line in Python, to name the first bad line.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from scipy import sparse

from .._files import atomic_write
from .containers import LabeledData, Matrix
from .errors import DataError
from .files import check_readable, compression_suffix, open_data

_LARGEST_INDEX = 2**31 - 1


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    integer_labels: bool = True,
    extra_features: str = "drop",
    dense: bool | str = "auto",
    dtype: Any = np.float64,
) -> LabeledData:
    """Read a LibSVM text file: plain, .gz, .bz2 or .xz; "-" reads standard input.

    Comments (from ``#``) and ``qid:`` fields are passed over.

    Parameters
    ----------
    path : path-like
    n_features : int or None
        Number of columns; None takes the file's largest index. Give the training file's number
        when reading a test file: missing columns are filled with zeros.
    zero_based : bool or "auto"
        Whether the first feature is number 0 rather than 1. "auto" looks for an index 0. For a
        test file pass on the training data's ``zero_based``.
    integer_labels : bool
        Whether labels must be whole numbers (``3``, ``+3`` and ``3.0`` are). If False, labels
        are returned as floats.
    extra_features : "drop" or "error"
        What to do with indices beyond ``n_features``. Dropping them warns; a linear model has no
        weights for features it never saw.
    dense : bool or "auto"
        Whether X is a dense array. "auto" makes it dense where that takes no more memory.
    dtype : float64 or float32

    Returns
    -------
    LabeledData

    Raises
    ------
    DataError
        In one line, with file and line number.
    """
    if extra_features not in ("drop", "error"):
        raise ValueError(f'extra_features must be "drop" or "error", got {extra_features!r}')
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}')
    if dense not in (True, False, "auto"):
        raise ValueError(f'dense must be True, False or "auto", got {dense!r}')
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype}")
    name = check_readable(path)

    with open_data(name) as file:
        parsed = _parse(file, dtype, zero_based, integer_labels)
        if isinstance(parsed, str):
            raise _first_problem(file, name, zero_based, integer_labels, otherwise=parsed)
        X, y = parsed
        if X.shape[0] == 0:
            raise DataError("holds no examples", path=name)
        first = 0 if zero_based is True or (zero_based == "auto" and _has_zero(X)) else 1
        if n_features is not None:
            beyond = X.indices >= n_features + first
            if beyond.any():
                _tell_extra_features(file, name, n_features, first, beyond, extra_features)
                X = _without(X, beyond)
    X = _shift_columns(X, first, n_features)
    if integer_labels:
        y = y.astype(np.int64)
    return LabeledData(_densify(X, dense), y, source=name, zero_based=first == 0)


def _parse(
    file: IO[bytes], dtype: np.dtype, zero_based: bool | str, integer_labels: bool
) -> tuple[sparse.csr_matrix, np.ndarray] | str:
    """Return X (columns numbered as in the file) and y, or what the parser said is wrong."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(file, dtype=dtype, zero_based=True)
    except (ValueError, OverflowError) as error:
        return str(error)
    if not np.isfinite(y).all() or not np.isfinite(X.data).all():
        return "holds a value that is not finite"
    if integer_labels and not (y == np.floor(y)).all():
        return "holds a label that is not an integer"
    if zero_based is False and _has_zero(X):
        return "holds a feature with index 0"
    return X, y


def _has_zero(X: sparse.csr_matrix) -> bool:
    return bool(X.indices.size) and int(X.indices.min()) == 0


def _without(X: sparse.csr_matrix, drop: np.ndarray) -> sparse.csr_matrix:
    keep = ~drop
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_matrix((X.data[keep], X.indices[keep], kept_before[X.indptr]), X.shape)


def _shift_columns(X: sparse.csr_matrix, first: int, n_features: int | None) -> sparse.csr_matrix:
    """Number the columns from 0 and set their number."""
    indices = X.indices - first
    if n_features is None:
        n_features = max(int(indices.max()) + 1 if indices.size else 0, 1)
    return sparse.csr_matrix((X.data, indices, X.indptr), shape=(X.shape[0], n_features))


def _densify(X: sparse.csr_matrix, dense: bool | str) -> Matrix:
    if dense == "auto":
        stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        dense = X.shape[0] * X.shape[1] * X.data.itemsize <= stored
    return X.toarray() if dense else X


def _tell_extra_features(
    file: IO[bytes], name: str, n_features: int, first: int, beyond: np.ndarray, action: str
) -> None:
    if action == "error":
        last = n_features - 1 + first
        for number, tokens in _lines(file):
            for token in tokens[1:]:
                index = token.partition(":")[0]
                if index != "qid" and int(index) > last:
                    message = f"feature index {index} is beyond the {n_features} features expected"
                    raise DataError(message, path=name, line=number)
    warnings.warn(
        f"{name}: {int(beyond.sum())} values of features beyond number {n_features} were dropped",
        UserWarning,
        stacklevel=4,
    )


def _lines(file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the tokens of every example, from the start of the file."""
    file.seek(0)
    for number, line in enumerate(file, start=1):
        tokens = line.partition(b"#")[0].decode("utf-8", errors="replace").split()
        if tokens:
            yield number, tokens


def _first_problem(
    file: IO[bytes], name: str, zero_based: bool | str, integer_labels: bool, otherwise: str
) -> DataError:
    for number, (label, *features) in _lines(file):
        problem = _label_problem(label, integer_labels) or _features_problem(features, zero_based)
        if problem:
            return DataError(problem, path=name, line=number)
    return DataError(otherwise, path=name)


def _shown(token: str) -> str:
    return repr(token if len(token) <= 30 else token[:27] + "...")


def _number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


def _label_problem(token: str, integer: bool) -> str | None:
    if ":" in token:
        return f"no label before the first feature {_shown(token)}"
    if "," in token:
        return f"label {_shown(token)} holds a comma: one label an example (for CSV: format='csv')"
    value = _number(token)
    if value is None:
        return f"label {_shown(token)} is not a number"
    if not math.isfinite(value):
        return f"label {_shown(token)} is not finite"
    if integer and value != math.floor(value):
        return f"label {_shown(token)} is not an integer"
    return None


def _features_problem(tokens: list[str], zero_based: bool | str) -> str | None:
    previous = -1
    if tokens and tokens[0].startswith("qid:"):
        tokens = tokens[1:]
    for token in tokens:
        index_text, colon, value_text = token.partition(":")
        if not colon:
            return f"{_shown(token)} is not an index:value pair"
        try:
            index = int(index_text)
        except ValueError:
            return f"feature index {_shown(index_text)} is not an integer"
        if index < 0 or index > _LARGEST_INDEX:
            return f"feature index {index} is out of range"
        if index == 0 and zero_based is False:
            return "feature index 0 in a file whose features count from 1"
        if index <= previous:
            return f"feature index {index} follows {previous}: indices must ascend"
        previous = index
        value = _number(value_text)
        if value is None:
            return f"value {_shown(value_text)} of feature {index} is not a number"
        if not math.isfinite(value):
            return f"value {_shown(value_text)} of feature {index} is not finite"
    return None


def write_libsvm(path: str | os.PathLike[str], X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write X and y as LibSVM text, compressed if the name ends in .gz, .bz2 or .xz.

    Nothing appears under ``path`` until everything is written. Labels must be numbers.
    """
    from sklearn.datasets import dump_svmlight_file

    openers: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with atomic_write(path) as part, openers[compression_suffix(path)](part, "wb") as file:
        dump_svmlight_file(X, np.asarray(y), file, zero_based=zero_based)
