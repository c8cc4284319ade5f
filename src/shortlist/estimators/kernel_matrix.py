"""Kernel functions, and the rows of a kernel matrix: kept in memory or computed when asked for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, polynomial_kernel
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from shortlist._parameters import is_real
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.solvers.kernels.radial import radial_from_products
from shortlist.solvers.storage.base import chunks
from shortlist.solvers.threads import crew_for, one_blas_thread

# Rows computed at once: their values stay in the cache from one operation to the next.
ROWS_PER_BLOCK = 256
# Rows of the squares whose diagonals are taken where there is no shorter way to K(x, x).
ROWS_PER_SQUARE = 128
# A given matrix is looked at in so many rows and columns. Entries and those across the diagonal may
# differ by this share of the largest: single precision, and sums in another order.
MAX_ROWS_COMPARED, MAX_ASYMMETRY = 500, 1e-4


@dataclass(frozen=True)
class KernelFunction:
    """K(x, z): <x, z>, exp(-gamma |x - z|^2), (gamma <x, z> + coef0)^degree, the cosine of the
    angle between x and z (0 if one is zero), or the user's own."""

    kernel: str | Callable
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def __call__(self, X: Any, Z: Any, norms: NDArray | None = None) -> NDArray:
        """The matrix of K over rows of X and Z. ``norms`` are the squared norms of Z, if known."""
        if self.kernel == "linear":
            return linear_kernel(X, Z, dense_output=True)
        if self.kernel == "poly":
            return polynomial_kernel(X, Z, self.degree, self.gamma, self.coef0)
        if self.kernel == "cosine":
            return cosine_similarity(X, Z, dense_output=True)
        if self.kernel == "rbf":
            own, others = row_norms(X, squared=True), norms
            if others is None:
                others = row_norms(Z, squared=True)
            if not (np.isfinite(own).all() and np.isfinite(others).all()):
                raise ValueError(
                    "the squared norm of an example is infinity in this precision: scale features"
                )
            K = safe_sparse_dot(X, Z.T, dense_output=True)
            radial_from_products(K, own, others, self.gamma)
            return K
        return self._own(X, Z)

    def _own(self, X: Any, Z: Any) -> NDArray:
        assert callable(self.kernel)
        K = np.asarray(self.kernel(X, Z))
        expected = (X.shape[0], Z.shape[0])
        if K.shape != expected:
            raise ValueError(
                f"kernel(X, Z) must return one number for each pair of rows, here shape "
                f"{expected}; got {K.shape}"
            )
        if K.dtype.kind not in "fiub" or not np.isfinite(K).all():
            raise ValueError("kernel(X, Z) must return finite real numbers")
        return K

    def diagonal(self, X: Any) -> NDArray:
        """K(x, x) for every row."""
        if self.kernel == "rbf":
            return np.ones(X.shape[0])
        if self.kernel == "linear":
            return row_norms(X, squared=True)
        if self.kernel == "cosine":
            return (row_norms(X, squared=True) > 0).astype(np.float64)
        if self.kernel == "poly":
            return (self.gamma * row_norms(X, squared=True) + self.coef0) ** self.degree
        size = ROWS_PER_SQUARE
        return np.concatenate(
            [
                np.diagonal(self(X[begin : begin + size], X[begin : begin + size]))
                for begin in range(0, X.shape[0], size)
            ]
        ).astype(np.float64)


