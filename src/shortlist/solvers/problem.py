"""The training problem, its certificate and its gradient.

primal   P(W) =  1/2 |W|^2 + sum_i C_i L(y_i, W'x_i)
dual     D(v) = -1/2 |W|^2 - sum_i C_i L*(y_i, v_i),     W = -sum_i C_i x_i v_i'
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import readable, store, zero_duals
from shortlist.solvers.rows import Costs, GramRows, Rows, State, chunks
from shortlist.solvers.threads import threads_allowed
from shortlist.solvers.visit import evaluate_rows, gradient_rows

# More would wait for memory; fewer scores than this are done before threads have started.
_MOST_THREADS = 4
_WORTH_THREADS = 1 << 16


@dataclass(frozen=True)
class Problem:
    """Examples, labels 0..m-1, costs C_i and a loss."""

    rows: Rows
    costs: Costs
    n_classes: int
    loss: Loss

    def zero_state(self) -> State:
        """v = 0, W = 0. Zero is in the domain of every conjugate here."""
        n, m = self.rows.n, self.n_classes
        # The weights of a Gram matrix are of that size anyway.
        sparse = self.loss.sparse_duals and not isinstance(self.rows, GramRows)
        duals = zero_duals(n, m, self.rows.dtype, sparse)
        return State(self.rows.zero_weights(m), duals, np.zeros((n, 2)))

    def parts(self) -> Iterator[slice]:
        """Slices of examples whose features or scores take a few dozen megabytes."""
        width = max(self.n_classes, getattr(self.rows, "d", self.rows.n))
        return chunks(self.rows.n, width * self.rows.dtype.itemsize)

    def evaluate(self, state: State, dual_norm: float | None = None) -> tuple[float, float]:
        """The primal and the dual objective of a state.

        Its weights are taken for those of its duals unless ``dual_norm`` is |W|^2 of the latter.
        """
        totals = np.zeros(3)
        for part in self.parts():
            scores = self.rows.scores(state.weights, part)
            y, cost, duals = self.costs.y[part], self.costs.cost[part], state.duals[part]
            totals += _sum_over_threads(evaluate_rows, self.loss.spec, scores, y, cost, duals)
        losses, conjugates, products = totals
        norm = self.rows.squared_norm(state.weights)
        if norm is None:
            norm = -products
        if dual_norm is None:
            dual_norm = norm
        return 0.5 * norm + losses, -0.5 * dual_norm - conjugates

    def primal(self, weights: NDArray) -> float:
        """P(W) of explicit weights, in double."""
        w = weights.astype(np.float64)
        value = 0.5 * float(np.vdot(w, w))
        for _, losses, _ in self._loss_gradients(weights, self.costs.cost):
            value += losses
        return value

    def primal_gradient(self, weights: NDArray) -> tuple[float, NDArray]:
        """P(W) and its gradient W + sum_i C_i x_i grad L', in double."""
        gradient = weights.astype(np.float64)
        value = 0.5 * float(np.vdot(gradient, gradient))
        for part, losses, g in self._loss_gradients(weights, self.costs.cost):
            value += losses
            gradient += self.rows.products(g, part)
        return value, gradient

    def gradients(self, weights: NDArray, part: slice) -> NDArray:
        """Each example's grad L at its scores."""
        return self._loss_gradient(weights.astype(self.rows.dtype), np.ones(self.rows.n), part)[1]

    def fill_duals(self, weights: NDArray, state: State) -> None:
        """Put v_i = grad L at the scores of ``weights`` into the state, and W to match.

        In place: duals are the largest thing in memory.
        """
        for part, _, g in self._loss_gradients(weights, np.ones(self.rows.n)):
            store(state.duals, part, self.costs.y[part], g)
        state.weights = self.rows.rebuild(state.duals, self.costs.cost)

    def _loss_gradients(
        self, weights: NDArray, factors: NDArray
    ) -> Iterator[tuple[slice, float, NDArray]]:
        """By parts, the sum of c_i L and the rows c_i grad L at the scores of ``weights``."""
        w = weights.astype(self.rows.dtype)
        for part in self.parts():
            yield part, *self._loss_gradient(w, factors, part)

    def _loss_gradient(self, w: NDArray, factors: NDArray, part: slice) -> tuple[float, NDArray]:
        scores = self.rows.scores(w, part)
        g = np.empty_like(scores)
        # Kernels are compiled for arrays without steps.
        y, c = np.ascontiguousarray(self.costs.y[part]), np.ascontiguousarray(factors[part])
        return float(_sum_over_threads(gradient_rows, self.loss.spec, scores, y, c, g)), g


def _sum_over_threads(kernel: Callable[..., Any], spec: Any, *columns: Any) -> Any:
    """The sum of kernel(spec, *columns) over a division of the rows; kernels need no GIL."""
    n = len(columns[0])
    threads = threads_allowed(_MOST_THREADS)
    if threads == 1 or columns[0].size < _WORTH_THREADS:
        return np.asarray(kernel(spec, *(readable(column) for column in columns)))
    bounds = np.linspace(0, n, threads + 1).astype(int)

    def share(begin: int, end: int) -> Any:
        return kernel(spec, *(readable(column[begin:end]) for column in columns))

    with ThreadPoolExecutor(max_workers=threads) as pool:
        return np.sum(list(pool.map(share, bounds[:-1], bounds[1:])), axis=0)
