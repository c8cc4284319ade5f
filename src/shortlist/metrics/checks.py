"""Checks what the metrics receive and turns labels into column numbers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: The column number of a label that no column of the scores stands for.
NO_COLUMN = -1


def check_scores(scores: ArrayLike) -> NDArray[Any]:
    """Scores as a real matrix (n_samples, n_classes).

    One-dimensional scores are a binary decision function: positive favours the second class.
    NaN is looked for later, chunk by chunk; infinities are legitimate scores.
    """
    matrix = np.asarray(scores)
    if matrix.dtype == object or matrix.dtype.kind in "US":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError("scores must be an array of real numbers") from error
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"scores must be real numbers, got dtype {matrix.dtype}")
    if matrix.ndim == 1:
        second = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
        matrix = np.column_stack([-second, second])
    if matrix.ndim != 2:
        raise ValueError(
            "scores must have shape (n_samples, n_classes), or (n_samples,) for a binary "
            f"decision function; got shape {matrix.shape}"
        )
    if 0 in matrix.shape:
        raise ValueError(f"scores is empty: shape {matrix.shape}")
    return matrix


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Nonnegative weights with a positive, finite sum; ones by default."""
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("sample_weight must be an array of real numbers") from error
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},) like y_true, got {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and nonnegative")
    largest = weights.max()
    if largest == 0:
        raise ValueError("sample_weight must contain at least one positive weight")
    if largest > np.finfo(np.float64).max / n_samples:
        return weights / largest  # the sum would overflow
    return weights


def columns_of_labels(
    y_true: ArrayLike,
    labels: ArrayLike | None,
    n_samples: int,
    n_classes: int,
    name: str = "y_true",
) -> NDArray[np.intp]:
    """The column of each true label, NO_COLUMN where `labels` does not list it.

    Without `labels`, integers are column numbers, and labels of any other kind are matched to
    the columns in sorted order, provided that every class occurs. ``name`` is what the user calls
    the true labels.
    """
    true = _label_array(y_true, name)
    if len(true) != n_samples:
        raise ValueError(f"{name} has {len(true)} labels but scores has {n_samples} rows")
    if labels is None:
        if true.dtype.kind in "biu":
            return _check_column_numbers(true, n_classes, name)
        if true.dtype == object:
            raise ValueError(f"{name} mixes kinds of labels; pass labels= to name the columns")
        distinct = np.unique(true)
        if len(distinct) != n_classes:
            raise ValueError(
                f"{name} has {len(distinct)} distinct labels but scores has {n_classes} columns; "
                "pass labels= (an estimator's classes_) to say which column is which label"
            )
        return _lookup(true, distinct)
    names = _label_array(labels, "labels")
    if len(names) != n_classes:
        raise ValueError(f"labels has {len(names)} entries but scores has {n_classes} columns")
    if len(set(names.tolist())) != n_classes:
        raise ValueError("labels must be distinct")
    # Text never equals a number: without this check every prediction would count as wrong.
    if "O" not in (true.dtype.kind, names.dtype.kind) and (true.dtype.kind == "U") != (
        names.dtype.kind == "U"
    ):
        raise TypeError(
            f"{name} holds {_kind(true)} but labels holds {_kind(names)}: they can never match"
        )
    return _lookup(true, names)


def _kind(labels: NDArray[Any]) -> str:
    return "text" if labels.dtype.kind == "U" else "numbers"


def _label_array(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Labels as a one-dimensional array: integers, floats, text, or objects as a last resort."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if len(array) == 0:
        raise ValueError(f"{name} is empty")
    if array.dtype == object:
        values = array.tolist()
        if any(map(is_missing, values)):
            raise ValueError(f"{name} contains missing values")
        if all(isinstance(value, str) for value in values):
            return array.astype(str)
        if all(isinstance(value, Integral) for value in values):
            return array.astype(np.int64)
        return array
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains missing or infinite values")
        # pandas often turns integer columns into floats.
        if (array == np.floor(array)).all() and (np.abs(array) < 2**53).all():
            return array.astype(np.int64)
    return array


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or the NA of pandas, which cannot be compared."""
    return label is None or type(label).__name__ == "NAType" or label != label


def _check_column_numbers(true: NDArray[Any], n_classes: int, name: str) -> NDArray[np.intp]:
    outside = (true < 0) | (true >= n_classes) if true.dtype.kind != "b" else true >= n_classes
    if outside.any():
        raise ValueError(
            f"{name} contains {true[outside][0]}, but scores has {n_classes} columns; without "
            f"labels= an integer label is a column number from 0 to {n_classes - 1}. Pass labels= "
            "(an estimator's classes_) to say which column is which label"
        )
    return true.astype(np.intp)


def _lookup(true: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    if "O" in (true.dtype.kind, names.dtype.kind):
        column = {name: number for number, name in enumerate(names.tolist())}
        return np.array([column.get(label, NO_COLUMN) for label in true.tolist()], dtype=np.intp)
    order = np.argsort(names)
    place = np.minimum(np.searchsorted(names, true, sorter=order), len(names) - 1)
    candidate = order[place]
    return np.where(names[candidate] == true, candidate, NO_COLUMN).astype(np.intp)
