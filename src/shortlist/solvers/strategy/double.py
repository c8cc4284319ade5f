"""Going on in double where single precision is too coarse for the gap asked for.

The hinges have kinks, and at large C most of the objective is at them: a score that is off by its
rounding error e costs up to C e, for every example that lies at its margin. The hinge on CLINC150
at C = 1000 (float32, 15000 x 384, 150 classes) ends at a gap of 0.4 % however long it is trained,
and needs 10 epochs to 0.1 % in double.

So SDCA goes on with a copy of the examples and the duals in double. The model's weights are those
it ends with, rounded, and the gap is that of the rounded weights, their objective in double. Where
the gap is too large only by this rounding, training goes on to a smaller one. A multiple of the
weights is tried too (``strategy.multiples``).

The descent on a loss that is not convex ends in double too (:func:`descend_in_double`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.domains import feasible
from shortlist.solvers.duals import Duals, copy_duals
from shortlist.solvers.problem import Moments, Problem
from shortlist.solvers.records.certificate import Point
from shortlist.solvers.records.checkpoint import Keeper, Snapshot
from shortlist.solvers.records.result import Status
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage.base import KeptScores, State, squared_norm
from shortlist.solvers.strategy.descent import NOISE_ULPS
from shortlist.solvers.strategy.lbfgs import lbfgs
from shortlist.solvers.strategy.multiples import best_multiple, multiples_help

# Single precision is too coarse if the bound on rounding exceeds this share of the gap asked for.
# Measured on CLINC150: the share is 0.12 at C = 30, where both take as long; 0.4 at C = 100, where
# single precision takes 3.7 seconds and double 2.2; and 4 at C = 1000.
MAX_ROUNDING_SHARE = 0.1
# For a loss that is not convex. The weights are rounded and tested when the gradient's share of tol
# is 1, 0.1 and 0.01, each SHARE_BETWEEN_TESTS of the one before. After a test below this share the
# descent stops: only rounding is left.
MIN_SHARE_IN_DOUBLE, SHARE_BETWEEN_TESTS = 0.05, 0.1
# Shares of the gap asked for to which training goes on in double, one after the other. Rounding the
# weights takes the rest.
SHARES_OF_TOL = (0.9, 0.3)


def is_too_coarse(run: Run) -> bool:
    """Whether to go on in double, by the last certificate of the run's state.

    Smooth losses get by: rounding changes their gap to second order only.
    """
    problem = run.problem
    if problem.loss.smooth or run.single_only or problem.storage.dtype == np.float64:
        return False
    return problem.storage.rows_at_hand and run.rounding > MAX_ROUNDING_SHARE * run.wanted


def go_on_in_double(run: Run, solve: Callable[[Run], Status]) -> Status:
    """Solve the run's problem in double, from its duals on; ``solve`` returns a status.

    Returns COARSE where memory is short of a copy: then nothing has changed, and the run stays in
    single precision.
    """
    problem = run.problem
    storage = problem.storage.in_double(problem.n_classes, problem.loss.sparse_duals)
    if storage is None:
        run.single_only = True
        return Status.COARSE
    wide = replace(problem, storage=storage, moments=Moments(), kept_scores=KeptScores())
    inner = Run(
        wide,
        _widened(run.state, wide),
        run.tol,
        run.max_epochs,
        run.callback,
        run.accuracy,
        solver=run.solver,
        epochs=run.epochs,
        bound_alone=run.bound_alone,
        clock=run.clock,
        history=run.history,
        keeper=None if run.keeper is None else _InSingle(run.keeper, problem),
        stage=run.stage,
    )
    status = Status.COARSE
    try:
        for share in SHARES_OF_TOL:
            inner.tol = share * run.tol
            status = solve(inner)
            _take_weights(run, inner)
            if status != Status.CONVERGED or run.solved(run.history[-1]):
                return status
    except BaseException:
        _take_weights(run, inner)
        raise
    finally:
        copy_duals(inner.state.duals, run.state.duals, problem.costs.y)
        run.state.starts[:] = inner.state.starts
        problem.rebuild(run.state)
        run.solver = f"{inner.solver}, in double"
    return Status.STALLED


def _widened(state: State, wide: Problem) -> State:
    """The state in double. Duals that miss their domain by rounding are moved inside."""
    found, loss = wide.zero_state(), wide.loss.dual_loss
    copy_duals(state.duals, found.duals, wide.costs.y, lambda v, y: feasible(loss.spec, v, y))
    found.starts[:] = state.starts
    wide.rebuild(found)
    return found


def _take_weights(run: Run, inner: Run) -> None:
    """Note the best weights in double, rounded, with their own objective and the best bound."""
    run.epochs, run.clock = inner.epochs, inner.clock
    if inner.weights is None:
        return
    problem, bound = run.problem, float(inner.bound_alone)
    weights = inner.weights.astype(problem.storage.dtype)
    primal, _ = problem.primal_gradient(weights, double=True)
    if primal - bound > run.tol * primal and multiples_help(problem):
        # Rounding moves examples at their margin to either side. Longer weights mend that.
        t, _ = best_multiple(problem, weights)
        longer = (t * inner.weights).astype(weights.dtype)
        other, _ = problem.primal_gradient(longer, double=True)
        if other < primal:
            primal, weights = other, longer
    run.record(problem.pair(primal, bound, weights, double=True), weights)


@dataclass(frozen=True)
class _InSingle:
    """Keeps snapshots of a run in double as those of its problem in single precision."""

    keeper: Keeper
    problem: Problem

    def due(self) -> bool:
        return self.keeper.due()

    def keep(self, snapshot: Snapshot) -> None:
        duals: Duals = self.problem.zero_duals()
        copy_duals(snapshot.duals, duals, self.problem.costs.y)
        weights = snapshot.weights
        if weights is not None:
            weights = weights.astype(self.problem.storage.dtype)
        self.keeper.keep(replace(snapshot, duals=duals, weights=weights))


def descend_in_double(run: Run) -> Status:
    """Go on where single precision sees no further decrease, with values and gradients in double.

    The model's weights are in the storage's precision: what is noted is theirs, and training has
    converged when the gradient there is small enough.
    """
    problem, dtype = run.problem, run.problem.storage.dtype

    def evaluate(place: NDArray) -> Point:
        run.epochs += 1
        return Point(place, *problem.primal_gradient(place, double=True))

    def note(point: Point) -> None:
        pair = problem.pair(point.value, np.nan, point.place, double=True)
        run.record(pair, point.place.astype(dtype))
        run.notify(run.weights)

    def share(point: Point) -> float:
        """The part of ``tol`` that the gradient takes."""
        return 0.5 * squared_norm(point.gradient) / (run.tol * point.value)

    assert run.weights is not None
    start = evaluate(run.weights.astype(np.float64))
    run.settle(start.value, run.weights)
    try_at = 1.0
    for point in lbfgs(evaluate, start, NOISE_ULPS * float(np.finfo(np.float64).eps)):
        # Rounding the weights changes the objective by less than its last place in single
        # precision, but the gradient by more where C is large.
        note(point)
        if run.epochs >= run.max_epochs:
            return Status.MAX_EPOCHS
        if share(point) > try_at:
            continue
        rounded = evaluate(point.place.astype(dtype).astype(np.float64))
        if share(rounded) <= 1.0:
            note(rounded)
            return Status.CONVERGED
        if try_at < MIN_SHARE_IN_DOUBLE:
            return Status.STALLED
        try_at *= SHARE_BETWEEN_TESTS
    return Status.STALLED
