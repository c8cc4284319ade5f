"""Shortlists that cannot change: how far the scores of a model are from those of the exact optimum.

The weights of class c are within d_c of the optimum's, so that its score for x moves by at most
|x| d_c, and a label outside the shortlist overtakes one in it only if their scores differ by less
than |x| (d_a + d_b). If all weights together move by d, two classes move by at most d / sqrt(2)
each in the worst case: d_c = d / sqrt(2) for every class. A separable loss trains each class for
itself. Each then has a gap of its own, and these add up to the whole gap.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from shortlist._parameters import check_k
from shortlist.estimators.inputs import check_input
from shortlist.estimators.normalization import normalized
from shortlist.estimators.parameters import constant_feature
from shortlist.estimators.warm_starts import LastFit
from shortlist.losses import Loss
from shortlist.losses.domains import feasible
from shortlist.solvers.duals import as_array
from shortlist.solvers.records.certificate import (
    KERNEL_ULPS,
    STANDARD_DEVIATIONS,
    distance_to_optimum,
)
from shortlist.solvers.storage.base import chunks

# A score so far on its right side that one-vs-all losses are zero, to all digits of double.
ZERO_LOSS_SCORE = 1e4
# A bound on the rounding error of scores, in units in the last place of the largest score.
SCORE_ULPS = 8


class CertifiedShortlists:
    """The part of a linear classifier that says which of its shortlists cannot change."""

    # How far each class is from its optimum, by the duals of the last fit. Computed at first use.
    _own_distances: NDArray | None = None

    def certified_topk(self, X: ArrayLike, k: int | None = None) -> NDArray:
        """For which rows the shortlist of k labels is provably that of the exact optimum.

        All weights together are within ``result_.distance`` of the optimum's, between sqrt(gap)
        and sqrt(2 gap). The difference of two labels' scores then changes by at most
        sqrt(2) |x| times that, |x| with the constant feature of the intercept. A row is certified
        if every label in the shortlist is further above every label outside. The order within the
        shortlist may differ.

        One-vs-all losses have a gap for each class, which bounds much better. It is computed from
        the data and duals of the last fit, by one pass over them at the first call, if the model
        has them: see :meth:`update`. From then on it goes with the model, also into a file.

        A loss without a certificate (the truncated entropy) certifies no row, nor does an
        intercept that is not regularised, in which the objective is not strongly convex.
        """
        check_is_fitted(self)
        scores = self._scores(X)  # type: ignore[attr-defined]
        m = scores.shape[1]
        k = check_k(self.k if k is None else k, m, "the number of classes")  # type: ignore[attr-defined]
        X = normalized(check_input(self, X, reset=False), self.normalize)  # type: ignore[attr-defined]
        return self._certain(X, scores, np.array([k]))[0]

    def _certain(self, X: Any, scores: NDArray, ks: NDArray) -> NDArray:
        """Whether the shortlists of every k in ``ks`` cannot change: (len(ks), n).

        X is checked and normalised, and ``scores`` are its scores.
        """
        n, m = scores.shape
        certain = np.repeat((ks == m)[:, None], n, axis=1)
        norms, rounding = self._norms(X), _rounding(scores)
        spread = np.ptp(scores, axis=1)
        for distances in self._class_distances():
            if not (2.0 * norms * distances.min() < spread).any():
                continue
            if distances.min() == distances.max():
                certain |= _apart_by_more(scores, norms * distances[0], rounding, ks)
                continue
            reach = norms[:, None] * distances
            lowest, highest = scores - reach, scores + reach
            for row, k in enumerate(ks):
                if k < m:
                    order = np.argpartition(scores, m - k, axis=1)
                    inside = np.take_along_axis(lowest, order[:, m - k :], axis=1).min(axis=1)
                    outside = np.take_along_axis(highest, order[:, : m - k], axis=1).max(axis=1)
                    certain[row] |= inside - outside > rounding
        return certain

    def _norms(self, X: Any) -> NDArray:
        """|x| of each row, with the constant feature of the intercept."""
        bias = constant_feature(self)
        return np.sqrt(row_norms(X, squared=True).astype(np.float64) + bias**2)

    def _class_distances(self) -> list[NDArray]:
        """Arrays of bounds d_c, one for every class. Each array holds for all pairs of classes.

        The first comes from the gap as a whole, the second from a gap for each class. The list is
        empty where no bound is known.
        """
        model: Any = self
        distance = model.result_.distance
        if not np.isfinite(distance) or model.fit_intercept == "free":
            return []
        last: LastFit | None = getattr(self, "_last", None)
        kept = last is not None and last.rows is not None and len(last.solution.state.duals) > 0
        if kept and self._own_distances is None and model._separable:
            assert last is not None
            self._own_distances = distances_of_classes(last, constant_feature(self))
        shared = np.full(len(model.classes_), distance / np.sqrt(2.0))
        return [shared] if self._own_distances is None else [shared, self._own_distances]


def _apart_by_more(scores: NDArray, reach: NDArray, rounding: Any, ks: NDArray) -> NDArray:
    """Whether the k-th score stays above the next if both change by ``reach``: (len(ks), n)."""
    m = scores.shape[1]
    found = np.zeros((len(ks), len(scores)), bool)
    longest = max((k for k in ks if k < m), default=0)
    # One partition and a sort of the largest scores is faster than a partition at several places.
    largest = np.sort(np.partition(scores, m - longest - 1, axis=1)[:, m - longest - 1 :], axis=1)
    for row, k in enumerate(ks):
        if k < m:
            inside, outside = largest[:, longest + 1 - k] - reach, largest[:, longest - k] + reach
            found[row] = inside - outside > rounding
    return found


def distances_of_classes(last: LastFit, bias: float) -> NDArray:
    """Bounds on |w_c - w_c*|, for each class of a separable loss, from the duals of the last fit.

    Computed in double. Each class has the certificate of the whole problem, with sums over its own
    scores and duals only. The bound on rounding is made the same way.
    """
    assert last.rows is not None
    X, costs, loss = last.rows.X, last.costs, last.loss
    weights = last.solution.weights.astype(np.float64)
    n, m = X.shape[0], weights.shape[1]
    terms, sizes, lengths = np.zeros(m), np.zeros(m), 0.0
    of_duals = np.zeros_like(weights)
    for part in chunks(n, 8 * 8 * m):  # eight arrays of m doubles a row
        rows, cost, y = X[part].astype(np.float64), costs.cost[part], costs.y[part]
        scores = np.asarray(rows @ weights[:-1]) + bias * weights[-1]
        right = np.arange(m) == y[:, None]
        # Single precision keeps duals in their domain to the last place only.
        duals = feasible(loss.spec, as_array(last.solution.state.duals[part]), y)
        values, conjugates = _by_class(loss, scores, duals, right)
        terms += cost @ (values + conjugates - scores * duals)
        sizes += cost @ (np.abs(values) + np.abs(conjugates) + np.abs(scores * duals))
        lengths += float(cost @ np.sqrt(row_norms(rows, squared=True) + bias**2))
        moved = -cost[:, None] * duals
        of_duals[:-1] += np.asarray(rows.T @ moved)
        of_duals[-1] += bias * moved.sum(axis=0)
    unit = 0.5 * float(np.finfo(np.float64).eps)
    norms = np.linalg.norm(weights, axis=0)
    rounding = unit * (
        KERNEL_ULPS * sizes + STANDARD_DEVIATIONS * np.sqrt(len(weights)) * norms * lengths
    )
    apart = np.linalg.norm(weights - of_duals, axis=0)
    gaps = 0.5 * apart**2 + np.maximum(terms, 0.0) + rounding
    return np.array([distance_to_optimum(*pair) for pair in zip(gaps, apart, strict=True)])


def _by_class(
    loss: Loss, scores: NDArray, duals: NDArray, right: NDArray
) -> tuple[NDArray, NDArray]:
    """Values and conjugates of a separable loss, class by class: (n, m) each.

    The part of a class is the loss of two classes, of which the other one's part is zero.
    """
    # Column 0 is the class itself, column 1 the other. Its score makes its part zero: far below
    # zero if the class is the right one, far above otherwise.
    labels = np.where(right, 0, 1).reshape(-1)
    without_loss = np.where(right, -ZERO_LOSS_SCORE, ZERO_LOSS_SCORE)
    values = loss.value(np.stack([scores, without_loss], axis=-1).reshape(-1, 2), labels)
    conjugates = loss.conjugate(
        np.stack([duals, np.zeros_like(duals)], axis=-1).reshape(-1, 2), labels
    )
    return values.reshape(scores.shape), conjugates.reshape(scores.shape)


def _rounding(scores: NDArray) -> NDArray:
    """A bound on the rounding error in differences of a row's scores."""
    return SCORE_ULPS * np.finfo(scores.dtype).eps * np.abs(scores).max(axis=1)
