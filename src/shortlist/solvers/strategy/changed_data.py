"""Weights to begin with when the data has changed: where an update begins.

``train_new_classes``  finds the new columns of W, all others as they are
``best_multiple``      finds t W, with t between 0, a cold start, and 1

Both work on the scores of the old classes, which stay as they are or are multiplied. So one
product with all of W is enough.
"""

import numpy as np
from numpy.typing import NDArray

from shortlist.losses import Loss
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.certificate import Point
from shortlist.solvers.storage.base import CHUNK_BYTES
from shortlist.solvers.strategy.lbfgs import lbfgs

# Evaluations at most. The start need not be exact: all weights change in what follows.
MAX_EVALUATIONS = 30
# The new weights are good enough when the gradient's norm is at most this share of its first.
MAX_GRADIENT_SHARE_LEFT = 0.03
# Multiples of the weights are tried from 1 down, in steps of this.
STEP_OF_MULTIPLE = 0.05
# The smoothing of a loss with kinks, whose gradients tell how to descend.
SMOOTHING = 0.1


def smooth_relative(loss: Loss) -> Loss | None:
    """The loss whose duals are kept, or a smoothed version: its gradients are feasible duals."""
    kept = loss.dual_loss
    if kept.smooth or kept.smoother is None:
        return kept if kept.smooth else None
    return kept.smoother(SMOOTHING)


def _at_hand(problem: Problem) -> bool:
    """Whether the scores of all examples can be held, and rows read as often as needed."""
    storage = problem.storage
    size = storage.n * problem.n_classes * storage.dtype.itemsize
    return storage.rows_at_hand and size <= CHUNK_BYTES


def train_new_classes(problem: Problem, weights: NDArray, new: NDArray) -> bool:
    """Minimise P over the columns ``new`` of the weights, in place; all others stay as they are.

    An evaluation takes two products with the new columns only, and the gradients of the losses.
    Returns whether there was a way to.
    """
    loss, storage, costs = smooth_relative(problem.loss), problem.storage, problem.costs
    if loss is None or not _at_hand(problem):
        return False
    scores = storage.all_scores(weights, problem.crew)
    penalised = problem.penalised
    evaluations = 0

    def evaluate(place: NDArray) -> Point:
        nonlocal evaluations
        evaluations += 1
        losses, gradient = storage.loss_gradient_of_classes(
            loss, scores, place, new, costs, problem.crew
        )
        gradient[penalised] += place[penalised]
        square = float(np.vdot(place[penalised], place[penalised]))
        return Point(place, 0.5 * square + losses, gradient)

    start = point = evaluate(np.ascontiguousarray(weights[:, new]))
    enough = MAX_GRADIENT_SHARE_LEFT * float(np.linalg.norm(start.gradient))
    noise = float(np.finfo(storage.dtype).eps)
    for point in lbfgs(evaluate, start, noise):
        if evaluations >= MAX_EVALUATIONS or np.linalg.norm(point.gradient) <= enough:
            break
    weights[:, new] = point.place
    return True


def best_multiple(problem: Problem, weights: NDArray) -> NDArray:
    """The multiple of the weights between 0 and 1 with the smallest P.

    Examples with wrong labels make scores that were right before too large as a whole.
    """
    loss, costs = problem.loss, problem.costs
    if not (loss.convex and _at_hand(problem)):
        return weights
    scores = problem.storage.all_scores(weights, problem.crew)
    regularised = weights[problem.penalised]
    square = float(np.vdot(regularised, regularised))
    best, lowest = 1.0, np.inf
    for t in np.arange(1.0, -0.5 * STEP_OF_MULTIPLE, -STEP_OF_MULTIPLE):
        scaled = scores * scores.dtype.type(t)
        losses = loss.write_gradients(scaled, costs.y, np.empty_like(scaled))
        primal = 0.5 * t * t * square + float(costs.cost @ losses)
        if not primal < lowest:
            break  # P is convex along the ray
        best, lowest = float(t), primal
    return weights * weights.dtype.type(best)
