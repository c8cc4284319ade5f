"""Where training begins: at the classes' means, at least squares, or between two sets of duals."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from shortlist.solvers.duals import Duals, as_array, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage.base import (
    State,
    chunks,
    rounding_of_duals,
    rounding_of_weights,
)

# Training begins with the means of the classes only if the mean of C |x|^2 is at most this.
MAX_MEAN_ETA = 3.0
# Multiply the weights of least squares by this: they fit indicators of labels, and margins are far
# below one. Measured: the hinge's primal is smallest at 4 to 8 times these weights on Letter,
# digits, breast cancer, wine and iris, C = 0.1 to 1000.
MARGIN_OF_SQUARES = 6.0
# Multiples of the gradients at zero that are compared: 1, 1/2, 1/4 and so on, so many.
MULTIPLES_OF_GRADIENTS = 40
# Points of the segment between two sets of duals that are compared, both ends counted, and examples
# whose conjugates are computed for it.
POINTS_BETWEEN, SAMPLED_BETWEEN = 9, 2000


def mean_eta(problem: Problem) -> float:
    """The mean of eta_i = C_i |x_i|^2, the quadratic term of the i-th dual step."""
    return float(np.mean(problem.costs.cost * problem.storage.kappa))


def begin_at_means(problem: Problem, state: State) -> None:
    """Set duals of zero to t grad L(0) for all examples, t the best for the dual objective.

    At W = 0 all examples of a class have the same gradient, so that W is a combination of the
    sums over classes: the nearest-mean classifier, for the price of reading the data once.
    """
    loss, costs, m = problem.loss, problem.costs, problem.n_classes
    if loss.multilabel or not problem.storage.explicit or loss.sparse_duals:
        return
    if not loss.has_dual_step:
        return
    # Where steps are long, exact first steps from zero gain more: 6 epochs instead of 8 to a gap
    # of 1e-3 on CLINC150 at C = 10, but 4 instead of 3 at C = 1.
    if mean_eta(problem) > MAX_MEAN_ETA:
        return
    # A gradient is one number for the label and another for all other classes.
    first, last = loss.row_gradients(np.zeros((2, m)), np.array([0, m - 1]))
    own, other = float(first[0]), float(first[-1])
    if not np.allclose([*first[1:], *last[:-1], last[-1]], [other] * (2 * m - 2) + [own]):
        return
    sums = problem.storage.class_sums(costs, m)
    direction = other * -sums.sum(axis=1, keepdims=True) - (own - other) * sums
    norm = float(np.vdot(direction, direction))
    total = float(costs.cost.sum())
    trials = 2.0 ** -np.arange(0.0, MULTIPLES_OF_GRADIENTS)
    conjugates = loss.conjugate(trials[:, None] * first, np.zeros(len(trials), np.int64))
    values = -0.5 * norm * trials**2 - total * conjugates
    best = int(np.argmax(values))
    if not values[best] > 0.0:
        return
    t = trials[best]
    if problem.keeps_duals:
        problem.storage.spread_duals(t * own, t * other, costs, state.duals)
    state.weights = np.ascontiguousarray(t * direction, problem.storage.dtype)
    duals = rounding_of_duals(problem.storage.kappa, costs.cost)
    state.rounding = rounding_of_weights(state.weights) + duals


def least_squares(problem: Problem) -> NDArray:
    """Weights to begin with: those of least squares on indicators of labels, scaled."""
    x, cost = problem.storage.sample(1), problem.costs.cost
    sums = problem.storage.class_sums(problem.costs, problem.n_classes)
    sums -= sums.mean(axis=1, keepdims=True)
    moments = x.T @ (x * cost[:, None])
    moments[np.diag_indices_from(moments)] += 1.0
    try:
        return MARGIN_OF_SQUARES * cho_solve(cho_factor(moments), sums)
    except (LinAlgError, ValueError):  # features so large that one is lost in rounding
        return np.zeros_like(sums)


def move_towards(problem: Problem, state: State, others: Duals) -> None:
    """Move the state's duals along the segment to ``others``, as far as the dual objective rises.

    Domains are convex: all points between feasible duals are feasible.
    """
    loss, costs, n = problem.loss.dual_loss, problem.costs, problem.storage.n
    there = State(state.weights, others, state.starts)
    problem.rebuild(there)
    step = max(1, n // SAMPLED_BETWEEN)
    sampled = np.arange(0, n, step)
    shares = np.linspace(0.0, 1.0, POINTS_BETWEEN)
    own, other = as_array(state.duals[sampled]), as_array(others[sampled])
    values = []
    for t in shares:
        weights = state.weights + t * (there.weights - state.weights)
        duals = own + own.dtype.type(t) * (other - own)
        conjugates = loss.row_conjugates(duals, costs.y[sampled])
        sum_of_all = step * float(costs.cost[sampled] @ conjugates)
        values.append(-0.5 * float(np.vdot(weights, weights)) - sum_of_all)
    t = shares[int(np.nanargmax(values))]
    if t == 0.0:
        return
    for part in chunks(n, problem.n_classes * state.duals.dtype.itemsize):
        own, other = as_array(state.duals[part]), as_array(others[part])
        store(state.duals, part, costs.y[part], own + own.dtype.type(t) * (other - own))
    state.weights = state.weights + state.weights.dtype.type(t) * (there.weights - state.weights)
    # Weights are rounded as those rebuilt are, and duals once more.
    state.rounding += there.rounding + rounding_of_duals(problem.storage.kappa, costs.cost)
