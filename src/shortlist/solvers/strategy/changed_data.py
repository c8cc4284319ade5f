"""When the data has changed: weights that an update begins with, and examples that it visits.

``train_new_classes``  finds the new columns of W, all others as they are
``best_shortened``     finds t W, with t between 0, a cold start, and 1
``holders_of_gap``     finds the few examples that hold nearly all of the gap

The first two work on the scores of the old classes, which stay as they are or are multiplied. So
one product with all of W is enough.
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
# Descend on a loss with kinks as smoothed by this gamma.
SMOOTHING_TO_DESCEND = 0.1
# Do not visit examples that together hold at most GAP_SHARE_LEFT_OUT of the gap, or
# WANTED_SHARE_LEFT_OUT of the gap asked for. Epochs of updates by wrong labels of CLINC150, C = 10:
#
#     share left out              0.003   0.01   0.03    0.1
#     smooth hinge,  15 labels     0.56   0.50   0.44   0.46
#     smooth hinge, 150 labels      2.0    1.5    1.5    1.2
#     hinge,         15 labels      3.1    2.9    2.7    2.8
#     hinge,        150 labels      5.8    5.7    5.6    4.4
GAP_SHARE_LEFT_OUT, WANTED_SHARE_LEFT_OUT = 0.1, 0.3


def smooth_relative(loss: Loss) -> Loss | None:
    """The loss whose duals are kept, or a smoothed version: its gradients are feasible duals."""
    kept = loss.dual_loss
    if kept.smooth or kept.smoother is None:
        return kept if kept.smooth else None
    return kept.smoother(SMOOTHING_TO_DESCEND)


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


def best_shortened(problem: Problem, weights: NDArray) -> NDArray:
    """The multiple of the weights between 0 and 1 with the smallest P.

    Examples with wrong labels make scores that were right before too large as a whole. That W is to
    be longer, as in ``strategy.multiples``, is not looked for.
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


def holders_of_gap(shares: NDArray, wanted: float) -> NDArray:
    """The fewest examples that hold all of the gap but GAP_SHARE_LEFT_OUT of it.

    ``shares`` are those of all examples, C_i (L(s_i) + L*(v_i) - <s_i, v_i>). A visit takes its
    example's share away. None are left if the gap is far below the one ``wanted``.
    """
    order = np.argsort(shares)
    held = np.cumsum(np.maximum(shares[order], 0.0))
    little = WANTED_SHARE_LEFT_OUT * wanted
    if held.size:
        little = max(little, GAP_SHARE_LEFT_OUT * held[-1])
    return np.sort(order[np.searchsorted(held, little, side="right") :])
