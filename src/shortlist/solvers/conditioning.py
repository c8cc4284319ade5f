"""A change of variables that makes the primal rounder, so that a descent needs fewer steps.

The Hessian of the primal has a block for each class, I + sum_i C_i h_ic x_i x_i', where h_ic is the
second derivative of the i-th example's loss in the score of class c; what couples the classes is
left aside. Features with a common direction, such as raw measurements that are all positive, give
these blocks a few eigenvalues far above the rest. In the variables z_c = R_c w_c, where

    R_c'R_c = I + FRACTION sum_i C_i |v_ic| x_i x_i',   v_i = grad L,

they come down: for softmax and the logistic loss h_ic = |v_ic| (1 - |v_ic|), for the other smooth
losses the order is right. The fraction, because curvature goes as training goes on: of data that
can nearly be separated hardly any is left, and to have stretched a direction costs more steps than
to have left it. Where blocks for every class would be too large, all share their mean; and with the
hinges too, whose curvature sits in few examples, others at every step.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import DenseRows, GramRows, SparseRows

FRACTION = 0.02
# Blocks are estimated from so many examples at least, or so many a class or a feature.
SAMPLE = 1000
A_CLASS = 20
A_FEATURE = 4
# Numbers in all blocks together, and in the gradients of the examples a class asks for.
LARGEST = 1 << 22
# Multiplications to spend on making the blocks, in those of an evaluation.
WORTH = 8.0


@dataclass(frozen=True)
class Conditioner:
    """Z = R W, class by class: R_c and its inverse, shape (m or 1, d, d); None: the identity."""

    factors: NDArray | None = None
    inverses: NDArray | None = None

    def forward(self, weights: NDArray) -> NDArray:
        """Z for W."""
        return _apply(self.factors, weights)

    def backward(self, z: NDArray) -> NDArray:
        """W for Z."""
        return _apply(self.inverses, z)

    def gradient(self, gradient: NDArray) -> NDArray:
        """The gradient in Z for that in W."""
        if self.inverses is None:
            return gradient
        return _apply(self.inverses.transpose(0, 2, 1), gradient)


def _apply(blocks: NDArray | None, columns: NDArray) -> NDArray:
    if blocks is None:
        return columns
    if len(blocks) == 1:
        return blocks[0] @ columns
    return np.matmul(blocks, columns.T[:, :, None])[:, :, 0].T


class _Plan(NamedTuple):
    """Which examples to estimate the blocks from, and how many blocks: one, or one a class."""

    rows: DenseRows | SparseRows
    step: int
    n_blocks: int


def _plan(problem: Problem) -> _Plan | None:
    rows, m = problem.rows, problem.n_classes
    # Where a loss is not convex, the path decides which minimum is found: the plain one.
    if isinstance(rows, GramRows) or not problem.loss.convex:
        return None
    assert isinstance(rows, DenseRows | SparseRows)
    d = rows.d + 1
    if d > rows.n // 2:
        return None
    evaluation = 4.0 * rows.n * rows.width * m
    for n_blocks, sample in ((m, max(A_CLASS * m, A_FEATURE * d)), (1, A_FEATURE * d)):
        if n_blocks > 1 and (problem.loss.sparse_duals or sample * m > LARGEST):
            continue
        sample = min(max(sample, SAMPLE), rows.n)
        if n_blocks * d**2 <= LARGEST and sample * n_blocks * d**2 <= WORTH * evaluation:
            return _Plan(rows, rows.n // sample, n_blocks)
    return None


def count_blocks(problem: Problem) -> int:
    """How many blocks a descent on this problem gets: none, one for all classes, or one a class."""
    plan = _plan(problem)
    return 0 if plan is None else plan.n_blocks


def condition(problem: Problem, weights: NDArray) -> Conditioner:
    """Choose a change of variables for a descent from ``weights``."""
    plan = _plan(problem)
    if plan is None:
        return Conditioner()
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = FRACTION * _moments(problem, weights, plan)
    if not np.isfinite(blocks).all():
        return Conditioner()
    blocks += np.eye(blocks.shape[1])
    try:
        factors = np.linalg.cholesky(blocks).transpose(0, 2, 1)
        return Conditioner(factors, np.linalg.inv(factors))
    except np.linalg.LinAlgError:  # so large that the identity is lost in rounding
        return Conditioner()


def _moments(problem: Problem, weights: NDArray, plan: _Plan) -> NDArray:
    """sum_i C_i |v_ic| x_i x_i' for each class, or its mean over classes, from a sample.

    The last feature is the constant of the intercept.
    """
    rows, part = plan.rows, slice(0, None, plan.step)
    given = rows.x[part].toarray() if isinstance(rows, SparseRows) else rows.x[part]
    x = np.column_stack([given, np.full(given.shape[0], rows.bias)]).astype(np.float64)
    shares = np.abs(problem.gradients(weights, part)).astype(np.float64)
    shares *= plan.step * problem.costs.cost[part, None]
    if plan.n_blocks == 1:
        shares = shares.mean(axis=1, keepdims=True)
    return np.stack([x.T @ (x * share[:, None]) for share in shares.T])
