"""Examples known by their inner products only: a kernel matrix, whole or in blocks of rows."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shortlist._native import blas_for
from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, as_array, readable, writable
from shortlist.solvers.kernels.gradient import certify_scores
from shortlist.solvers.kernels.visit import visit_block
from shortlist.solvers.storage.base import Costs, State, Sums, chunks
from shortlist.solvers.storage.local import LocalDuals
from shortlist.solvers.threads import Crew

# Examples in a block: its rows of the matrix are multiplied with all weights.
BLOCK = 64


class GramStorage(LocalDuals):
    """``block_of(indices)`` returns the rows K[indices, :]; ``diagonal`` is the diagonal of K.

    The weights are A = -C v, so that scores are K A.
    """

    explicit: bool = False
    support_price: float = np.inf

    def __init__(
        self,
        block_of: Callable[[NDArray], NDArray],
        diagonal: NDArray,
        dtype: np.dtype,
        bias: float = 0.0,
    ) -> None:
        self.block_of = block_of
        self.n = diagonal.size
        self.width = float(self.n)
        self.dtype = np.dtype(dtype)
        self.bias2 = float(bias) ** 2
        self.kappa = np.asarray(diagonal, np.float64) + self.bias2

    def shared_work(self, m: int) -> float:
        return 0.0

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.n, m), self.dtype)

    def squared_norm(self, weights: NDArray) -> float | None:
        return None  # sum_i <a_i, s_i>, known once all scores are

    def largest_column(self, weights: NDArray) -> float:
        # Of |w_j| = |sum_i a_ij phi(x_i)|, a bound.
        return float((np.sqrt(self.kappa) @ np.abs(weights)).max())

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        a = state.weights
        blas = blas_for(self.dtype)
        deltas = np.empty((BLOCK, a.shape[1]), self.dtype)
        nonzeros = np.empty((BLOCK, max(1, a.shape[1] // 8)), np.int32)
        work = np.empty((2, a.shape[1]), self.dtype)
        sums = a.sum(axis=0)
        bias2 = self.dtype.type(self.bias2)
        for begin in range(0, order.size, BLOCK):
            part = order[begin : begin + BLOCK]
            k = self.block_of(part)
            s = np.ascontiguousarray(k @ a)
            gram = np.ascontiguousarray(k[:, part])
            if self.bias2:
                s += bias2 * sums
                gram += bias2
            gap, _ = visit_block(
                loss.spec,
                blas,
                part,
                s,
                gram,
                costs.y,
                costs.cost,
                self.kappa,
                writable(state.duals, part.size),
                state.starts,
                every,
                deltas,
                nonzeros,
                work,
            )
            a[part] += deltas[: part.size]
            sums += deltas[: part.size].sum(axis=0)
            yield gap

    def support_epoch(
        self, loss: Loss, order: NDArray, by_class: NDArray, state: State, costs: Costs
    ) -> tuple[float, int, int]:
        raise NotImplementedError("visits on the support need explicit features")

    def certify(
        self, loss: Loss, weights: NDArray, duals: Duals, costs: Costs, crew: Crew, double: bool
    ) -> Sums:
        totals = np.zeros(5)
        if double:
            weights, duals = weights.astype(np.float64), as_array(duals).astype(np.float64)
        for part in chunks(self.n, self.n * weights.itemsize):
            certify_scores(
                loss.spec,
                self._scores(weights, part),
                part.start,
                costs.y,
                costs.cost,
                self.kappa,
                readable(duals),
                loss.smooth,
                totals,
            )
        return Sums(*totals)

    def _scores(self, weights: NDArray, part: slice) -> NDArray:
        """Scores in the precision of the weights; the entries of the matrix are data."""
        rows = self.block_of(np.arange(self.n)[part]).astype(weights.dtype, copy=False)
        s = np.ascontiguousarray(rows @ weights)
        if self.bias2:
            s += weights.dtype.type(self.bias2) * weights.sum(axis=0)
        return s

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        return (as_array(duals) * -cost[:, None]).astype(self.dtype)

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        raise NotImplementedError("descents need explicit features")

    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Duals, crew: Crew
    ) -> None:
        raise NotImplementedError("descents need explicit features")

    def class_sums(self, costs: Costs, m: int) -> NDArray:
        raise NotImplementedError("sums over classes need explicit features")

    def sample(self, step: int, first: int = 0) -> NDArray:
        raise NotImplementedError("samples need explicit features")
