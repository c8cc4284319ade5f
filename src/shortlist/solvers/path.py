"""From the solution at one C to a start at the next.

The duals v stay feasible when C changes, and so does t v for 0 <= t <= 1, since zero is in the
domain of every conjugate here. With ratio r = C'/C the weights become r t W. Keeping v (t = 1)
suits strong regularisation, where duals sit at their bounds; keeping W (t = 1/r) weak, where W has
nearly settled. The dual objective, concave in t and free of products with the data, decides.
"""

import numpy as np

from shortlist import losses
from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.solvers.duals import open_row, readable
from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import State

TRIALS = 9


@njit
def _conjugates(loss, duals, y, cost, factor, v):
    """sum_i C_i L*(factor v_i); ``v`` is scratch."""
    f = v.dtype.type(factor)
    total = 0.0
    for i in range(cost.shape[0]):
        if cost[i] > 0.0:
            row = open_row(duals, i, v)
            for j in range(v.shape[0]):
                v[j] = f * row[j]
            total += cost[i] * kernels.conjugate(loss, v, y[i])
    return total


def carry_over(problem: Problem, state: State, ratio: float) -> None:
    """Turn a state at C into a start for ``problem``, whose C is ``ratio`` times that."""
    norm = problem.rows.squared_norm(state.weights)
    best, factor = -np.inf, 1.0
    if norm is not None and ratio > 1.0:
        # A loss that is not convex starts from softmax, whose duals these are.
        loss = problem.loss if problem.loss.convex else losses.get("softmax")
        spec, costs = loss.spec, problem.costs
        scratch = np.empty(problem.n_classes, state.duals.dtype)
        for trial in np.linspace(0.0, 1.0, TRIALS):
            t = ratio**-trial
            dual = -0.5 * norm * (ratio * t) ** 2 - _conjugates(
                spec, readable(state.duals), costs.y, costs.cost, t, scratch
            )
            if dual > best:
                best, factor = dual, t
    state.duals *= state.duals.dtype.type(factor)
    state.weights *= state.weights.dtype.type(ratio * factor)
