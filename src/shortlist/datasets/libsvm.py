"""LibSVM (svmlight) text: ``label index:value index:value ...``, one example a line.

scikit-learn's parser reads the features. The labels are taken off each line before it sees them,
so that they stay exact, may be several (``1,2 3:0.5``), or may be absent.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import warnings
from array import array
from collections.abc import Iterator
from operator import lt
from typing import IO, Any

import numpy as np
from scipy import sparse

from .._files import atomic_write
from .._text import Setting, Words
from ..errors import DataError, Worded
from .containers import LabeledData, Matrix
from .files import check_readable, compression_suffix, open_data
from .how_read import Reading
from .labels import check_label_type, parse_label_sets, parse_labels, shown
from .limits import check_read_size

_MAX_INDEX = 2**31 - 1
_LABEL_TYPES = ("int", "float", "str")


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    label: str | None = "auto",
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    label_type: str | None = None,
    extra_features: str = "drop",
    dense: bool | str = "auto",
    dtype: Any = np.float64,
    like: Reading | None = None,
) -> LabeledData:
    """Read a LibSVM text file: plain, .gz, .bz2 or .xz; "-" reads standard input.

    Comments (from ``#``) and ``qid:`` fields are passed over. Blank lines are no examples.

    Parameters
    ----------
    path : path-like
    label : "auto" or None
        "auto": every line begins with its label, or with several separated by commas, in which
        case y is an indicator matrix; a line without labels has then none. None leaves labels
        aside, present or not.
    n_features : int or None
        Number of columns; None takes the file's largest index. Give the training file's number
        when reading a test file: missing columns are filled with zeros.
    zero_based : bool or "auto"
        Whether the first feature is number 0 rather than 1. "auto" looks for an index 0. The
        result's ``reading`` says what was found: pass it on (``like``) for the test file.
    label_type : "int", "float", "str" or None
        "int" (and None): labels are whole numbers, however written. "float": any numbers. "str":
        the text as it is. See :mod:`shortlist.datasets.labels`.
    extra_features : "drop" or "error"
        What to do with indices beyond ``n_features``. Dropping them warns; a linear model has no
        weights for features it never saw.
    dense : bool or "auto"
        Whether X is a dense array. "auto" makes it dense where that takes no more memory.
    dtype : float64 or float32
    like : Reading or None
        How a file that goes with this one was read: gives ``n_features``, the index base, the type
        of the labels and the columns of an indicator.

    Returns
    -------
    LabeledData

    Raises
    ------
    DataError
        In one line, with file and line number.
    """
    base_from = "given"
    if like is not None:
        n_features = like.n_features if n_features is None else n_features
        label_type = label_type or (like.label_type if like.label_type in _LABEL_TYPES else None)
        if zero_based == "auto" and like.index_base is not None:
            zero_based, base_from = like.index_base == 0, like.index_base_from or "given"
    label_type = label_type or "int"
    _check_options(n_features, zero_based, label_type, extra_features, dense, dtype)
    name = check_readable(path)
    if label not in ("auto", None):
        words = "LibSVM text has its labels in front: " + Setting("label") + " is for tables"
        raise DataError(words, path=name)
    with open_data(name) as file:
        lines = _Lines(file, name)
        X = _parse(lines, np.dtype(dtype), zero_based, guessed=base_from == "no index 0")
    if X.shape[0] == 0:
        raise DataError("holds no examples", path=name)
    first = 0 if zero_based is True or (zero_based == "auto" and _has_zero(X)) else 1
    if zero_based == "auto":
        base_from = "an index 0" if first == 0 else "no index 0"
    if n_features is not None:
        X = _without_extra(X, n_features, first, extra_features, lines)
    X = _shift_columns(X, first, n_features)
    y, classes = _labels(lines, X, label, label_type, like)
    reading = Reading(
        "libsvm",
        X.shape[1],
        label_type=label_type,
        classes=classes,
        index_base=first,
        index_base_from=base_from,
    )
    return LabeledData(densify(X, dense, name), y, source=name, reading=reading)


class DroppedFeaturesWarning(Worded, UserWarning):
    """A file has features that the model does not know."""


def _check_options(
    n_features: Any,
    zero_based: Any,
    label_type: Any,
    extra_features: Any,
    dense: Any,
    dtype: Any,
) -> None:
    if extra_features not in ("drop", "error"):
        raise ValueError(f'extra_features must be "drop" or "error", got {extra_features!r}')
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}')
    if dense not in (True, False, "auto"):
        raise ValueError(f'dense must be True, False or "auto", got {dense!r}')
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    check_label_type(label_type, _LABEL_TYPES)
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")


class _Lines:
    """The features of a file's examples, line by line.

    The labels' texts and the line numbers of the examples are kept; ``current`` is the line that
    was given last, for an error that names it.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file, self.path = file, path
        self.labels: list[str] = []
        self.numbers = array("q")
        self.current = b""

    def __iter__(self) -> Iterator[bytes]:
        distinct: dict[bytes, str] = {}  # equal labels share one string object
        for number, line in enumerate(self._file, start=1):
            content = line.partition(b"#")[0].strip()
            if not content:
                continue
            label, *features = content.split(None, 1)
            rest = features[0] if features else b""
            if b":" in label:
                label, rest = b"", content
            if label not in distinct:
                distinct[label] = label.decode("utf-8", errors="replace")
            self.labels.append(distinct[label])
            self.numbers.append(number)
            self.current = rest
            if b"_" in rest:  # Python would take 1_0 for 10
                raise ValueError("holds an underscore")
            yield rest

    def line_of(self, X: sparse.csr_matrix, entry: int) -> int:
        """The line number of the example that holds an entry of X."""
        return self.numbers[int(np.searchsorted(X.indptr, entry, side="right")) - 1]


def _parse(
    lines: _Lines, dtype: np.dtype, zero_based: bool | str, guessed: bool
) -> sparse.csr_matrix:
    """Return the features, columns numbered as in the file."""
    try:
        X = _matrix(lines, dtype)
    except DataError:
        raise
    except (ValueError, OverflowError) as error:
        if not lines.numbers:
            raise DataError(str(error), path=lines.path) from None
        problem = _features_problem(lines.current.decode("utf-8", errors="replace").split())
        place = lines.numbers[-1]
        raise DataError(problem or str(error), path=lines.path, line=place) from None
    bad = np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        entry = int(bad[0])
        message = f"value '{X.data[entry]}' of feature {X.indices[entry]} is not finite"
        raise DataError(message, path=lines.path, line=lines.line_of(X, entry))
    if zero_based is False and _has_zero(X):
        entry = int(np.flatnonzero(X.indices == 0)[0])
        words: Words = "feature index 0 in a file whose features count from 1"
        if guessed:
            base = Setting("zero_based", True)
            words = (
                words + " (a guess: the training data has no index 0; read it with " + base + ")"
            )
        raise DataError(words, path=lines.path, line=lines.line_of(X, entry))
    return X


def _matrix(lines: _Lines, dtype: np.dtype) -> sparse.csr_matrix:
    indices, values, ends = array("i"), array("d"), array("q", [0])
    for features in lines:
        pairs = [pair.split(b":") for pair in features.split()]
        if pairs and pairs[0][0] == b"qid":
            del pairs[0]
        own = [int(index) for index, _ in pairs]
        if not all(map(lt, own, own[1:])) or (own and own[0] < 0):
            raise ValueError("indices do not ascend")
        indices.extend(own)
        values.extend([float(value) for _, value in pairs])
        ends.append(len(indices))
    columns = np.frombuffer(indices, dtype=np.int32)
    width = int(columns.max()) + 1 if columns.size else 1
    data = np.frombuffer(values, dtype=np.float64).astype(dtype)
    return sparse.csr_matrix((data, columns, np.array(ends)), shape=(len(ends) - 1, width))


def _labels(
    lines: _Lines, X: sparse.csr_matrix, label: str | None, label_type: str, like: Reading | None
) -> tuple[Any, tuple[Any, ...] | None]:
    """Return the labels, and the columns' labels where they are an indicator of several."""
    if label is None:
        return None, None
    known = None if like is None else like.classes
    with_comma = next((i for i, text in enumerate(lines.labels) if "," in text), None)
    if with_comma is not None and X.nnz == 0:
        message = f"label {shown(lines.labels[with_comma])} holds a comma (for CSV: "
        raise DataError(
            message + Setting("format", "csv") + ")",
            path=lines.path,
            line=lines.numbers[with_comma],
        )
    if with_comma is not None or known is not None:
        indicator, columns = parse_label_sets(
            lines.labels, lines.numbers, label_type, lines.path, known
        )
        return indicator, tuple(columns)
    absent = next((i for i, text in enumerate(lines.labels) if not text), None)
    if absent is not None:
        if like is not None and not any(lines.labels):
            return None, None
        raise DataError(
            "no label before the first feature ("
            + Setting("label", None)
            + " reads data without labels)",
            path=lines.path,
            line=lines.numbers[absent],
        )
    return parse_labels(lines.labels, lines.numbers, label_type, lines.path), None


def _has_zero(X: sparse.csr_matrix) -> bool:
    return bool(X.indices.size) and int(X.indices.min()) == 0


def _without_extra(
    X: sparse.csr_matrix, n_features: int, first: int, action: str, lines: _Lines
) -> sparse.csr_matrix:
    """Return X without the columns beyond those expected."""
    beyond = X.indices >= n_features + first
    if not beyond.any():
        return X
    if action == "error":
        entry = int(np.flatnonzero(beyond)[0])
        raise DataError(
            f"feature index {X.indices[entry]} is beyond the {n_features} features expected",
            path=lines.path,
            line=lines.line_of(X, entry),
        )
    dropped = f"{lines.path}: {int(beyond.sum())} values of features beyond number {n_features} "
    words: Words = dropped + "were dropped"
    if first == 0 and not _has_zero(X):
        advice = ". Features are counted from 0; if those of this file count from 1, say "
        words = words + advice + Setting("zero_based", False)
    warnings.warn(DroppedFeaturesWarning(words), stacklevel=3)
    keep = ~beyond
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_matrix((X.data[keep], X.indices[keep], kept_before[X.indptr]), X.shape)


def _shift_columns(X: sparse.csr_matrix, first: int, n_features: int | None) -> sparse.csr_matrix:
    """Number the columns from 0 and set their number."""
    indices = X.indices - first
    if n_features is None:
        n_features = max(int(indices.max()) + 1 if indices.size else 0, 1)
    return sparse.csr_matrix((X.data, indices, X.indptr), shape=(X.shape[0], n_features))


def densify(X: sparse.csr_matrix, dense: bool | str, path: str) -> Matrix:
    """Return X as a dense array if that is asked for, or with "auto" takes no more memory."""
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    size = X.shape[0] * X.shape[1] * X.data.itemsize
    if dense == "auto":
        dense = size <= stored
    if not dense:
        return X
    check_read_size(size, stored, path, "the dense matrix")
    return X.toarray()


def _features_problem(tokens: list[str]) -> str | None:
    """Say what is wrong with a line's features."""
    previous = -1
    if tokens and tokens[0].startswith("qid:"):
        tokens = tokens[1:]
    for token in tokens:
        index_text, colon, value_text = token.partition(":")
        if not colon:
            return f"{shown(token)} is not an index:value pair"
        try:
            index = int(index_text)
        except ValueError:
            return f"feature index {shown(index_text)} is not an integer"
        if "_" in index_text:
            return f"feature index {shown(index_text)} is not an integer"
        if index < 0 or index > _MAX_INDEX:
            return f"feature index {index} is out of range"
        if index <= previous:
            return f"feature index {index} follows {previous}: indices must ascend"
        previous = index
        try:
            float(value_text)
        except ValueError:
            message = f"value {shown(value_text)} of feature {index} is not a number"
            return message + _decimal_comma_hint(value_text)
        if "_" in value_text:
            return f"value {shown(value_text)} of feature {index} is not a number"
    return None


def _decimal_comma_hint(value: str) -> str:
    pointed = value.replace(",", ".", 1)
    try:
        float(pointed)
    except ValueError:
        return ""
    return f" (a decimal comma? write {pointed})"


def write_libsvm(path: str | os.PathLike[str], X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write X and y as LibSVM text, compressed if the name ends in .gz, .bz2 or .xz.

    Nothing appears under ``path`` until everything is written. Labels must be numbers.
    """
    from sklearn.datasets import dump_svmlight_file

    openers: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with atomic_write(path) as part, openers[compression_suffix(path)](part, "wb") as file:
        dump_svmlight_file(X, np.asarray(y), file, zero_based=zero_based)
