"""Examples as the rows of an array, in memory or mapped from a file."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import blas_for
from shortlist._native import SIGNAL_STRIDE
from shortlist.losses.base import Loss
from shortlist.solvers.duals import rows_at_once, writable
from shortlist.solvers.kernels.changes import room_for_changes
from shortlist.solvers.kernels.gradient import (
    add_gradient_of_wide_losses,
    gradient_kernel,
    longest_sum,
)
from shortlist.solvers.kernels.rows import DenseRows
from shortlist.solvers.kernels.visit import (
    ALL_DONE,
    DONE,
    READY,
    assist_blocks,
    lead_blocks,
    room_for_exchange,
)
from shortlist.solvers.storage.base import Costs, KeptScores, Lengths, State, read_only
from shortlist.solvers.storage.features import MULTIPLICATIONS_PER_CALL, FeatureStorage, added
from shortlist.solvers.threads import MULTIPLICATIONS_PER_THREAD, Crew

# W of at most this many entries stays in the first-level cache: examples are visited singly.
MAX_WEIGHTS_IN_TURN = 1 << 13
# Examples in a block. Larger blocks make better products with W; the block's own inner products
# cost (size / (4 m) + size / (4 d)) of them. Measured on two cores from 15000 x 384 x 150 to
# 10000 x 2048 x 1000: between 64 and 256 by the size of W.
SMALL_BLOCK, LARGE_BLOCK = 64, 256
# Numbers that are widened to double at a time, so that they stay in a second-level cache.
NUMBERS_IN_CACHE = 1 << 15


def block_size(d: int, m: int) -> int:
    """Examples in a block for d features and m classes."""
    fitting = int(min(d, m) / 1.5) // 32 * 32
    return min(max(fitting, SMALL_BLOCK), LARGE_BLOCK)


class DenseStorage(FeatureStorage):
    """Rows of a float32 or float64 matrix."""

    def __init__(
        self,
        x: NDArray,
        bias: float = 0.0,
        block: int | None = None,
        kappa: NDArray | None = None,
    ) -> None:
        # Rows must lie together for the kernels.
        super().__init__(read_only(np.ascontiguousarray(x)), bias, kappa)
        self.block = block
        self.width = self.d + 1.0
        self.support_price = 8.0  # in an epoch BLAS does the multiplications, at a lower cost each

    def _squared_norms(self) -> NDArray:
        found = np.empty(self.n)
        some = max(1, NUMBERS_IN_CACHE // max(self.d, 1))
        for begin in range(0, self.n, some):
            rows = np.asarray(self.x[begin : begin + some], dtype=np.float64)
            found[begin : begin + some] = np.einsum("ij,ij->i", rows, rows)
        return found

    def view(self) -> DenseRows:
        return DenseRows(self.x, self.bias)

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        if self.block is None and state.weights.size <= MAX_WEIGHTS_IN_TURN:
            yield from super().epoch(loss, order, state, costs, every, crew)
        else:
            yield from self._epoch_in_blocks(loss, order, state, costs, every, crew)

    def _sum_losses_and_gradient(
        self, loss: Loss, w: NDArray, costs: Costs, begin: int, end: int
    ) -> tuple[float, NDArray]:
        none = np.empty((0, w.shape[1]), self.dtype)
        add = gradient_kernel(loss.spec)
        return self._sum_by(add, loss, w, costs, begin, end, np.empty(0), none)

    def _sum_by(
        self,
        add: Callable,
        loss: Loss,
        w: NDArray,
        costs: Costs,
        begin: int,
        end: int,
        lengths: NDArray,
        scores: NDArray,
    ) -> tuple[float, NDArray]:
        """The losses and their gradient over a range of examples, by a kernel of gradients."""
        # One kernel for all of it: descents on small tables are many short calls.
        gradient = np.zeros_like(w)
        view, blas = self.view(), blas_for(self.dtype)
        own = (begin, end, w, costs.y, costs.cost, gradient)
        value = add(loss.spec, view, blas, *own, self.kappa, lengths, scores)
        return value, gradient

    def bounded_gradient(
        self,
        loss: Loss,
        weights: NDArray,
        costs: Costs,
        crew: Crew,
        wide: bool,
        kept: KeptScores | None = None,
    ) -> tuple[float, NDArray, Lengths | None]:
        if self.dtype == np.float64 or not loss.log_lipschitz:
            return super().bounded_gradient(loss, weights, costs, crew, wide, kept)
        w = np.ascontiguousarray(weights, self.dtype)
        scores = np.empty((0, w.shape[1]), self.dtype)
        if kept is not None:
            scores = kept.room_for(weights, self.n, self.dtype)
        wide = wide and loss.has_lanes
        dtype = np.dtype(np.float64) if wide else self.dtype
        add = add_gradient_of_wide_losses if wide else gradient_kernel(loss.spec)

        def part(begin: int, end: int) -> tuple[tuple[float, NDArray], NDArray, int]:
            lengths = np.zeros(len(Lengths._fields) - 2)
            sums = self._sum_by(add, loss, w, costs, begin, end, lengths, scores)
            return sums, lengths, longest_sum(end - begin, w.shape[1])

        sums, lengths, longest = zip(*self._in_parts(part, 2 * w.shape[1], crew), strict=True)
        additions = float(max(longest) + len(sums))
        return *added(sums), Lengths(*[*np.sum(lengths, axis=0).tolist(), additions, dtype])

    def _epoch_in_blocks(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        width, m = state.weights.shape
        # A class's weights lie together where changes are few: they are added class by class.
        by_class = loss.sparse_duals
        w = np.ascontiguousarray(state.weights.T) if by_class else state.weights
        size = min(self.block or block_size(width, m), order.size)
        threads = min(crew.size, max(1, int(size * width * m / MULTIPLICATIONS_PER_THREAD)))
        dtype, blas = self.dtype, blas_for(self.dtype)
        exchange = room_for_exchange(threads, size, width, m, dtype)
        changes = room_for_changes(size, m, dtype, listed=by_class)
        bounds = np.linspace(0, width, threads + 1).astype(np.int64)
        per_call = max(1, int(MULTIPLICATIONS_PER_CALL / (2.0 * width * m)) // size) * size
        per_call = max(size, rows_at_once(state.duals, per_call) // size * size)
        bias = dtype.type(self.bias)
        for begin in range(0, order.size, per_call):
            part = order[begin : begin + per_call]
            signals = np.zeros(DONE + SIGNAL_STRIDE * threads, np.int64)
            shared = (exchange, changes, bounds, signals, by_class)

            # Allocate the duals first: if that fails, no thread is waiting for another.
            lead = partial(
                lead_blocks,
                loss.spec,
                blas,
                self.x,
                bias,
                part,
                w,
                costs.y,
                costs.cost,
                self.kappa,
                writable(state.duals, part.size),
                state.starts,
                every,
                *shared,
            )
            assistants = [
                partial(assist_blocks, blas, self.x, bias, part, w, *shared, thread)
                for thread in range(1, threads)
            ]
            try:
                gap, rounding = crew.assisted(lead, assistants)
            except BaseException:
                signals[READY] = ALL_DONE  # the leader failed: release the assistants
                raise
            finally:
                if by_class:
                    state.weights[:] = w.T
            state.rounding += rounding + self.squared_norm(w) * (part.size / size)
            yield gap
