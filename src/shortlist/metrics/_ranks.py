"""The rank of the true label among the scores, as an interval where scores tie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.metrics._inputs import NO_COLUMN, check_scores, columns_of_labels

#: Scores compared at a time: bounds the temporary masks to a megabyte or two, within cache.
_CHUNK_ELEMENTS = 1 << 20


def true_label_ranks(
    y_true: ArrayLike, scores: ArrayLike, *, labels: ArrayLike | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Best and worst rank of each true label: (1 + #greater, #greater + #equal) scores.

    The two differ only where other classes have exactly the true label's score. Nothing is
    sorted: one pass counts, per row, the scores above the true label's and those equal to it.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        The true labels. Without `labels`, integers are column numbers; labels of another kind
        name the columns in sorted order if every class occurs.
    scores : array of shape (n_samples, n_classes), or (n_samples,) for a binary decision function
        Any real scores, larger is better; infinities are allowed, NaN is not.
    labels : array of shape (n_classes,), optional
        The label of each column, such as an estimator's ``classes_``.

    Returns
    -------
    best, worst : integer arrays of shape (n_samples,)
        Ranks from 1 (the largest score) to n_classes. A true label without a column ranks
        n_classes + 1: no shortlist can contain it.
    """
    matrix = check_scores(scores)
    columns = columns_of_labels(y_true, labels, *matrix.shape)
    return ranks_of_columns(matrix, columns)


def ranks_of_columns(
    scores: NDArray[Any], columns: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Best and worst rank of one column per row; the checked core of `true_label_ranks`."""
    n_samples, n_classes = scores.shape
    greater = np.empty(n_samples, dtype=np.intp)
    equal = np.empty(n_samples, dtype=np.intp)
    step = max(1, _CHUNK_ELEMENTS // n_classes)
    may_hold_nan = scores.dtype.kind == "f"
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        block = scores[rows]
        if may_hold_nan and np.isnan(block).any():
            row = start + int(np.isnan(block).any(axis=1).argmax())
            raise ValueError(f"scores contains NaN (first in row {row})")
        own = np.take_along_axis(block, np.maximum(columns[rows], 0)[:, None], axis=1)
        greater[rows] = np.count_nonzero(block > own, axis=1)
        equal[rows] = np.count_nonzero(block == own, axis=1)
    absent = columns == NO_COLUMN
    greater[absent] = n_classes
    equal[absent] = 1
    return greater + 1, greater + equal


def top_columns(scores: NDArray, k: int) -> NDArray:
    """Column numbers of the k largest scores of each row, best first, ties to the left."""
    m = scores.shape[1]
    if k >= m:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    # A partition finds the k largest columns. Of columns tied at the cut the leftmost are taken.
    cut = np.partition(scores, m - k, axis=1)[:, m - k, None]
    above = scores > cut
    room = k - above.sum(axis=1, keepdims=True)
    at_cut = scores == cut
    chosen = above | (at_cut & (np.cumsum(at_cut, axis=1) <= room))
    columns = np.nonzero(chosen)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
