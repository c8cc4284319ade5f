"""The training problem: its objectives, certificates and gradients.

primal   P(W) =  1/2 |W|^2 + sum_i C_i L(y_i, W'x_i)
dual     D(v) = -1/2 |W|^2 - sum_i C_i L*(y_i, v_i),     W = -sum_i C_i x_i v_i'
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.losses.domains import domain_of
from shortlist.solvers.duals import Duals
from shortlist.solvers.records.certificate import (
    Certificate,
    RoundedGradient,
    certificate,
    certificate_by_gradient,
    rounding_in_duals,
    rounding_in_scores,
    rounding_in_sums,
    rounding_in_weights,
)
from shortlist.solvers.storage.base import (
    NO_SHARES,
    STANDARD_DEVIATIONS,
    Costs,
    KeptScores,
    OutdatedWeightsError,
    State,
    Storage,
    rounding_of_weights,
    squared_norm,
    unit_roundoff,
)
from shortlist.solvers.threads import Crew

# Of the gap asked for, the part that bounds on rounding may take before double is used.
MAX_ROUNDING_SHARE_OF_GAP = 0.25
# Below this ratio of 1/2 |W|^2 to P(0), sum losses in double: rounding would take a twentieth of a
# relative gap of 1e-3.
MAX_GAIN_FOR_DOUBLE = 0.02
# Examples a feature that second moments are made of.
MOMENT_SAMPLES_PER_FEATURE = 10
# With more classes, gradients at zero of all labels together would be large.
MAX_CLASSES_FOR_PROMISE = 4096
# A score larger than any margin: gradients there have their largest norm.
SATURATING_SCORE = 1e12


def rounds_too_much(found: Certificate, wanted: float) -> bool:
    """Whether :meth:`Problem.certify` would compute this certificate in another way.

    It would if it knew that this gap is wanted: W anew, or sums in double. The drift of W, which
    may take half as much as all rounding, is part of the bound.
    """
    return found.rounding > 0.5 * MAX_ROUNDING_SHARE_OF_GAP * wanted


class Moments:
    """Second moments of a problem's examples, made once for all C."""

    def __init__(self) -> None:
        self._made: NDArray | None = None

    def of(self, storage: Storage, costs: Costs) -> NDArray:
        """sum_i C_i x_i x_i' / sum_i C_i, the constant feature last, from a sample of examples."""
        if self._made is None:
            step = max(1, int(storage.n / (MOMENT_SAMPLES_PER_FEATURE * storage.width)))
            x, cost = storage.sample(step), costs.cost[::step]
            shares = cost / max(float(cost.sum()), np.finfo(float).tiny)
            weighted = (x * np.sqrt(shares)[:, None]).astype(storage.dtype)
            self._made = weighted.T @ weighted  # half the products: BLAS knows it is symmetric
        return self._made


