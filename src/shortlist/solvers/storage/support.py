"""Rounds of cheap visits on the support, after a full epoch (see ``kernels.support``)."""

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, readable
from shortlist.solvers.kernels.support import support_rows, visit_support
from shortlist.solvers.storage.base import Costs, State, Storage, Support

# Support epochs end when the gap on the support is this share of what the first one found,
SUPPORT_GAP_LEFT = 0.05
# or when they have cost so many full epochs.
SUPPORT_EPOCHS = 3.0

# Where examples do not lie together, a pass over their support reads the rows again, or takes a
# message. It ends for each part of the rows when their gap is this share of what it was,
PASS_GAP_LEFT = 0.5
# or after so many visits; an epoch is followed by so many passes.
EPOCHS_PER_PASS = 8
SUPPORT_PASSES = 6


def support_epoch(support: Support, loss: Loss, order: NDArray) -> tuple[float, int, int]:
    """Visit these examples on their support.

    Returns an estimate of their gap, how many entries were visited and how many examples changed;
    these are put first in ``order``.
    """
    gap, rounding, entries, moved = visit_support(
        loss.spec,
        support.view,
        order,
        support.by_class,
        support.y,
        support.cost,
        support.kappa,
        readable(support.duals),
        loss.fewest_classes,
    )
    support.rounding += rounding
    return gap, entries, moved


def rows_on_support(duals: Duals, cost: NDArray) -> NDArray:
    """The examples that count and have duals that are not zero."""
    return support_rows(readable(duals), cost, np.empty(duals.shape[1], duals.dtype))


def support_pass(
    storage: Storage, loss: Loss, rows: NDArray, state: State, costs: Costs
) -> tuple[float, NDArray]:
    """Visit these rows on their support until their gap is half of what it was.

    Returns the gap that was found, and the rows that changed.
    """
    support = storage.open_support(rows.copy(), state, costs)  # visits reorder it
    random, order = np.random.default_rng(rows.size), support.order
    first, changed = 0.0, order[:0]
    for number in range(EPOCHS_PER_PASS):
        gap, _, moved = support_epoch(support, loss, order)
        if number == 0:
            first, changed = gap, order[:moved].copy()
        if gap <= PASS_GAP_LEFT * first or not moved:
            break
        order = random.permutation(order[:moved])
    storage.close_support(support, state, costs)
    return first, changed


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
    rows = rows_on_support(state.duals, costs.cost)
    if not rows.size:
        return 0.0
    support = storage.open_support(random.permutation(rows), state, costs)
    order = random.permutation(support.order)
    whole = storage.n * state.weights.shape[1]
    visited = spent = 0.0
    first = None
    while spent < SUPPORT_EPOCHS:
        gap, entries, moved = support_epoch(support, loss, order)
        if not entries:
            break
        spent += storage.support_price * entries / whole
        visited += entries / whole
        first = gap if first is None else first
        if gap <= max(SUPPORT_GAP_LEFT * first, enough) or not moved:
            break
        # Skip examples whose dual did not change: most stay at a bound. The next full epoch
        # visits them again.
        order = random.permutation(support.narrow(order[:moved]))
    storage.close_support(support, state, costs)
    return visited
