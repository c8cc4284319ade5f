"""The record of one run: time, epochs, evaluations, the best primal and bound, the callback."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shortlist._compiling import compilation
from shortlist.solvers.problem import Problem, rounds_too_much
from shortlist.solvers.records.certificate import Certificate, Point, distance_to_optimum
from shortlist.solvers.records.checkpoint import ASCENT, FINISH, Keeper, Snapshot, Stage
from shortlist.solvers.records.result import Evaluation, Result, Status
from shortlist.solvers.storage.base import NO_SHARES, State

# The allowance between a primal and a dual bound of different evaluations, in units in the last
# place of the primal. It comes on top of the bounds on rounding.
MIXED_ULPS = 64.0
# Primals that differ by fewer such units count as equal.
SAME_ULPS = 8.0


def working_time() -> float:
    """Seconds on a clock like ``time.perf_counter``, stopped while kernels compile."""
    now, compiling = compilation.read()
    return now - compiling


class StopTraining(Exception):
    """Raise it in a callback to end training with the model as it is."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each epoch: the epoch, and the last exact evaluation."""

    epoch: float
    max_epochs: float
    seconds: float
    tol: float
    last: Evaluation | None
    weights: NDArray


Callback = Callable[[Progress], object]


@dataclass
class Run:
    """State and records of a run; every phase of training works on one of these.

    ``weights`` and ``primal`` are the best met so far, up to rounding; rounding changes the primal
    by ``doubt`` at most. ``bound_of_pair`` may be compared with ``primal`` only: they come from one
    evaluation, and their errors cancel. ``bound_alone`` is the best that is valid for any primal.
    It begins at zero: no loss here is negative. ``distance`` bounds how far the weights are from
    the optimum's, by the same evaluation.
    """

    problem: Problem
    state: State
    tol: float
    max_epochs: float
    callback: Callback | None = None
    accuracy: Callable[[NDArray], float] | None = None
    solver: str = "sdca"
    epochs: float = 0.0
    weights: NDArray | None = None
    primal: float = math.inf
    doubt: float = 0.0
    bound_of_pair: float = -math.inf
    bound_alone: float = 0.0
    distance: float = math.inf
    clock: float = field(default_factory=working_time)
    history: list[Evaluation] = field(default_factory=list)
    keeper: Keeper | None = None
    stage: Stage = field(default_factory=Stage)
    # One fit of a path.
    one_of_many: bool = False
    # The point whose gradients are the duals, if the duals are not made yet.
    point_of_duals: Point | None = None
    # What rounding adds at most to the gap of the state's last certificate.
    rounding: float = 0.0
    # The primal of the state's weights, by that certificate.
    primal_of_state: float = math.inf
    # Set where there is no memory to go on in double.
    single_only: bool = False
    # A guess of the primal that stands for it until it is known.
    expected: float = math.inf
    at_zero: float = field(init=False)

    def __post_init__(self) -> None:
        self.at_zero = self.problem.at_zero
        if not self.problem.loss.convex:
            self.bound_alone = math.nan

    @property
    def bound(self) -> float:
        """The best dual bound for the best primal; NaN without a dual."""
        return max(self.bound_alone, self.bound_of_pair)

    @property
    def seconds(self) -> float:
        """Seconds of training so far; those of compiling kernels do not count."""
        return working_time() - self.clock

    @property
    def wanted(self) -> float:
        """The largest gap that is small enough, as far as is known."""
        known = self.primal if self.history else self.expected
        primal = min(known, self.at_zero)
        return self.tol * max(min(primal, self.at_zero - self.bound), 0.0)

    @property
    def negligible(self) -> float:
        """A gap that need be no smaller share of what can be gained.

        Where a loss has kinks, W = 0 may be the solution. Then there is nothing to gain, and no
        gap is a small share of it. This is tol^2 of what the gradient at zero promises.
        """
        loss = self.problem.loss
        return 0.0 if loss.smooth or not loss.convex else self.tol**2 * self.problem.promised_gain

    def solved(self, found: Evaluation) -> bool:
        """Whether the gap is small enough, as a share of what can be gained or as it is."""
        if found.within(self.tol):
            return True
        # The promise is P(0) at most. To know it costs a pass over the examples.
        if found.relative_gap > self.tol or found.gap > self.tol**2 * self.at_zero:
            return False
        return found.gap <= self.negligible

    def record(self, found: Certificate, weights: NDArray, trusted: bool = True) -> Evaluation:
        """Note an evaluation. Time spent on validation accuracy is not training time.

        A dual bound that is not ``trusted``, as rounding may have raised it, goes into the history
        but not into the result.
        """
        primal, dual = found.primal, found.dual
        ulp = self._eps * abs(primal)
        # Of objectives that differ by rounding only, the later one's weights are better.
        if primal <= self.primal + SAME_ULPS * ulp or self.weights is None:
            self.primal = min(primal, self.primal)
            self.weights, self.doubt = weights.copy(), found.doubt
            # The gap stays that of the pair, whichever of the primals is kept.
            self.bound_of_pair = dual + (self.primal - primal) if trusted else -math.inf
            near = trusted and math.isfinite(found.apart)
            gap = max(primal - dual, 0.0)
            self.distance = distance_to_optimum(gap, found.apart) if near else math.inf
        if trusted:
            self.bound_alone = max(self.bound_alone, found.alone - MIXED_ULPS * ulp)
            if self.solved(self._best(self.bound)):
                self.resolve_doubt()
        best = self._best(self.bound if trusted else max(self.bound, dual))
        seconds = self.seconds
        accuracy = None
        if self.accuracy is not None:
            before = working_time()
            accuracy = self.accuracy(self.weights)
            self.clock += working_time() - before
        noted = replace(best, seconds=seconds, accuracy=accuracy)
        self.history.append(noted)
        return noted

    def _best(self, bound: float) -> Evaluation:
        # A bound can exceed the primal by rounding only.
        bound = math.nan if math.isnan(self.bound) else min(bound, self.primal)
        return Evaluation(self.epochs, 0.0, self.primal, bound, self.at_zero)

    @property
    def _eps(self) -> float:
        return float(np.finfo(self.problem.storage.dtype).eps)

    def settle(self, primal: float, weights: NDArray) -> None:
        """Take an objective computed in double for that of the best weights, if it is theirs.

        Of many objectives in single precision, the lowest is one that rounding has lowered.
        """
        if self.weights is not None and np.array_equal(self.weights, weights):
            self.primal = primal

    def resolve_doubt(self, of_pair: bool = False) -> None:
        """Mend the gap between the best primal and the best bound if it may be too small.

        The gap of a pair allows for rounding: its primal is computed again only if asked, and the
        gap kept. The gap to a bound of other duals, such as zero, is right only if the primal is.
        """
        storage = self.problem.storage
        if self.weights is None or not storage.explicit:
            return
        mixed = self.bound_alone > self.bound_of_pair
        allowed = MIXED_ULPS * self._eps * abs(self.primal)
        # If the only bound is zero, compute the primal exactly: no common error cancels.
        exactly = of_pair and self.bound == 0.0
        if storage.dtype != np.float64:
            if exactly or ((mixed or of_pair) and self.doubt > allowed):
                primal, _ = self.problem.primal_gradient(self.weights, double=True)
                self.bound_of_pair += primal - self.primal
                self.primal = primal
                self.doubt = self.problem.doubt(self.weights, double=True)
        elif mixed and allowed < self.doubt < self.bound_alone:
            # Where costs span many orders of magnitude, double is not enough either.
            self.bound_alone -= self.doubt
            self.doubt = 0.0

    def certify(self, shares: NDArray = NO_SHARES) -> Evaluation:
        """Compute the gap of the state and note it, and ``shares`` of it (see ``Problem``)."""
        wanted = self.wanted
        found = self.problem.certify(self.state, wanted, self.primal, shares)
        if found.rounding > 0.0 and self.bound == 0.0 and self.problem.storage.explicit:
            # Only now is it known how small a gap is wanted, and so how much rounding may add.
            less = self.tol * max(min(found.primal, self.at_zero - found.dual), 0.0)
            may_be_met = found.primal - found.dual - found.rounding <= less
            if less < 0.5 * wanted and may_be_met and rounds_too_much(found, less):
                found = self.problem.certify(self.state, less, self.primal, shares)
        self.rounding, self.primal_of_state = found.rounding, found.primal
        return self.record(found, self.state.weights)

    def begin(self, stage: str, gamma: float = 0.0) -> None:
        """Note that a stage begins here."""
        self.stage = Stage(stage, self.epochs, len(self.history), gamma)

    def go_on_from(self, snapshot: Snapshot) -> None:
        """Continue the count of epochs and seconds, and the history, of an earlier process."""
        self.stage, self.solver = snapshot.stage, snapshot.solver
        self.epochs = snapshot.epochs
        self.clock -= snapshot.seconds
        self.history = list(snapshot.history)

    def snapshot(self) -> Snapshot:
        """The run as it is now. SDCA goes on from duals, or from weights where there are none."""
        problem, state = self.problem, self.state
        duals = problem.storage.saved_duals(problem.loss.dual_loss, state.duals)
        weights = self.weights
        if self.stage.name in (ASCENT, FINISH):
            weights = None if len(duals) else state.weights
        return Snapshot(
            self.stage,
            self.solver,
            duals,
            state.starts,
            weights,
            self.epochs,
            self.seconds,
            tuple(self.history),
        )

    def offer(self) -> None:
        """Let the run be kept as it is now, if it is time for it."""
        if self.keeper is not None and self.keeper.due():
            self.keeper.keep(self.snapshot())

    def notify(self, weights: NDArray | None = None) -> None:
        """Call the callback; training ends if it returns True or raises StopTraining."""
        self.offer()
        if self.callback is None:
            return
        last = self.history[-1] if self.history else None
        shown = weights if weights is not None else self.state.weights
        answer = self.callback(
            Progress(self.epochs, self.max_epochs, self.seconds, self.tol, last, shown)
        )
        # Comparing the numbers of an evaluation gives NumPy's True.
        if isinstance(answer, bool | np.bool_) and answer:
            raise StopTraining

    def _distance(self) -> float:
        """A bound on how far the best weights are from the optimum's; NaN where there is none."""
        if math.isnan(self.bound) or self.problem.free_intercept:
            return math.nan
        mixed = self.bound_alone > self.bound_of_pair
        rounding = MIXED_ULPS * self._eps * abs(self.primal) if mixed else 0.0
        gap = max(self.primal - self.bound, 0.0) + rounding
        return min(distance_to_optimum(gap), self.distance)

    def result(self, status: Status) -> Result:
        # Where training did not get far, single precision may be far off.
        self.resolve_doubt(of_pair=status in (Status.MAX_EPOCHS, Status.STALLED))
        return Result(
            self.primal,
            min(self.bound, self.primal),
            self.epochs,
            self.seconds,
            str(status),
            self.solver,
            tuple(self.history),
            self.at_zero,
            self._distance(),
            by_descent=self.stage.name != ASCENT,
        )
