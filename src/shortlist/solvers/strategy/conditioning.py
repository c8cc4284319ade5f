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

FRACTION = 0.02
# Blocks are estimated from so many examples at least, or so many a class or a feature.
LEAST_SAMPLES = 1000
SAMPLES_PER_CLASS = 20
SAMPLES_PER_FEATURE = 4
# Numbers in all blocks together, and in the gradients of the examples a class asks for.
MOST_NUMBERS = 1 << 22
# What making the blocks may cost, in evaluations of the objective.
EVALUATIONS_WORTH = 8.0


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
    """Every so many-th example makes the blocks: one for all classes, or one a class."""

    step: int
    n_blocks: int


def _plan(problem: Problem) -> _Plan | None:
    storage, m = problem.storage, problem.n_classes
    # Where a loss is not convex, the path decides which minimum is found: the plain one.
    if not (storage.explicit and problem.loss.convex):
        return None
    d = storage.zero_weights(1).shape[0]
    if d > storage.n // 2:
        return None
    evaluation = 4.0 * storage.n * storage.width * m
    per_class = max(SAMPLES_PER_CLASS * m, SAMPLES_PER_FEATURE * d)
    for n_blocks, sample in ((m, per_class), (1, SAMPLES_PER_FEATURE * d)):
        if n_blocks > 1 and (problem.loss.sparse_duals or sample * m > MOST_NUMBERS):
            continue
        sample = min(max(sample, LEAST_SAMPLES), storage.n)
        cost = sample * n_blocks * d**2
        if n_blocks * d**2 <= MOST_NUMBERS and cost <= EVALUATIONS_WORTH * evaluation:
            return _Plan(storage.n // sample, n_blocks)
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
        inverses = np.linalg.inv(factors)
    except np.linalg.LinAlgError:  # so large that the identity is lost in rounding
        return Conditioner()
    return Conditioner(factors, inverses)


def _moments(problem: Problem, weights: NDArray, plan: _Plan) -> NDArray:
    """sum_i C_i |v_ic| x_i x_i' for each class, or its mean over classes, from a sample.

    The last feature is the constant of the intercept.
    """
    x = problem.storage.sample(plan.step)
    y, cost = problem.costs.y[:: plan.step], problem.costs.cost[:: plan.step]
    shares = np.abs(problem.loss.row_gradients(x @ weights, y))
    shares *= plan.step * cost[:, None]
    if plan.n_blocks == 1:
        shares = shares.mean(axis=1, keepdims=True)
    return np.stack([x.T @ (x * share[:, None]) for share in shares.T])
