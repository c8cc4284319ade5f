"""How examples are stored: dense rows, CSR rows or a Gram matrix, behind one small interface.

``weights``    what the scores are made from: W, shape (d + 1, m), whose last row belongs to the
               intercept, or A = -C v, shape (n, m), for a Gram matrix;
``scores``     W'x for some examples;
``epoch``      one SDCA visit to every example, in the given order;
``support_epoch``  the same on the nonzero entries of the duals, W held by classes;
``rebuild``    the weights from the duals, free of accumulated rounding;
``products``   sum_i x_i g_i' for a matrix of per-example vectors g, the gradient's second half.

The input is used as it is: no copy of the data is made beyond the block at hand.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, sgemm
from scipy.sparse import csr_array, csr_matrix

from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, as_array, readable, rows_at_once, writable
from shortlist.solvers.support import visit_support_dense, visit_support_sparse
from shortlist.solvers.threads import threads_for
from shortlist.solvers.visit import visit_block, visit_dense, visit_sparse

# A block's examples see each other's changes through its Gram matrix, which costs B/(4 d) of the
# two large products; larger blocks let BLAS run faster. 64 to 128 measured best.
BLOCK = 64
# W of at most this many entries stays in the first-level caches: one kernel does the epoch.
SMALL = 1 << 14
CHUNK_BYTES = 1 << 26
# Kernels cannot be interrupted: visit at most this many examples between looks at Ctrl-C.
SLICE = 1 << 14


@dataclass
class State:
    """The solver's variables: weights as above, duals v (n, m) and per-example warm starts.

    A descent ends with weights better than those of its duals: ``model``, if it was last to act.
    """

    weights: NDArray
    duals: Duals
    starts: NDArray
    model: NDArray | None = None


@dataclass(frozen=True)
class Costs:
    """The data of the problem besides the examples: labels and C_i."""

    y: NDArray
    cost: NDArray


class Rows(Protocol):
    # A number in a support visit costs about so many times one in an epoch; infinite: not offered.
    support_price: float
    # Numbers of an example that a score is made from.
    width: float
    n: int
    dtype: np.dtype
    kappa: NDArray

    def zero_weights(self, m: int) -> NDArray: ...
    def scores(self, weights: NDArray, part: slice) -> NDArray: ...
    def epoch(
        self, loss: Any, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]: ...
    def support_epoch(
        self, loss: Loss, order: NDArray, by_class: NDArray, duals: Duals, costs: Costs
    ) -> tuple[float, int, int]: ...
    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray: ...
    def products(self, g: NDArray, part: slice) -> NDArray: ...
    def squared_norm(self, weights: NDArray) -> float | None: ...


def chunks(n: int, row_bytes: int) -> Iterator[slice]:
    """Slices of a few dozen megabytes that cover n rows."""
    size = max(1, min(n, CHUNK_BYTES // max(row_bytes, 1)))
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def _add_product(w: NDArray, x: NDArray, deltas: NDArray) -> None:
    """w += x' deltas, in place: BLAS sees the transposes, all of them Fortran-ordered."""
    gemm = sgemm if w.dtype == np.float32 else dgemm
    gemm(1.0, deltas.T, x.T, beta=1.0, c=w.T, trans_b=True, overwrite_c=True)


