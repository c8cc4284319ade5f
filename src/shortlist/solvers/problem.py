"""The training problem: its objectives, certificates and gradients.

primal   P(W) =  1/2 |W|^2 + sum_i C_i L(y_i, W'x_i)
dual     D(v) = -1/2 |W|^2 - sum_i C_i L*(y_i, v_i),     W = -sum_i C_i x_i v_i'
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.losses.domains import domain_is_known
from shortlist.solvers.duals import Duals
from shortlist.solvers.records.certificate import (
    Certificate,
    certificate,
    rounding_in_duals,
    rounding_in_sums,
    rounding_in_weights,
)
from shortlist.solvers.storage.base import (
    Costs,
    OutdatedWeightsError,
    State,
    Storage,
    squared_norm,
)
from shortlist.solvers.threads import Crew

# Of the gap asked for, the part that bounds on rounding may take before double is used.
MOST_ROUNDING = 0.25


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

    @property
    def keeps_duals(self) -> bool:
        """Whether SDCA can run. It would break the condition on duals of a free intercept."""
        return self.storage.keeps_duals and not self.free_intercept

    @property
    def at_zero(self) -> float:
        """P(0)."""
        if not self.loss.multilabel:
            totals = np.bincount(self.costs.y, self.costs.cost, minlength=self.n_classes)
            return float(totals @ self.loss.values_at_zero(self.n_classes))
        one = np.zeros((1, self.n_classes))
        counts = (self.costs.y >= 0).sum(axis=1)
        total = 0.0
        for count in np.unique(counts[self.costs.cost > 0]):
            labels = np.zeros((1, self.n_classes))
            labels[0, :count] = 1
            value = self.loss.value(one, labels)[0]
            total += float(value * self.costs.cost[counts == count].sum())
        return total

    def zero_state(self) -> State:
        """v = 0, W = 0. Zero is in the domain of every conjugate here."""
        return State(
            self.storage.zero_weights(self.n_classes),
            self.zero_duals(),
            np.zeros((self.storage.n, 2)),
        )

    def zero_duals(self) -> Duals:
        return self.storage.zero_duals(self.n_classes, self.loss.sparse_duals)

    def certify(self, state: State, wanted: float = 0.0) -> Certificate:
        """The gap of the state's weights and duals, which belong together but for rounding.

        Where the bound on rounding is more than a part of ``wanted``, the gap asked for, weights
        are rebuilt from the duals, or the sums computed in double.
        """
        storage = self.storage
        single = storage.dtype != np.float64
        most = MOST_ROUNDING * wanted
        drift = rounding_in_weights(state.rounding, storage.dtype)
        if drift > 0.5 * most or not storage.explicit:
            self.rebuild(state)
            drift = rounding_in_weights(state.rounding, storage.dtype)
        try:
            # Without explicit weights |W|^2 is a sum of products: single precision rounds it more.
            found = self._certificate(state, drift, double=not storage.explicit)
        except OutdatedWeightsError:
            self.rebuild(state)
            return self.certify(state, wanted)
        if single and storage.explicit and found.rounding > most:
            if wanted > 0 and found.primal - found.dual - found.rounding > wanted:
                return found  # not there yet, with or without rounding
            found = self._certificate(state, drift, double=True)
        return found

    def _certificate(self, state: State, drift: float, double: bool) -> Certificate:
        storage = self.storage
        sums = storage.certify(self.loss, state.weights, state.duals, self.costs, self.crew, double)
        norm = storage.squared_norm(state.weights)
        dtype = np.dtype(np.float64) if double else storage.dtype
        column = storage.largest_column(state.weights)
        rounding = rounding_in_sums(sums, storage.width, column, dtype)
        if norm is None:  # the weights are the duals but for a factor, and rounding
            norm = -sums.products
            rounding += float(np.finfo(storage.dtype).eps) * (abs(norm) + sums.sizes)
        elif double:
            rounding += rounding_in_duals(sums, domain_is_known(self.loss), storage.dtype)
        return certificate(sums, norm, drift, rounding)

    def rebuild(self, state: State) -> None:
        """Set the weights to those of the duals."""
        weights = self.storage.rebuild(state.duals, self.costs.cost)
        state.weights = np.ascontiguousarray(weights, self.storage.dtype)
        # What is left is one rounding of each weight. Without explicit weights these are the
        # duals but for a factor, and belong to them whatever they round to.
        state.rounding = 4.0 * squared_norm(state.weights) if self.storage.explicit else 0.0

    def primal(self, weights: NDArray) -> float:
        """P(W)."""
        return self.primal_gradient(weights)[0]

    def primal_gradient(self, weights: NDArray, double: bool = False) -> tuple[float, NDArray]:
        """P(W) and its gradient W + sum_i C_i x_i grad L'; in double if asked."""
        losses, gradient = self.storage.loss_gradient(
            self.loss, weights, self.costs, self.crew, double
        )
        penalised = slice(0, -1 if self.free_intercept else None)
        gradient[penalised] += weights[penalised]
        return 0.5 * squared_norm(weights[penalised]) + losses, gradient

    def fill_duals(self, weights: NDArray, state: State) -> None:
        """Put v_i = grad L at the scores of ``weights`` into the state, and W to match."""
        self.storage.fill_duals(self.loss, weights, self.costs, state.duals, self.crew)
        self.rebuild(state)
