"""Weights of new classes, those of all others as they are: where an update begins.

    min over the new columns of W of  P(W)

Scores of the old classes stay as they are. So an evaluation takes two products with the new
columns only, and one gradient of the losses.
"""

import numpy as np
from numpy.typing import NDArray

from shortlist.losses import Loss
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage.base import CHUNK_BYTES
from shortlist.solvers.strategy.lbfgs import Point, lbfgs

# Evaluations at most. The start need not be exact: all weights change in what follows.
MOST_EVALUATIONS = 30
# What is left of the first gradient's norm when the weights are good enough.
SHARE_LEFT = 0.03
# The smoothing of a loss with kinks, whose gradients tell how to descend.
SMOOTHING = 0.1


def smooth_relative(loss: Loss) -> Loss | None:
    """The loss, or a smoothed version of it: its gradients are feasible duals of the loss."""
    if not loss.convex:
        return None
    if loss.smooth:
        return loss
    return None if loss.smoother is None else loss.smoother(SMOOTHING)


def train_new_classes(problem: Problem, weights: NDArray, new: NDArray) -> bool:
    """Set the columns ``new`` of the weights to their best; returns whether there was a way.

    Scores of all classes are held at once, in as much memory as duals would take.
    """
    loss, storage, costs = smooth_relative(problem.loss), problem.storage, problem.costs
    if loss is None or not storage.lists_curvature:
        return False
    if storage.n * problem.n_classes * storage.dtype.itemsize > CHUNK_BYTES:
        return False
    scores = storage.all_scores(weights, problem.crew)
    penalised = slice(0, -1 if problem.free_intercept else None)
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

    point = evaluate(np.ascontiguousarray(weights[:, new]))
    enough = SHARE_LEFT * float(np.linalg.norm(point.gradient))
    noise = float(np.finfo(storage.dtype).eps)
    for point in lbfgs(evaluate, point, noise):
        if evaluations >= MOST_EVALUATIONS or np.linalg.norm(point.gradient) <= enough:
            break
    weights[:, new] = point.place
    return True