@dataclass(frozen=True)
class Problem:
    """Examples, labels 0..m-1, costs C_i and a loss; ``crew`` are the threads that work on it.

    ``free_intercept`` is the value of the constant feature if its weights, the last row of W, are
    not regularised; such a problem is trained by descents only.
    """

    storage: Storage
    costs: Costs
    n_classes: int
    loss: Loss
    crew: Crew = field(default_factory=Crew)
    free_intercept: float = 0.0
    moments: Moments = field(default_factory=Moments, repr=False, compare=False)
    kept_scores: KeptScores = field(default_factory=KeptScores, repr=False, compare=False)

    @property
    def keeps_duals(self) -> bool:
        """Whether SDCA can run. It would break the condition on duals of a free intercept."""
        able = self.storage.keeps_duals and not self.free_intercept
        return able and self.loss.dual_loss.has_dual_step

    @property
    def penalised(self) -> slice:
        """The rows of W that are regularised."""
        return slice(0, -1 if self.free_intercept else None)

    @cached_property
    def at_zero(self) -> float:
        """P(0)."""
        if not self.loss.multilabel:
            totals = np.bincount(self.costs.y, self.costs.cost, minlength=self.n_classes)
            return float(totals @ self.loss.values_at_zero(self.n_classes))
        one = np.zeros((1, self.n_classes))
        total = 0.0
        for labels, rows in self._numbers_of_labels():
            value = self.loss.value(one, labels)[0]
            total += float(value * self.costs.cost[rows].sum())
        return total

    @cached_property
    def promised_gain(self) -> float:
        """What the gradient at W = 0 promises: 1/2 |grad P(0)|^2, P(0) at most; 0: unknown.

        P is 1-strongly convex, so that P(0) - P(W) is no larger. Where L has kinks at zero, all
        wrong classes get the mean of their slopes.
        """
        m = self.n_classes
        if self.loss.multilabel or not self.storage.explicit or m > MAX_CLASSES_FOR_PROMISE:
            return 0.0
        slopes = self.loss.row_gradients(np.zeros((m, m)), np.arange(m))
        own = np.diagonal(slopes).copy()
        slopes[:] = ((slopes.sum(axis=1) - own) / (m - 1))[:, None]
        slopes[np.diag_indices(m)] = own
        gradient = self.storage.class_sums(self.costs, m) @ slopes
        return min(0.5 * squared_norm(gradient), self.at_zero)

    def _numbers_of_labels(self) -> Iterator[tuple[NDArray, NDArray]]:
        """For each number of right labels: the first so many, and which examples have as many."""
        counts = (self.costs.y >= 0).sum(axis=1)
        for count in np.unique(counts[self.costs.cost > 0]):
            labels = np.zeros((1, self.n_classes))
            labels[0, :count] = 1
            yield labels, counts == count

    @cached_property
    def reach(self) -> float:
        """sqrt(sum_i (C_i |x_i| r)^2), r the largest 1-norm of a gradient.

        Gradients are at least zero for wrong labels and at most zero for right ones, so that
        their 1-norm is the slope of the loss where the ones rise and the others fall.
        """
        if self.loss.multilabel:
            r = max(
                (self._largest_gradient_norm(labels) for labels, _ in self._numbers_of_labels()),
                default=0.0,
            )
        else:
            r = self._largest_gradient_norm(np.eye(1, self.n_classes))
        return r * sqrt(float(self.storage.kappa @ np.square(self.costs.cost)))

    def _largest_gradient_norm(self, labels: NDArray) -> float:
        """The largest 1-norm of a gradient of an example with these labels."""
        worst = SATURATING_SCORE * (1.0 - 2.0 * labels)
        gradient = self.loss.gradient(worst, labels if self.loss.multilabel else [0])
        return float(np.abs(gradient).sum())

    def doubt(self, weights: NDArray, double: bool = False) -> float:
        """A bound on what rounded scores do to an objective computed from these weights."""
        if not self.storage.explicit:
            return 0.0  # always in double, with an allowance of its own
        dtype = np.dtype(np.float64) if double else self.storage.dtype
        column = self.storage.largest_column(weights)
        return rounding_in_scores(self.reach, self.storage.width, column, dtype)

    def zero_state(self) -> State:
        """v = 0, W = 0. Zero is in the domain of every conjugate here."""
        return State(
            self.storage.zero_weights(self.n_classes),
            self.zero_duals(),
            np.zeros((self.storage.n, 2)),
        )

    def zero_duals(self) -> Duals:
        return self.storage.zero_duals(self.n_classes, self.loss.sparse_duals)

    def certify(
        self,
        state: State,
        wanted: float = 0.0,
        best: float = np.inf,
        shares: NDArray = NO_SHARES,
    ) -> Certificate:
        """The gap of the state's weights and duals, which belong together but for rounding.

        Where the bound on rounding is more than a part of ``wanted``, the gap asked for, weights
        are rebuilt from the duals, or the sums computed in double. So are sums where rounding alone
        keeps the dual bound from being good enough for another primal, ``best``.

        ``shares`` takes each example's share of the gap, where rows are at hand.
        """
        storage = self.storage
        single = storage.dtype != np.float64
        most = MAX_ROUNDING_SHARE_OF_GAP * wanted
        drift = rounding_in_weights(state.rounding, storage.dtype)
        if drift > 0.5 * most or not storage.explicit:
            self.rebuild(state)
            drift = rounding_in_weights(state.rounding, storage.dtype)
        try:
            # Without explicit weights |W|^2 is a sum of products: single precision rounds it more.
            found = self._certificate(state, drift, not storage.explicit, shares)
        except OutdatedWeightsError:
            self.rebuild(state)
            return self.certify(state, wanted, best, shares)
        if single and storage.explicit:
            if found.rounding > most:
                # Double decides, unless the gap is too large with or without rounding.
                decisive = wanted <= 0 or found.primal - found.dual - found.rounding <= wanted
            else:
                decisive = best - found.dual <= wanted < best - found.alone
            if decisive:
                found = self._certificate(state, drift, True, shares)
        return found

    def _certificate(
        self, state: State, drift: float, double: bool, shares: NDArray
    ) -> Certificate:
        storage = self.storage
        sums = storage.certify(
            self.loss, state.weights, state.duals, self.costs, self.crew, double, shares
        )
        norm = storage.squared_norm(state.weights)
        dtype = np.dtype(np.float64) if double else storage.dtype
        column = storage.largest_column(state.weights)
        rounding = rounding_in_sums(sums, storage.width, column, dtype)
        if norm is None:
            norm = -sums.products
        if not storage.explicit:  # the weights are the duals but for a factor, and rounding
            rounding += float(np.finfo(storage.dtype).eps) * (abs(norm) + sums.sizes)
        elif double:
            rounding += rounding_in_duals(
                sums, domain_of(self.loss.spec) is not None, storage.dtype
            )
        doubt = self.doubt(state.weights, double)
        return certificate(sums, norm, drift, rounding, doubt, self.loss.smooth)

    def pair(
        self, primal: float, dual: float, weights: NDArray, double: bool = False
    ) -> Certificate:
        """A primal at some weights and a bound that was computed along with it."""
        doubt = self.doubt(weights, double)
        return Certificate(primal, dual, 0.0, doubt, dual - doubt)

    def rebuild(self, state: State) -> None:
        """Set the weights to those of the duals."""
        weights = self.storage.rebuild(state.duals, self.costs.cost)
        state.weights = np.ascontiguousarray(weights, self.storage.dtype)
        # Each weight has been rounded once. Without explicit weights, the weights are the duals
        # times a factor. They belong to these duals however they are rounded: there is no drift.
        explicit = self.storage.explicit
        state.rounding = rounding_of_weights(state.weights) if explicit else 0.0

    def primal(self, weights: NDArray) -> float:
        """P(W)."""
        return self.primal_gradient(weights)[0]

    def primal_beside(self, weights: NDArray, duals: Duals) -> float:
        """P(W) in double. The kernel is that of certificates; the duals need not belong to W."""
        sums = self.storage.certify(self.loss, weights, duals, self.costs, self.crew, True)
        return 0.5 * squared_norm(weights) + sums.losses

    def primal_gradient(self, weights: NDArray, double: bool = False) -> tuple[float, NDArray]:
        """P(W) and its gradient W + sum_i C_i x_i grad L'; in double if asked."""
        losses, gradient = self.storage.loss_gradient(
            self.loss, weights, self.costs, self.crew, double
        )
        regularised = weights[self.penalised]
        gradient[self.penalised] += regularised
        return 0.5 * squared_norm(regularised) + losses, gradient

    def bounded_gradient(
        self, weights: NDArray, keep: bool = False
    ) -> tuple[float, NDArray, Certificate | None]:
        """P(W) and its gradient, and a certificate from bounds on their rounding, if there is one.

        Where little can be gained, losses are computed in double. With ``keep`` the scores are kept
        where that spares a product.
        """
        storage = self.storage
        square = squared_norm(weights)
        wide = 0.5 * square < MAX_GAIN_FOR_DOUBLE * self.at_zero
        losses, gradient, lengths = storage.bounded_gradient(
            self.loss, weights, self.costs, self.crew, wide, self.kept_scores if keep else None
        )
        if self.free_intercept:
            regularised = weights[self.penalised]
            gradient[self.penalised] += regularised
            return 0.5 * squared_norm(regularised) + losses, gradient, None
        gradient += weights
        primal = 0.5 * square + losses
        if lengths is None or not isfinite(primal):
            return primal, gradient, None
        rounded = RoundedGradient(
            sqrt(squared_norm(gradient)),
            sqrt(square),
            storage.largest_column(weights),
            losses,
            lengths,
            storage.width,
            self.largest_row_norm,
            storage.dtype,
        )
        return primal, gradient, certificate_by_gradient(primal, rounded)

    @cached_property
    def largest_row_norm(self) -> float:
        """The largest |x_i|."""
        return sqrt(float(self.storage.kappa.max(initial=0.0)))

    def fill_duals(
        self,
        weights: NDArray,
        state: State,
        gradient: NDArray | None = None,
        error: float = inf,
    ) -> None:
        """Put v_i = grad L at the scores of ``weights`` into the state, and W to match.

        The weights of these duals are W - grad P(W). If the gradient is known they are taken for
        that, and made from the duals only when a certificate asks for them. Rounding has moved the
        gradient by ``error`` at most, and may move duals as much.
        """
        self.storage.fill_duals(self.loss, weights, self.costs, state.duals, self.crew)
        if gradient is None:
            self.rebuild(state)
        else:
            state.weights = np.ascontiguousarray(weights - gradient, self.storage.dtype)
            unit = STANDARD_DEVIATIONS * unit_roundoff(self.storage.dtype)
            state.rounding = (2.0 * error / unit) ** 2
