"""Rounds of cheap visits on the support, after a full epoch (see ``kernels.support``)."""

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, readable
from shortlist.solvers.kernels.support import support_rows
from shortlist.solvers.storage.base import Costs, State, Storage, Support
from shortlist.solvers.threads import Crew


class Patience(NamedTuple):
    """When rounds of visits end.

    Rounds end when the gap is ``gap_left`` of the first round's, or after ``rounds``, or after the
    time of ``epochs`` full epochs. If the gap asked for is at least ``in_sight`` of the first, they
    go on to it. After ``idle`` rounds without progress the rest is rounding.
    """

    gap_left: float
    rounds: float = np.inf
    epochs: float = np.inf
    in_sight: float = np.inf
    idle: float = np.inf

    def end(self, first_gap: float, enough: float) -> float:
        """The gap at which to end, by the one of the first round and what is enough."""
        if enough >= min(self.in_sight, self.gap_left) * first_gap:
            return enough
        return self.gap_left * first_gap


# After an epoch, where a round costs little.
AFTER_EPOCH = Patience(gap_left=0.05, epochs=3.0)
# With inner products, an epoch and its certificate cost as much as 20 rounds. Digits with the rbf
# kernel, C = 0.1 to 100: shares of 0.05 to 0.2, and 0.004 to 0.03 in sight, are within a tenth.
AFTER_EPOCH_ON_GRAM = Patience(gap_left=0.1, epochs=3.0, in_sight=0.01, idle=20)
# Passes over the support after an epoch, for storages whose examples do not lie together.
SUPPORT_PASSES = 6
# A pass over pieces reads their rows again, and so visits each some times.
IN_PIECE = Patience(gap_left=0.5, rounds=8)
# Workers of a cluster visit the support of their rows once between two messages. More visits would
# fit W to their own rows: at C = 0.1 two workers took 3 epochs instead of 2, at C = 10 half as much
# time again.
ONE_ROUND = Patience(gap_left=0.5, rounds=1)

# Rounds may also end early, once the support's gap is at most so many times the gap that is enough:
# 0.84 of the gap asked for. A look at the whole gap may find it small enough already. If not, an
# epoch follows. A look and an epoch take as long as EPOCHS_OF_A_MISSED_LOOK epochs (by CLINC150's
# times). Rounds go on if they are predicted to take less. The hinge on 20 newsgroups at C = 0.1, 1
# and 10 takes 8.4, 18 and 49 epochs instead of 10.6, 24 and 52.
MAX_GAP_RATIO_TO_LOOK, EPOCHS_OF_A_MISSED_LOOK = 2.8, 1.33
# The least fall of the gap since the first round that tells a rate.
MIN_FALL = 1.01
# A joint step follows when so many times the entries of the first round were visited since the last
# one. It passes over all that is open, while later rounds visit what still changes. With one after
# every round, the hinge on CLINC150 at C = 1 to 1000 takes 1.2 to 1.35 times as long, on Letter at
# C = 0.3 1.6 times, digits 0.9 to 1.4 times, and 1500 rows of Letter at C = 10 0.8 times. With 4,
# digits take up to 1.2 times as long.
ROUNDS_PER_JOINT_STEP = 2.0
# Rounds of fewer examples do not end early. One visit in eight measures its share of the gap, and a
# small sample says little.
MIN_EXAMPLES_TO_END_EARLY = 1000


class RoundsFound(NamedTuple):
    """What rounds of visits found and took: the first gap, the rows it changed, the entries."""

    first_gap: float
    first_changed: NDArray
    entries: int


def rows_on_support(duals: Duals, cost: NDArray) -> NDArray:
    """The examples that count and have duals that are not zero."""
    return support_rows(readable(duals), cost, np.empty(duals.shape[1], duals.dtype))


def visit_in_rounds(
    storage: Storage,
    loss: Loss,
    support: Support,
    random: np.random.Generator,
    patience: Patience,
    enough: float = 0.0,
) -> RoundsFound:
    """Visit what is open until its gap is well down, or ``enough``, or patience ends."""
    order = support.order
    whole = storage.n * support.by_class.shape[0]
    price = support.price or storage.support_price
    most_entries = patience.epochs * whole / price
    first_gap, first_changed = 0.0, order[:0]
    entries = number = first_entries = entries_before_step = 0
    smallest, smallest_at = np.inf, 0
    while True:
        gap, visited, moved = support.visit(loss, order)
        if number == 0:
            first_gap, first_changed = gap, order[:moved].copy()
            first_entries = visited
        entries += visited
        number += 1
        if gap < smallest:
            smallest, smallest_at = gap, number
        if not moved or gap <= patience.end(first_gap, enough):
            break
        if number - smallest_at >= patience.idle:
            break
        told = number > 1 and order.size >= MIN_EXAMPLES_TO_END_EARLY
        if told and gap <= MAX_GAP_RATIO_TO_LOOK * enough:
            to_go = visited * _rounds_to_go(number, first_gap, gap, enough)
            if to_go >= EPOCHS_OF_A_MISSED_LOOK * whole / price:
                break
        # Not after a joint step: it raises the dual objective, but the primal too.
        if entries >= most_entries or number >= patience.rounds:
            break
        # A few rounds are over before joint steps pay.
        due = entries - entries_before_step >= ROUNDS_PER_JOINT_STEP * first_entries
        if due and patience.rounds == np.inf:
            support.step_jointly(loss)
            entries_before_step = entries
        # Skip examples whose dual did not change: most stay at a bound. The next full epoch
        # visits them again.
        order = random.permutation(support.narrow(order[:moved]))
    return RoundsFound(first_gap, first_changed, entries)


def _rounds_to_go(number: int, first_gap: float, gap: float, enough: float) -> float:
    """Rounds from this gap to the one that is enough, at the rate since the first."""
    return number * log(gap / enough) / log(max(first_gap / gap, MIN_FALL))


def support_pass(
    storage: Storage, loss: Loss, rows: NDArray, state: State, costs: Costs, patience: Patience
) -> tuple[float, NDArray]:
    """Visit these rows on their support; returns the gap that was found and the rows it changed."""
    support = storage.open_support(rows.copy(), state, costs)  # visits reorder it
    random = np.random.default_rng(rows.size)
    found = visit_in_rounds(storage, loss, support, random, patience)
    storage.close_support(support, state, costs)
    return found.first_gap, found.first_changed


def polish_support(
    storage: Storage,
    loss: Loss,
    state: State,
    costs: Costs,
    random: np.random.Generator,
    crew: Crew,
    enough: float = 0.0,
    epochs: float = 0.0,
) -> float:
    """Visit the support until its gap is at most ``enough`` or the time is used up.

    Visits also end when the gap is small against that of the first round; see :class:`Patience`.
    With explicit weights the time is that of ``epochs`` full epochs, or of AFTER_EPOCH.epochs if
    that is longer. With inner products it is AFTER_EPOCH_ON_GRAM's.

    Returns the entries visited, as a number of full epochs.
    """
    rows = rows_on_support(state.duals, costs.cost)
    if not rows.size:
        return 0.0
    support = storage.open_support(random.permutation(rows), state, costs)
    support.order = random.permutation(support.order)
    support.crew = crew
    patience = AFTER_EPOCH_ON_GRAM
    if storage.explicit:
        patience = AFTER_EPOCH._replace(epochs=max(AFTER_EPOCH.epochs, epochs))
    found = visit_in_rounds(storage, loss, support, random, patience, enough)
    storage.close_support(support, state, costs)
    return found.entries / (storage.n * state.weights.shape[1])
