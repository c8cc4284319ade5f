"""Small training problems in every storage, and their objectives as the formulas read."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shortlist import losses
from shortlist.solvers.problem import MAX_ROUNDING_SHARE_OF_GAP, Problem
from shortlist.solvers.records.result import Result
from shortlist.solvers.storage import Costs, CsrStorage, DenseStorage, GramStorage, Storage
from tests import references
from tests.instances import Instance

STORAGES = ("dense", "blocks", "csr", "gram")
BLOCK = 16  # examples in a block, so that few examples are several blocks


def make_data(
    n: int = 40, d: int = 5, m: int = 4, seed: int = 0, dtype: type = np.float64
) -> tuple[NDArray, NDArray]:
    """Overlapping clusters, a third of the entries zero, every class present."""
    rng = np.random.default_rng([seed, n, d, m])
    y = np.concatenate([np.arange(m), rng.integers(0, m, size=max(n - m, 0))])[:n]
    centres = rng.normal(size=(m, d))
    X = centres[y] + 0.7 * rng.normal(size=(n, d))
    X[rng.random((n, d)) < 1 / 3] = 0.0
    return X.astype(dtype), y.astype(np.int64)


def make_costs(n: int, seed: int = 0) -> NDArray:
    """C_i of different sizes, two of them zero."""
    cost = np.random.default_rng([seed, n]).choice([0.2, 0.5, 1.0], size=n)
    cost[:2] = 0.0
    return cost


def make_storage(storage: str, X: NDArray, bias: float = 0.0, block: int | None = None) -> Storage:
    if storage == "dense":
        return DenseStorage(np.ascontiguousarray(X), bias, block)
    if storage == "blocks":
        return DenseStorage(np.ascontiguousarray(X), bias, block or BLOCK)
    if storage == "fortran":
        return DenseStorage(np.asfortranarray(X), bias, block)
    if storage == "csr":
        return CsrStorage(csr_array(X), bias)
    K = X @ X.T
    whole = K if storage == "whole gram" else None
    return GramStorage(lambda rows: K[rows], np.einsum("ij,ij->i", X, X), X.dtype, bias, whole)


def make_problem(
    storage: str,
    loss: losses.Loss,
    X: NDArray,
    y: NDArray,
    cost: NDArray | float = 1.0,
    bias: float = 0.0,
    block: int | None = None,
) -> Problem:
    costs = Costs(y, np.broadcast_to(np.asarray(cost, float), y.shape).copy())
    return Problem(make_storage(storage, X, bias, block), costs, int(y.max()) + 1, loss)


def primal_weights(storage: str, weights: NDArray, X: NDArray, bias: float = 0.0) -> NDArray:
    """W, shape (d + 1, m), in double, also where the solver holds A with W = X'A."""
    weights = weights.astype(np.float64)
    if "gram" not in storage:
        return weights
    return np.vstack([X.T @ weights, bias * weights.sum(axis=0)])


def check_bound(
    result: Result, dual: float, storage: str, dtype: type, tol: float, rounding: float
) -> None:
    """The bound is the duals' objective, less what rounding may do to it.

    In double that is next to nothing, in single precision at most a part of the gap wanted. Inner
    products have no double to fall back on: there only the whole gap limits it.
    """
    if "l-bfgs" not in result.solver:
        # A descent may have met better duals than those it ends with.
        assert result.dual <= dual + rounding * abs(dual)
    if dtype == np.float64:
        allowed = 1e-12 * abs(dual)
    else:
        allowed = (1.0 if storage == "gram" else MAX_ROUNDING_SHARE_OF_GAP) * tol * result.primal
    assert result.dual >= dual - rounding * abs(dual) - allowed


def with_bias(X: NDArray, bias: float) -> NDArray:
    return np.hstack([X.astype(np.float64), np.full((len(X), 1), bias)])


def naive_primal(
    row: Instance, W: NDArray, X: NDArray, y: NDArray, cost: NDArray, bias: float = 0.0
) -> float:
    """1/2 |W|^2 + sum_i C_i L(y_i, W'x_i)."""
    scores = with_bias(X, bias) @ W
    if "smooth_hinge" in row.name or ("entropy" in row.name and (row.k > 1 or row.mixed)):
        # Their formula is a maximisation, too slow for a loop; tests/losses compares the two.
        values = row.loss().value(scores, y)
    else:
        values = [references.value(row, s, label) for s, label in zip(scores, y, strict=True)]
    return 0.5 * float((W**2).sum()) + float(cost @ np.asarray(values))


def naive_dual(
    row: Instance, duals: NDArray, X: NDArray, y: NDArray, cost: NDArray, bias: float = 0.0
) -> float:
    """-1/2 |W|^2 - sum_i C_i L*(y_i, v_i) with W = -sum_i C_i x_i v_i'."""
    v = duals.astype(np.float64)
    W = -with_bias(X, bias).T @ (cost[:, None] * v)
    values = [references.conjugate(row, u, label) for u, label in zip(v, y, strict=True)]
    return -0.5 * float((W**2).sum()) - float(cost @ np.asarray(values))
