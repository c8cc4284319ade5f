"""Rounds of cheap visits on the support, after a full epoch (see ``kernels.support``)."""

import numpy as np

from shortlist.losses.base import Loss
from shortlist.solvers.duals import readable
from shortlist.solvers.kernels.support import support_rows
from shortlist.solvers.storage.base import Costs, State, Storage

# Support epochs end when the gap on the support is this share of what the first one found,
SUPPORT_GAP_LEFT = 0.05
# or when they have cost so many full epochs.
SUPPORT_EPOCHS = 3.0


def polish_support(
    storage: Storage,
    loss: Loss,
    state: State,
    costs: Costs,
    random: np.random.Generator,
    enough: float = 0.0,
) -> float:
    """Cheap epochs on the support until its gap is well down, or ``enough``, or enough is spent.

    Returns the share of the examples' duals that was visited, in full epochs.
    """
    m = state.weights.shape[1]
    rows = support_rows(readable(state.duals), costs.cost, np.empty(m, state.duals.dtype))
    by_class = np.ascontiguousarray(state.weights.T)
    whole = storage.n * m
    visited = spent = 0.0
    first = None
    while spent < SUPPORT_EPOCHS and rows.size:
        rows = random.permutation(rows)
        gap, entries, moved = storage.support_epoch(loss, rows, by_class, state, costs)
        if not entries:
            break
        spent += storage.support_price * entries / whole
        visited += entries / whole
        first = gap if first is None else first
        if gap <= max(SUPPORT_GAP_LEFT * first, enough):
            break
        # Skip examples whose dual did not change: most stay at a bound. The next full epoch
        # visits them again.
        rows = rows[:moved]
    state.weights = np.ascontiguousarray(by_class.T)
    return visited