@dataclass
class _BlockBuffers:
    """Scratch of the block loop."""

    size: int
    m: int
    dtype: np.dtype
    deltas: NDArray = field(init=False)
    nonzeros: NDArray = field(init=False)
    counts: NDArray = field(init=False)
    work: NDArray = field(init=False)

    def __post_init__(self) -> None:
        self.deltas = np.empty((self.size, self.m), self.dtype)
        self.nonzeros = np.empty((self.size, max(1, self.m // 8)), np.int32)
        self.counts = np.empty(self.size, np.int64)
        self.work = np.empty((2, self.m), self.dtype)


class _FeatureRows:
    """What dense and CSR rows share: scores come from W, shape (d + 1, m)."""

    def __init__(self, x: Any, bias: float) -> None:
        self.x = x
        self.n, self.d = x.shape
        self.dtype = x.dtype
        self.bias = float(bias)

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.d + 1, m), self.dtype)

    def scores(self, weights: NDArray, part: slice) -> NDArray:
        s = np.ascontiguousarray(self.x[part] @ weights[:-1])
        if self.bias:
            s += self.dtype.type(self.bias) * weights[-1]
        return s

    def squared_norm(self, weights: NDArray) -> float:
        # In double, a piece at a time.
        flat = weights.reshape(-1)
        return float(
            sum(
                np.dot(part, part)
                for begin in range(0, flat.size, 1 << 20)
                for part in [flat[begin : begin + (1 << 20)].astype(np.float64)]
            )
        )


class DenseRows(_FeatureRows):
    """Rows of a float32 or float64 matrix in memory or mapped from a file, in any order."""

    def __init__(self, x: NDArray, bias: float = 0.0, block: int | None = None) -> None:
        super().__init__(x, bias)
        self.block = block
        self.width = float(self.d)
        # BLAS makes an epoch's operations cheap, unless W is small and everything in cache.
        self.support_price = 8.0
        self.kappa = np.empty(self.n)
        for part in chunks(self.n, self.d * 8):
            rows = np.asarray(x[part], dtype=np.float64)
            self.kappa[part] = np.einsum("ij,ij->i", rows, rows) + self.bias**2

    def epoch(
        self, loss: Any, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        if self.block is None and state.weights.size <= SMALL and self.x.flags.c_contiguous:
            size = rows_at_once(state.duals, SLICE)
            for begin in range(0, order.size, size):
                part = order[begin : begin + size]
                yield visit_dense(
                    loss,
                    self.x,
                    part,
                    state.weights,
                    self.bias,
                    costs.y,
                    costs.cost,
                    self.kappa,
                    writable(state.duals, part.size),
                    state.starts,
                    every,
                )
        else:
            yield from self._epoch_in_blocks(loss, order, state, costs, every)

    def _epoch_in_blocks(
        self, loss: Any, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        w = state.weights
        size = self.block or BLOCK
        buffers = _BlockBuffers(size, w.shape[1], self.dtype)
        scores = np.empty((size, w.shape[1]), self.dtype)
        bias = self.dtype.type(self.bias)
        with threads_for(2.0 * size * w.size):
            for begin in range(0, order.size, size):
                part = order[begin : begin + size]
                x = np.ascontiguousarray(self.x[part])
                s = np.dot(x, w[:-1], out=scores[: part.size])
                gram = x @ x.T
                if self.bias:
                    s += bias * w[-1]
                    gram += bias * bias
                estimate = _run_block(loss, part, s, gram, self.kappa, state, costs, every, buffers)
                deltas = buffers.deltas[: part.size]
                _add_product(w[:-1], x, deltas)
                if self.bias:
                    w[-1] += bias * deltas.sum(axis=0)
                yield estimate

    def support_epoch(
        self, loss: Loss, order: NDArray, by_class: NDArray, duals: Duals, costs: Costs
    ) -> tuple[float, int, int]:
        return visit_support_dense(
            loss.spec,
            self.x,
            order,
            by_class,
            self.bias,
            costs.y,
            costs.cost,
            self.kappa,
            readable(duals),
            loss.fewest_classes,
        )

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        # In double: where C is large, large terms cancel.
        total = np.zeros((self.d + 1, duals.shape[1]))
        for part in chunks(self.n, max(self.d, duals.shape[1]) * 8):
            shares = as_array(duals[part]) * -cost[part, None]
            total[:-1] += np.asarray(self.x[part], np.float64).T @ shares
            total[-1] += self.bias * shares.sum(axis=0)
        return total.astype(self.dtype)

    def products(self, g: NDArray, part: slice) -> NDArray:
        out = np.empty((self.d + 1, g.shape[1]), self.dtype)
        np.dot(np.asarray(self.x[part]).T, g, out=out[:-1])
        out[-1] = self.dtype.type(self.bias) * g.sum(axis=0) if self.bias else 0
        return out


class SparseRows(_FeatureRows):
    """Rows of a CSR matrix. A visit costs its nonzeros times the number of classes."""

    def __init__(self, x: csr_array | csr_matrix, bias: float = 0.0) -> None:
        super().__init__(x, bias)
        self.support_price = 2.0
        self.width = x.nnz / max(self.n, 1)
        squares = x.copy()
        squares.data = squares.data.astype(np.float64) ** 2
        self.kappa = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel() + self.bias**2

    def epoch(
        self, loss: Any, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        x = self.x
        size = rows_at_once(state.duals, SLICE)
        for begin in range(0, order.size, size):
            part = order[begin : begin + size]
            yield visit_sparse(
                loss,
                x.data,
                x.indices,
                x.indptr,
                part,
                state.weights,
                self.bias,
                costs.y,
                costs.cost,
                self.kappa,
                writable(state.duals, part.size),
                state.starts,
                every,
            )

    def support_epoch(
        self, loss: Loss, order: NDArray, by_class: NDArray, duals: Duals, costs: Costs
    ) -> tuple[float, int, int]:
        return visit_support_sparse(
            loss.spec,
            self.x.data,
            self.x.indices,
            self.x.indptr,
            order,
            by_class,
            self.bias,
            costs.y,
            costs.cost,
            self.kappa,
            readable(duals),
            loss.fewest_classes,
        )

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        total = np.zeros((self.d + 1, duals.shape[1]))
        for part in chunks(self.n, duals.shape[1] * 8):
            shares = as_array(duals[part]).astype(np.float64) * -cost[part, None]
            total += self.products(shares, part)
        return total.astype(self.dtype)

    def products(self, g: NDArray, part: slice) -> NDArray:
        out = np.empty((self.d + 1, g.shape[1]), g.dtype)
        out[:-1] = self.x[part].T @ g
        out[-1] = g.dtype.type(self.bias) * g.sum(axis=0)
        return out


class GramRows:
    """Examples known by their inner products only: a kernel matrix, whole or in blocks of rows.

    ``block_of(indices)`` returns the rows K[indices, :]; ``diagonal`` is the diagonal of K. The
    weights are A = -C v, so that scores are K A.
    """

    def __init__(self, block_of: Any, diagonal: NDArray, dtype: Any, bias: float = 0.0) -> None:
        self.support_price = np.inf
        self.width = float(diagonal.size)
        self.block_of = block_of
        self.n = diagonal.size
        self.dtype = np.dtype(dtype)
        self.bias2 = float(bias) ** 2
        self.kappa = np.asarray(diagonal, np.float64) + self.bias2

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.n, m), self.dtype)

    def scores(self, weights: NDArray, part: slice) -> NDArray:
        s = self.block_of(np.arange(self.n)[part]) @ weights
        if self.bias2:
            s += self.dtype.type(self.bias2) * weights.sum(axis=0)
        return s

    def epoch(
        self, loss: Any, order: NDArray, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        a = state.weights
        buffers = _BlockBuffers(BLOCK, a.shape[1], self.dtype)
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
            estimate = _run_block(loss, part, s, gram, self.kappa, state, costs, every, buffers)
            deltas = buffers.deltas[: part.size]
            a[part] += deltas
            sums += deltas.sum(axis=0)
            yield estimate

    def support_epoch(
        self, loss: Loss, order: NDArray, by_class: NDArray, duals: Duals, costs: Costs
    ) -> tuple[float, int, int]:
        raise NotImplementedError("support visits need explicit features")

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        return (as_array(duals) * -cost[:, None]).astype(self.dtype)

    def products(self, g: NDArray, part: slice) -> NDArray:
        raise TypeError("a Gram matrix has no explicit features to take gradients in")

    def squared_norm(self, weights: NDArray) -> float | None:
        return None  # sum_i <a_i, s_i>, known once all scores are


def _run_block(
    loss: Any,
    part: NDArray,
    scores: NDArray,
    gram: NDArray,
    kappa: NDArray,
    state: State,
    costs: Costs,
    every: int,
    buffers: _BlockBuffers,
) -> float:
    return visit_block(
        loss,
        part,
        scores,
        gram,
        costs.y,
        costs.cost,
        kappa,
        writable(state.duals, part.size),
        state.starts,
        every,
        buffers.deltas,
        buffers.nonzeros,
        buffers.counts,
        buffers.work,
    )
