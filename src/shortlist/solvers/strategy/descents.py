"""The descent that suits the loss, from weights on, and what follows where it is slow."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.problem import Problem
from shortlist.solvers.records.certificate import Point
from shortlist.solvers.records.checkpoint import ASCENT, DESCENT, SMOOTHED
from shortlist.solvers.records.result import Status
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage.base import State, squared_norm
from shortlist.solvers.strategy.conditioning import plan
from shortlist.solvers.strategy.descent import descend
from shortlist.solvers.strategy.double import go_on_in_double
from shortlist.solvers.strategy.hessian import Kind
from shortlist.solvers.strategy.multipliers import (
    allows_multipliers,
    solve_by_multipliers,
    suits_multipliers,
)
from shortlist.solvers.strategy.smoothing import descend_smoothed

# L-BFGS on few weights gives way to another way after so many evaluations, or where its line search
# fails: smooth hinges to multipliers, other losses in single precision to double. Letter takes 14
# to 32. With noisy labels of 31 unequal classes (2000 x 15), L-BFGS on the smooth hinge takes 562
# at C = 10 and ends at max_epochs at C = 100, where multipliers take 30 and 69.
MAX_EVALUATIONS_BEFORE_ANOTHER = 60
# Without duals, descents go on while each leaves less than this share of the gap.
MAX_GAP_RATIO_PER_DESCENT = 0.5


def descend_from(run: Run, weights: NDArray) -> Status:
    """A descent on the primal, or on smoothed versions of it."""
    if run.stage.name == ASCENT:
        name = "newton" if suits_multipliers(run.problem) else "l-bfgs"
        run.solver = f"sdca + {name}" if run.epochs else name
        run.begin(DESCENT)
    if not run.problem.loss.smooth:
        suits = suits_multipliers(run.problem)
        return _solve_by_multipliers(run, weights) if suits else descend_smoothed(run, weights)
    if run.stage.name == SMOOTHED:  # resumed
        return _solve_by_multipliers(run, weights)
    another = _another_way(run.problem)
    status, for_dual = descend(run, weights, MAX_EVALUATIONS_BEFORE_ANOTHER if another else np.inf)
    if another and status in (Status.SLOW, Status.STALLED):
        assert run.weights is not None
        return another(run, run.weights)
    if not run.problem.keeps_duals:
        return _descend_further(run, status)
    if for_dual is not None:
        if status == Status.CONVERGED and run.one_of_many:
            run.point_of_duals = for_dual
        else:
            fill_duals_at(run.problem, for_dual, run.state)
    return status


def _another_way(problem: Problem) -> Callable[[Run, NDArray], Status] | None:
    """What solves a smooth problem of few weights where L-BFGS is slow or stalls."""
    if allows_multipliers(problem):
        return _go_on_by_multipliers
    few = problem.keeps_duals and plan(problem, late=True).kind is Kind.COUPLED
    single = problem.storage.dtype != np.float64
    return _descend_on_in_double if few and single and problem.storage.rows_at_hand else None


def _go_on_by_multipliers(run: Run, weights: NDArray) -> Status:
    run.solver += " + newton"
    return _solve_by_multipliers(run, weights)


def _descend_on_in_double(run: Run, weights: NDArray) -> Status:
    """Features of very different sizes leave gradients in single precision few digits."""

    def solve(run: Run, weights: NDArray) -> Status:
        status, for_dual = descend(run, weights)
        if for_dual is not None:
            fill_duals_at(run.problem, for_dual, run.state)
        return status

    return _in_double(run, weights, solve)


def _solve_by_multipliers(run: Run, weights: NDArray) -> Status:
    """They compute in double anyway: so do the certificates, and duals keep all their digits."""
    return _in_double(run, weights, solve_by_multipliers)


def _in_double(run: Run, weights: NDArray, solve: Callable[[Run, NDArray], Status]) -> Status:
    """Solve from ``weights`` on in double; in single precision where memory is short of a copy."""
    status = Status.COARSE
    if run.problem.storage.dtype != np.float64:
        status = go_on_in_double(
            run, lambda wide: solve(wide, weights if wide.weights is None else wide.weights)
        )
    return solve(run, weights) if status == Status.COARSE else status


def fill_duals_at(problem: Problem, point: Point, state: State) -> None:
    """Make the gradients at a point the duals of the state."""
    found, error = point.certificate, np.inf
    if found is not None:
        error = found.apart - np.sqrt(squared_norm(point.gradient))
    problem.fill_duals(point.place, state, point.gradient, float(error))


def _descend_further(run: Run, status: Status) -> Status:
    """Where the objective has settled, bring down the gradient, and so the gap, without duals.

    Every descent begins with new directions.
    """
    gap = np.inf
    while status == Status.STALLED and run.history[-1].gap < MAX_GAP_RATIO_PER_DESCENT * gap:
        gap = run.history[-1].gap
        assert run.weights is not None
        status, _ = descend(run, run.weights)
    return status
