"""Examples with explicit features and nonzero duals, opened for cheap visits and joint steps."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import array_of, rows_at_once, writable
from shortlist.solvers.kernels.dual_rows import ListedRows
from shortlist.solvers.kernels.joint import LAST_DUAL
from shortlist.solvers.kernels.joint_features import list_support
from shortlist.solvers.kernels.support import MEASURE_EVERY
from shortlist.solvers.kernels.visit import visit_in_turn
from shortlist.solvers.storage.base import Support, rounding_of_weights
from shortlist.solvers.storage.joint_steps import JointSteps
from shortlist.solvers.storage.teams import MAX_CLASSES, Teams, make_teams
from shortlist.solvers.threads import Crew

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
# A round of visits is parted between threads if it takes so many multiplications, a millisecond's.
MIN_MULTIPLICATIONS_TO_PART = 2e6


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
    teams: Teams | None = field(init=False)
    joint: JointSteps | None = None
    not_worth_it: bool = False
    first_rounding: float = 0.0

    def __post_init__(self) -> None:
        self.numbers = self.order.copy()
        self.listed = self.teams = None
        m = len(self.by_class)
        if m < MIN_CLASSES_TO_LIST:
            return
        begin, classes, _, past = self._list_support()
        n = len(self.duals)
        if array_of(self.duals) is not None:
            places = np.empty(n, np.int64)
            places[self.numbers] = np.arange(self.numbers.size)
            self.listed = ListedRows(past[LAST_DUAL].copy(), places, begin, classes)
        if m <= MAX_CLASSES and self._is_long(self.numbers.size):
            self.teams = make_teams(self.numbers, begin, classes, n, m)

    def _is_long(self, examples: int) -> bool:
        """Whether visits to so many examples are worth another thread: two classes each or more."""
        return 4.0 * examples * self.width >= MIN_MULTIPLICATIONS_TO_PART

    def part(self, order: NDArray) -> NDArray:
        if self.teams is None or not self._is_long(order.size):
            return super().part(order)
        return self.teams.part(order)

    def kept_duals(self) -> Any:
        return self.listed or super().kept_duals()

    def _list_support(self) -> Any:
        room = np.empty(len(self.by_class), self.by_class.dtype)
        return list_support(self.kept_duals(), self.numbers, self.y, room)

    def step_jointly(self, loss: Loss) -> float:
        if self.not_worth_it:
            return 0.0
        if self.joint is None:
            self._prepare_joint_steps()
            return 0.0
        crew = self.crew if self._is_long(self.numbers.size) else Crew()
        return self.joint.step(loss, crew)

    def _prepare_joint_steps(self) -> None:
        weights = self.by_class
        self.not_worth_it = (
            self.cost.size < MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS * weights.shape[1]
        )
        if self.not_worth_it:
            return
        listed = self._list_support()
        self.not_worth_it = PASSES_OVER_WEIGHTS * weights.size > 2.0 * listed[1].size * self.width
        if not self.not_worth_it:
            given = (self.view, self.numbers, weights, self.y, self.cost, self.kept_duals())
            self.joint = JointSteps(*given, *listed)
            self.first_rounding = self.rounding

    def settle(self) -> None:
        whole = array_of(self.duals)
        if self.listed is not None and whole is not None:
            owners = np.repeat(self.numbers, np.diff(self.listed.begin))
            whole[owners, self.listed.classes] = self.listed.values
        if self.joint is None or not self.joint.taken:
            return
        self.by_class = self.joint.weights_anew()
        self.rounding = self.first_rounding + rounding_of_weights(self.by_class)


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
