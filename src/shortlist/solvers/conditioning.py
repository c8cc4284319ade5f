"""A change of variables that makes the primal rounder, so that a descent needs fewer steps.

The Hessian of the primal is I + sum_i C_i H_i (x) x_i x_i', where H_i is the Hessian of the i-th
example's loss in its scores. Features with a common direction, such as raw measurements that are
all positive, give it a few eigenvalues far above the rest. With Z = R W, where

    R'R = I + c sum_i C_i x_i x_i',

these come down. c is a fraction of a bound on the average diagonal of H_i: for data that can
nearly be separated, most classes of most examples have no curvature at all, and the full average
would stretch more directions than it shortens.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import DenseRows, GramRows, SparseRows

FRACTION = 0.02
SAMPLE = 1000
# R is to be small beside the data, and made in the time of a few evaluations: those multiply small
# matrices, slowly, and solve for each example's gradient besides.
MOST_FEATURES = 4096
WORTH = 64.0


@dataclass(frozen=True)
class Conditioner:
    """Z = R W; R is upper triangular, or None for the identity."""

    factor: NDArray | None

    def forward(self, weights: NDArray) -> NDArray:
        """Z for W."""
        return weights if self.factor is None else self.factor @ weights

    def backward(self, z: NDArray) -> NDArray:
        """W for Z."""
        return z if self.factor is None else solve_triangular(self.factor, z)

    def gradient(self, gradient: NDArray) -> NDArray:
        """The gradient in Z for that in W."""
        return gradient if self.factor is None else solve_triangular(self.factor, gradient, trans=1)


def can_condition(problem: Problem) -> bool:
    """Whether a descent on this problem gets a change of variables."""
    rows = problem.rows
    if isinstance(rows, GramRows):
        return False
    assert isinstance(rows, DenseRows | SparseRows)
    # Where a loss is not convex, the path decides which minimum is found: the plain one.
    return (
        problem.loss.convex
        and rows.d <= min(MOST_FEATURES, rows.n // 2)
        and rows.d**2 <= WORTH * rows.width * problem.n_classes
    )


def condition(problem: Problem, weights: NDArray) -> Conditioner:
    """Choose a change of variables for a descent from ``weights``."""
    if not can_condition(problem):
        return Conditioner(None)
    total = _second_moments(problem)
    total *= FRACTION * _mean_curvature(problem, weights)
    total[np.diag_indices_from(total)] += 1.0
    try:
        return Conditioner(cholesky(total, overwrite_a=True))
    except (LinAlgError, ValueError):  # so large that the identity is lost in rounding, or overflow
        return Conditioner(None)


def _second_moments(problem: Problem) -> NDArray:
    """sum_i C_i x_i x_i', in double; the last feature is the constant of the intercept."""
    rows = problem.rows
    assert isinstance(rows, DenseRows | SparseRows)
    total = np.zeros((rows.d + 1, rows.d + 1))
    for part in problem.parts():
        given = rows.x[part].toarray() if isinstance(rows, SparseRows) else rows.x[part]
        x = np.asarray(given, np.float64)
        weighted = x * problem.costs.cost[part, None]
        total[:-1, :-1] += x.T @ weighted
        total[-1, :-1] += rows.bias * weighted.sum(axis=0)
    total[:-1, -1] = total[-1, :-1]
    total[-1, -1] = rows.bias**2 * problem.costs.cost.sum()
    return total


def _mean_curvature(problem: Problem, weights: NDArray) -> float:
    """The mean of |v| over examples and classes, v = grad L.

    For softmax and the logistic loss |v| is a bound on the second derivative in a score, and close
    to it where it counts, since that is |v| (1 - |v|). For the others the order is right.
    """
    step = max(1, problem.rows.n // SAMPLE)
    return float(np.abs(problem.gradients(weights, slice(0, None, step))).mean())
