"""Examples known by their inner products only: a kernel matrix, whole or in blocks of rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import blas_for
from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, as_array, readable, writable
from shortlist.solvers.kernels.changes import room_for_changes
from shortlist.solvers.kernels.gradient import certify_scores
from shortlist.solvers.kernels.inner import add_listed
from shortlist.solvers.kernels.rows import GramRows
from shortlist.solvers.kernels.visit import visit_block, visit_in_turn
from shortlist.solvers.storage.base import (
    NO_SHARES,
    Costs,
    NoDescents,
    State,
    Sums,
    Support,
    chunks,
    read_only,
)
from shortlist.solvers.storage.gram_support import (
    SHARE_WORTH_A_COPY,
    GramSupport,
    square_of,
    weights_of,
)
from shortlist.solvers.storage.local import LocalDuals
from shortlist.solvers.threads import Crew

# Examples in a block: its rows of the matrix are multiplied with all weights.
EXAMPLES_PER_BLOCK = 64
# Examples of the support that are opened at once: their inner products take 128 MB in double.
MAX_SUPPORT_ROWS = 4096
# If at most this share of the weights is not zero, scores are summed from rows of the matrix, one
# for each nonzero weight. With more, a product with all weights is as fast: 3 ms for 1797 examples
# and 10 classes in double.
MAX_NONZERO_SHARE_TO_LIST = 0.2
# Additions to scores in one call of a kernel, which cannot be interrupted: tenths of a second.
ADDITIONS_PER_CALL = 1e9


class GramStorage(NoDescents, LocalDuals):
    """``block_of(indices)`` returns the rows K[indices, :]; ``diagonal`` is the diagonal of K.

    The weights are A = -C v, so that scores are K A. ``whole`` is K, if it is in memory: the
    hinges, whose visits change few duals or none, then keep all scores up to date instead of
    computing a block's anew.
    """

    # A visit on the support adds to few scores, in the cache.
    support_price: float = 0.1

    def __init__(
        self,
        block_of: Callable[[NDArray], NDArray],
        diagonal: NDArray,
        dtype: np.dtype,
        bias: float = 0.0,
        whole: NDArray | None = None,
    ) -> None:
        self.block_of = block_of
        self.whole = None if whole is None else read_only(whole)
        self.n = diagonal.size
        self.width = float(self.n)
        self.dtype = np.dtype(dtype)
        self.bias2 = float(bias) ** 2
        self.kappa = np.asarray(diagonal, np.float64) + self.bias2
        self._known: _Scores | None = None
        self._norm: float | None = None
        self._room = np.empty(0, self.dtype)

    def shared_work(self, m: int) -> float:
        return 0.0

    @property
    def weights_per_class(self) -> int:
        return self.n

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.n, m), self.dtype)

    def squared_norm(self, weights: NDArray) -> float | None:
        return self._norm  # sum_i <a_i, s_i>, known once a certificate has computed all scores

    def largest_column(self, weights: NDArray) -> float:
        # An upper bound on |w_j| = |sum_i a_ij phi(x_i)|.
        return float((np.sqrt(self.kappa) @ np.abs(weights)).max())

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        if loss.sparse_duals and self.whole is not None:
            yield from self._epoch_in_turn(loss, order, state, costs, every)
        else:
            yield from self._epoch_in_blocks(loss, order, state, costs, every)

    def _epoch_in_turn(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        assert self.whole is not None
        n, m = state.weights.shape
        view = GramRows(self.whole, self.dtype.type(self.bias2))
        scores = self._all_scores(state.weights).copy()
        size = max(1, int(ADDITIONS_PER_CALL / (n * m)))
        for begin in range(0, order.size, size):
            part = order[begin : begin + size]
            gap, *_ = visit_in_turn(
                loss.spec,
                view,
                part,
                scores.T,
                costs.y,
                costs.cost,
                self.kappa,
                writable(state.duals, part.size),
                state.starts,
                every,
            )
            state.weights[part] = weights_of(as_array(state.duals)[part], costs.cost[part])
            yield gap
        self._known = _Scores(state.weights.copy(), scores, exact=False)

    def _all_scores(self, weights: NDArray, exact: bool = True) -> NDArray:
        """Scores (m, n) of all examples; computed anew unless those of these weights are known.

        An epoch, the visits on the support after it and the certificate ask for the same ones.
        Scores that were kept up to date by visits are not exact.
        """
        assert self.whole is not None
        known = self._known
        if known is None or (exact and not known.exact) or not known.belong_to(weights):
            # K is symmetric: its rows are its columns.
            if np.count_nonzero(weights) <= MAX_NONZERO_SHARE_TO_LIST * weights.size:
                scores = np.zeros(weights.shape[::-1], self.dtype)
                add_listed(self.whole, weights, scores)
            else:
                scores = weights.T @ self.whole
            if self.bias2:
                scores += self.dtype.type(self.bias2) * weights.sum(axis=0)[:, None]
            known = self._known = _Scores(weights.copy(), scores, exact=True)
        return known.scores

    def _epoch_in_blocks(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        a = state.weights
        blas = blas_for(self.dtype)
        sizes = (EXAMPLES_PER_BLOCK, a.shape[1], self.dtype)
        changes = room_for_changes(*sizes, listed=loss.sparse_duals)
        work = np.empty((2, a.shape[1]), self.dtype)
        sums = a.sum(axis=0)
        bias2 = self.dtype.type(self.bias2)
        for begin in range(0, order.size, EXAMPLES_PER_BLOCK):
            part = order[begin : begin + EXAMPLES_PER_BLOCK]
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
                changes,
                work,
            )
            deltas = changes.deltas[: part.size]
            a[part] += deltas
            sums += deltas.sum(axis=0)
            yield gap

    def open_support(self, rows: NDArray, state: State, costs: Costs) -> Support:
        """Examples whose scores follow each other's changes; those left out stay as they are."""
        rows = np.sort(rows[:MAX_SUPPORT_ROWS])
        order = np.arange(rows.size)
        if self.whole is not None and rows.size >= SHARE_WORTH_A_COPY * self.n:
            order, rows = rows, np.arange(self.n)
            self._room_for(int(SHARE_WORTH_A_COPY * self.n))  # if the support is narrowed
            gram, scores = self.whole, self._all_scores(state.weights, exact=False)
        elif self.whole is not None:
            gram = square_of(self.whole, rows, self._room_for(rows.size))
            scores = self._all_scores(state.weights, exact=False)[:, rows]
        else:
            gram = self._room_for(rows.size).reshape(rows.size, rows.size)
            scores = np.empty((state.weights.shape[1], rows.size), self.dtype)
            for part in chunks(rows.size, self.n * self.dtype.itemsize):
                k = self.block_of(rows[part])
                gram[part] = k[:, rows]
                scores[:, part] = (k @ state.weights).T
            scores += self.dtype.type(self.bias2) * state.weights.sum(axis=0)[:, None]
        view = GramRows(read_only(gram), self.dtype.type(self.bias2))
        y, cost, kappa = costs.y[rows], costs.cost[rows], self.kappa[rows]
        by_class = scores.copy()
        return GramSupport(
            view,
            order,
            by_class,
            y,
            cost,
            kappa,
            state.duals[rows],
            numbers=rows,
            state=state,
            room=self._room,
        )

    def _room_for(self, size: int) -> NDArray:
        """Memory for inner products of so many examples. It is kept: new memory costs more."""
        if self._room.size < size * size:
            self._room = np.empty(size * size, self.dtype)
        return self._room[: size * size]

    def close_support(self, support: Support, state: State, costs: Costs) -> None:
        support.settle()

    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = NO_SHARES,
    ) -> Sums:
        totals = np.zeros(5)
        if double:
            weights, duals = weights.astype(np.float64), as_array(duals).astype(np.float64)
        known = self.whole is not None and weights.dtype == self.dtype and loss.sparse_duals
        scores = np.ascontiguousarray(self._all_scores(weights).T) if known else None
        self._norm = 0.0
        for part in chunks(self.n, self.n * weights.itemsize):
            own = self._scores(weights, part) if scores is None else scores[part]
            self._norm += float(np.vdot(weights[part].astype(np.float64), own))
            certify_scores(
                loss.spec,
                own,
                part.start,
                costs.y,
                costs.cost,
                self.kappa,
                readable(duals),
                loss.smooth,
                0.0,
                totals,
                shares,
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
        return weights_of(as_array(duals), cost)


@dataclass
class _Scores:
    """Scores (m, n) and the weights that they were made from."""

    weights: NDArray
    scores: NDArray
    exact: bool

    def belong_to(self, weights: NDArray) -> bool:
        return np.array_equal(self.weights, weights)