def resolve_gamma(gamma: Any, X: Any, weight: NDArray | None = None) -> float:
    """gamma as a number: "scale" is 1 / (n_features * X.var()), "auto" 1 / n_features.

    ``weight``, one per row, counts in the variance, so that an example of weight two is the same
    as the example twice.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            variance = _variance(X, np.ones(X.shape[0]) if weight is None else weight)
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    elif is_real(gamma) and 0 < float(gamma) < np.inf:
        return float(gamma)
    problem = f"must be 'scale', 'auto' or a positive finite number; got {gamma!r}"
    raise ParameterError("gamma", problem)


def _variance(X: Any, weight: NDArray) -> float:
    """The variance of all entries, zeros of a sparse matrix included."""
    columns = X.shape[1]
    total = weight.sum() * columns
    mean = float(weight @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()) / total
    if sparse.issparse(X):
        squares = float(weight @ row_norms(X.astype(np.float64), squared=True)) / total
        return max(squares - mean**2, 0.0)
    squares = 0.0
    for part in chunks(X.shape[0], columns * 8):
        centred = X[part].astype(np.float64) - mean
        squares += float(weight[part] @ np.einsum("ij,ij->i", centred, centred))
    return squares / total


class KernelMatrix:
    """The rows K[indices, :] of the kernel matrix of X with itself.

    The first rows, as many as fit in ``cache_bytes``, are computed once and kept; training visits
    all rows equally often, so that no choice of rows is better than another. The others are
    computed whenever they are asked for.
    """

    def __init__(self, function: KernelFunction, X: Any, dtype: np.dtype, cache_bytes: int) -> None:
        self.function = function
        self.X = X
        self.n = X.shape[0]
        self.dtype = dtype
        self.norms = row_norms(X, squared=True) if function.kernel == "rbf" else None
        self.kept = int(min(self.n, cache_bytes // (self.n * dtype.itemsize)))
        self.cache = np.empty((self.kept, self.n), dtype)
        blocks = range(0, self.kept, ROWS_PER_BLOCK)
        if not isinstance(function.kernel, str):
            self._fill(blocks)  # the user's function may not be safe to call from threads
            return
        with crew_for(float(self.kept) * self.n * X.shape[1]) as crew, one_blas_thread():
            crew.run(self._fill, [(blocks[first :: crew.size],) for first in range(crew.size)])

    def _fill(self, blocks: Iterable[int]) -> None:
        """Compute rows to keep, given where the blocks of rows begin."""
        # The matrix is symmetric: what lies below the diagonal is copied, if all is kept.
        symmetric = self.kept == self.n and isinstance(self.function.kernel, str)
        for begin in blocks:
            part = slice(begin, min(begin + ROWS_PER_BLOCK, self.kept))
            first = begin if symmetric else 0
            norms = None if self.norms is None else self.norms[first:]
            self.cache[part, first:] = self.function(self.X[part], self.X[first:], norms)
            if symmetric:
                self.cache[part.stop :, part] = self.cache[part, part.stop :].T

    @property
    def whole(self) -> NDArray | None:
        """All rows, if all are kept."""
        return self.cache if self.kept == self.n else None

    @property
    def diagonal(self) -> NDArray:
        return self.function.diagonal(self.X)

    def __call__(self, indices: NDArray) -> NDArray:
        if indices.max() < self.kept:
            return _rows_of(self.cache, indices)
        block = np.empty((indices.size, self.n), self.dtype)
        kept = indices < self.kept
        block[kept] = self.cache[indices[kept]]
        block[~kept] = self.function(self.X[indices[~kept]], self.X, self.norms)
        return block


_PRECOMPUTED = Setting("kernel", "precomputed")


class PrecomputedMatrix:
    """A kernel matrix that the user computed, used as it is."""

    def __init__(self, K: NDArray) -> None:
        if K.shape[0] != K.shape[1]:
            square = " X must be the square matrix of kernel values between the training examples"
            raise WordedError("with " + _PRECOMPUTED + square + f"; got shape {K.shape}")
        _check_symmetric(K)
        # The transpose of a symmetric matrix in Fortran's order is the same in C's.
        self.whole = np.ascontiguousarray(K.T if K.flags.f_contiguous else K)
        self.n = K.shape[0]
        self.diagonal = np.diagonal(K).astype(np.float64)

    def __call__(self, indices: NDArray) -> NDArray:
        return _rows_of(self.whole, indices)


def _rows_of(matrix: NDArray, indices: NDArray) -> NDArray:
    """Those rows; a view where they follow each other, as when all scores are computed."""
    first, last = indices[0], indices[-1]
    if last - first == indices.size - 1 and (np.diff(indices) == 1).all():
        return matrix[first : last + 1]
    return matrix[indices]


def _check_symmetric(K: NDArray) -> None:
    """On a sample of rows and columns: enough to catch a matrix that is no kernel matrix."""
    sample = np.linspace(0, K.shape[0] - 1, min(K.shape[0], MAX_ROWS_COMPARED)).astype(int)
    block = K[np.ix_(sample, sample)]
    size = np.abs(block).max(initial=0.0)
    if np.abs(block - block.T).max(initial=0.0) > MAX_ASYMMETRY * size:
        raise WordedError("with " + _PRECOMPUTED + " X must be symmetric; this matrix is not")
