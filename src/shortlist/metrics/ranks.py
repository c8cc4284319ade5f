"""The rank of the true label among the scores, as an interval where scores tie; and hits by k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.metrics.checks import NO_COLUMN, check_scores, columns_of_labels

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


@dataclass(frozen=True)
class Ranks:
    """Rank intervals with weights. Each policy: the weight right at k = 0, ..., n_classes."""

    best: NDArray[np.intp]
    worst: NDArray[np.intp]
    weights: NDArray[np.float64]
    n_classes: int

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def optimistic(self) -> NDArray[np.float64]:
        return self._accumulate(self._weight_per_rank(self.best, self.weights))

    def pessimistic(self) -> NDArray[np.float64]:
        return self._accumulate(self._weight_per_rank(self.worst, self.weights))

    def expected(self) -> NDArray[np.float64]:
        single = self.best == self.worst
        per_rank = self._weight_per_rank(self.best[single], self.weights[single])
        if not single.all():
            best, worst = self.best[~single], self.worst[~single]
            mass = self.weights[~single] / (worst - best + 1)
            # Each sample adds its mass to every rank from best to worst: mark begin and end.
            steps = self._weight_per_rank(best, mass) - self._weight_per_rank(worst + 1, mass)
            per_rank = per_rank + np.maximum(np.cumsum(steps), 0.0)
        return self._accumulate(per_rank)

    def _weight_per_rank(
        self, ranks: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.bincount(ranks, weights, minlength=self.n_classes + 2).astype(np.float64)

    def _accumulate(self, per_rank: NDArray[np.float64]) -> NDArray[np.float64]:
        # Rank n_classes + 1 (a label without a column) is right at no k. Summing in another
        # order than `total` must not push an accuracy beyond one.
        return np.minimum(np.cumsum(per_rank[: self.n_classes + 1]), self.total)
