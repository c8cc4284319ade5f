"""Examples with explicit features and nonzero duals, opened for cheap visits and joint steps."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import array_of, readable, rows_at_once, writable
from shortlist.solvers.kernels.dual_rows import ListedRows
from shortlist.solvers.kernels.joint import (
    LAST_DUAL,
    joint_step_of_features,
    list_support,
    subtract_dual_changes,
)
from shortlist.solvers.kernels.support import MEASURE_EVERY
from shortlist.solvers.kernels.visit import visit_in_turn
from shortlist.solvers.storage.base import Support, rounding_of_weights

# A joint step passes over the weights about so often. It is worth that if a round of visits takes
# as many multiplications.
PASSES_OVER_WEIGHTS = 8
# Joint steps are left out with fewer examples a feature. The smooth hinge on silhouettes (784
# features, 5 examples each) at C = 0.1 takes 2 seconds, and 4 with them. On CLINC150 (39 examples
# a feature) they save a sixth to a third of the time at C = 10 to 1000, on digits (28) half of it
# at C = 1 and three quarters at C = 10 and 100.
MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS = 20
# With at least so many classes, the entries of an array that are not zero are listed for visits. On
# CLINC150 (150 classes) it took 135 of a visit's 480 nanoseconds to look for them.
MIN_CLASSES_TO_LIST = 64


@dataclass
class _Entries:
    """The listed duals and their weights W at the first joint step, and of the last one.

    ``past`` and ``last`` are the duals and weights at the last joint step, and ``step`` by how much
    W had changed since the one before (see ``kernels.joint``).
    """

    begin: NDArray
    classes: NDArray
    slots: NDArray
    past: NDArray
    first_duals: NDArray
    first_weights: NDArray
    first_rounding: float
    last: NDArray
    step: NDArray


@dataclass
class FeatureSupport(Support):
    """Visits change W by classes; joint steps move it along its last changes.

    ``width`` is the number of features of an example, or of those that are not zero.

    A joint step repeats the rounding errors of the changes that it is made of. So W is made anew in
    the end, from the duals' changes since the first joint step.
    """

    width: float = field(kw_only=True)
    numbers: NDArray = field(init=False)
    listed: ListedRows | None = field(init=False)
    entries: _Entries | None = None
    not_worth_it: bool = False
    steps: int = 0

    def __post_init__(self) -> None:
        self.numbers = self.order.copy()
        self.listed = None
        whole = array_of(self.duals)
        if whole is not None and len(self.by_class) >= MIN_CLASSES_TO_LIST:
            begin, classes, _, _ = self._list_support()
            places = np.empty(len(self.duals), np.int64)
            places[self.numbers] = np.arange(self.numbers.size)
            self.listed = ListedRows(whole, places, begin, classes)

    def kept_duals(self) -> Any:
        return self.listed or super().kept_duals()

    def _list_support(self) -> Any:
        room = np.empty(len(self.by_class), self.by_class.dtype)
        return list_support(readable(self.duals), self.numbers, self.y, room)

    def step_jointly(self, loss: Loss) -> float:
        if self.not_worth_it:
            return 0.0
        if self.entries is None:
            self._list_entries()
            return 0.0
        listed = self.entries
        rise: float = joint_step_of_features(
            loss.spec,
            not loss.smooth,
            self.view,
            self.numbers,
            self.by_class,
            listed.last,
            listed.step,
            self.y,
            self.cost,
            readable(self.duals),
            listed.begin,
            listed.classes,
            listed.slots,
            listed.past,
        )
        self.steps += rise > 0.0
        return rise

    def _list_entries(self) -> None:
        weights = self.by_class
        self.not_worth_it = (
            self.cost.size < MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS * weights.shape[1]
        )
        if self.not_worth_it:
            return
        begin, classes, slots, past = self._list_support()
        self.not_worth_it = PASSES_OVER_WEIGHTS * weights.size > 2.0 * classes.size * self.width
        if not self.not_worth_it:
            first = past[LAST_DUAL].copy()
            self.entries = _Entries(
                *(begin, classes, slots, past, first, weights.copy(), self.rounding),
                *(weights.copy(), np.zeros_like(weights)),
            )

    def settle(self) -> None:
        if self.entries is None or not self.steps:
            return
        listed = self.entries
        anew = listed.first_weights.astype(np.float64)
        duals = readable(self.duals)
        subtract_dual_changes(
            *(self.view, self.numbers, self.cost, duals),
            *(listed.begin, listed.classes, listed.slots, listed.first_duals, anew),
        )
        self.by_class = anew.astype(self.by_class.dtype)
        self.rounding = listed.first_rounding + rounding_of_weights(self.by_class)


@dataclass
class RowSupport(Support):
    """Visits to all classes of the examples with duals, where a few classes cost no less.

    W stays as it is, a feature's numbers lying together.
    """

    price: float = 1.0
    starts: NDArray = field(kw_only=True)

    def visit(self, loss: Loss, order: NDArray) -> tuple[float, int, int]:
        gap, moved = 0.0, 0
        size = rows_at_once(self.duals, order.size)
        for begin in range(0, order.size, size):
            part = order[begin : begin + size]
            share, rounding, count = visit_in_turn(
                loss.spec,
                self.view,
                part,
                self.by_class.T,
                self.y,
                self.cost,
                self.kappa,
                writable(self.duals, part.size),
                self.starts,
                MEASURE_EVERY,
            )
            gap += share
            self.rounding += rounding
            order[moved : moved + count] = part[:count]
            moved += count
        return gap, order.size * len(self.by_class), moved
