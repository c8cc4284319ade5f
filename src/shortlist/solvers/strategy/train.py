"""Training from start to finish: SDCA while it is the faster, then a finish that suits the loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.duals import store
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.result import Result
from shortlist.solvers.records.run import Callback, Run, StopTraining
from shortlist.solvers.storage.base import State
from shortlist.solvers.strategy.ascent import RESOLUTION_ULPS, ascend
from shortlist.solvers.strategy.conditioning import Kind, plan
from shortlist.solvers.strategy.descent import descend
from shortlist.solvers.strategy.smoothing import descend_smoothed
from shortlist.solvers.threads import crew_for, one_blas_thread

# Evaluations that L-BFGS takes from an early SDCA solution to a gap of 1e-3, measured on Letter
# and CLINC150 at C = 10 to 1000: with a model of the Hessian for each class, and without one.
EVALUATIONS_CONDITIONED = 15.0
EVALUATIONS = 35.0
# Smooth hinges take more, and support visits make up for more epochs; hinges are smoothed step
# by step.
EVALUATIONS_SMOOTH_HINGE = 60.0
EVALUATIONS_HINGE = 60.0
# C |x|^2, in the mean, up to which training begins with the means of the classes.
LONGEST_MEAN_STEP = 3.0
# A loss that is not convex needs no better start than this.
START_TOL = 1e-8
# Below this tolerance the last digits are better left to coordinate steps.
LAST_DIGITS = 1e-4
# Nanoseconds a score: a visit's step for its duals, an evaluation's loss, a multiplication.
NS_STEP, NS_LOSS, NS_MULTIPLICATION = 12.0, 2.0, 0.03


@dataclass
class Solution:
    """Trained weights, the dual state to go on from, and the record with the certificate."""

    weights: NDArray
    state: State
    result: Result


def train(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_epochs: float = 1000,
    seed: int | np.random.Generator | None = None,
    state: State | None = None,
    weights: NDArray | None = None,
    callback: Callback | None = None,
    accuracy: Callable[[NDArray], float] | None = None,
) -> Solution:
    """Minimise the primal of ``problem`` to a relative duality gap of at most ``tol``.

    ``state`` warm-starts from feasible duals with the weights that belong to them, ``weights``
    from a model: a descent begins there. Ctrl-C and a callback's stop end with
    the best model met so far.
    """
    random = np.random.default_rng(seed)
    shared = problem.storage.shared_work(problem.n_classes)
    with crew_for(shared) as crew:
        problem = replace(problem, crew=crew)
        way = _train_convex if problem.loss.convex else _train_nonconvex
        options = (tol, max_epochs, random, state, weights, callback, accuracy)
        if shared == 0.0:
            return way(problem, *options)
        with one_blas_thread():
            return way(problem, *options)


def _train_convex(
    problem: Problem,
    tol: float,
    max_epochs: float,
    random: np.random.Generator,
    state: State | None,
    weights: NDArray | None,
    callback: Callback | None,
    accuracy: Callable[[NDArray], float] | None,
) -> Solution:
    first = state if state is not None else first_state(problem)
    run = Run(problem, first, tol, max_epochs, callback, accuracy)
    try:
        status = _solve(run, random, state is not None, weights)
    except (KeyboardInterrupt, StopTraining) as stop:
        _recover(run)
        status = _status_of(stop)
    assert run.weights is not None
    return Solution(run.weights, run.state, run.result(status))


def _solve(run: Run, random: np.random.Generator, warm: bool, weights: NDArray | None) -> str:
    """Minimise; leaves the best in the run and duals to go on from in its state."""
    if warm and run.certify().within(run.tol):
        return "converged"
    smooth = run.problem.loss.smooth
    status = "slow"
    if weights is None and _descend_at_once(run.problem, run.tol):
        weights = run.state.weights
    if weights is None:
        status = ascend(run, random, _patience(run.problem, run.tol))
        weights = run.weights
    if status != "slow":
        return status
    run.solver = "sdca + l-bfgs" if run.epochs else "l-bfgs"
    assert weights is not None
    if smooth:
        status, for_dual = descend(run, weights)
        if for_dual is not None:
            run.problem.fill_duals(for_dual, run.state)
    else:
        status = descend_smoothed(run, weights)
    if status == "stalled":
        # The line search is at the end of its digits; coordinate steps have more.
        status = ascend(run, random)
    return status


def _descend_at_once(problem: Problem, tol: float) -> bool:
    """Whether a descent is as fast as SDCA from the start.

    On tables of few features an evaluation takes a tenth of an epoch, and a model of the Hessian
    makes descents short. Where both take milliseconds, a descent has fewer kernels to compile.
    """
    if tol < LAST_DIGITS or not (problem.loss.smooth or problem.loss.smoother):
        return False
    if plan(problem).kind in (Kind.CLASSES, Kind.COUPLED):
        return True
    return not problem.loss.sparse_duals and plan(problem, late=True).kind is Kind.COUPLED


def first_state(problem: Problem) -> State:
    """Duals to begin with: t grad L(0) for all examples, t the best for the dual objective.

    At W = 0 all examples of a class have the same gradient, so that W is a combination of the
    sums over classes: the nearest-mean classifier, for the price of reading the data once.
    """
    state = problem.zero_state()
    loss, costs, m = problem.loss, problem.costs, problem.n_classes
    if loss.multilabel or not problem.storage.explicit or loss.sparse_duals:
        return state
    # Where steps are long, exact first steps from zero gain more: 6 epochs instead of 8 to a gap
    # of 1e-3 on CLINC150 at C = 10, but 4 instead of 3 at C = 1.
    if float(np.mean(costs.cost * problem.storage.kappa)) > LONGEST_MEAN_STEP:
        return state
    gradients = loss.row_gradients(np.zeros((m, m)), np.arange(m))
    direction = -problem.storage.class_sums(costs, m) @ gradients
    norm = float(np.vdot(direction, direction))
    total = float(costs.cost.sum())
    trials = 2.0 ** -np.arange(0.0, 40.0)
    conjugates = loss.conjugate(trials[:, None] * gradients[:1], np.zeros(len(trials), np.int64))
    values = -0.5 * norm * trials**2 - total * conjugates
    best = int(np.argmax(values))
    if not values[best] > 0.0:
        return state
    t = trials[best]
    dtype = problem.storage.dtype
    store(state.duals, slice(0, problem.storage.n), costs.y, (t * gradients).astype(dtype)[costs.y])
    state.weights = np.ascontiguousarray(t * direction, dtype)
    state.rounding = 4.0 * (
        float(np.vdot(state.weights, state.weights))
        + float(np.sum(problem.storage.kappa * costs.cost**2))
    )
    return state


def _patience(problem: Problem, tol: float) -> float:
    """How many further epochs of SDCA to accept before a descent takes over.

    By operations, not by the clock, so that a seed decides all.
    """
    loss, storage = problem.loss, problem.storage
    # Descents need explicit weights and a gradient, be it that of a smoothed relative.
    if not storage.explicit or not (loss.smooth or loss.smoother):
        return np.inf
    # All the digits there are: a line search cannot see them in the objective.
    if tol < RESOLUTION_ULPS * float(np.finfo(storage.dtype).eps):
        return np.inf
    products = 2.0 * storage.width * NS_MULTIPLICATION
    price = (products + NS_LOSS) / (products + NS_STEP)
    if not loss.sparse_duals:
        conditioned = plan(problem).kind in (Kind.CLASSES, Kind.COUPLED)
        return (EVALUATIONS_CONDITIONED if conditioned else EVALUATIONS) * price
    if loss.smooth:
        quick = plan(problem).kind is not Kind.NONE and tol >= LAST_DIGITS
        return EVALUATIONS if quick else EVALUATIONS_SMOOTH_HINGE
    return EVALUATIONS_HINGE if tol >= LAST_DIGITS else np.inf


def _recover(run: Run) -> None:
    """Make weights, duals and the record agree again after a cut anywhere."""
    run.callback = None
    # The duals are feasible at all times; the weights may be behind them by a visit or two.
    run.problem.rebuild(run.state)
    if not run.history or run.history[-1].epoch < run.epochs:
        run.certify()


def _status_of(stop: BaseException) -> str:
    return "interrupted" if isinstance(stop, KeyboardInterrupt) else "stopped"


def _train_nonconvex(
    problem: Problem,
    tol: float,
    max_epochs: float,
    random: np.random.Generator,
    state: State | None,
    weights: NDArray | None,
    callback: Callback | None,
    accuracy: Callable[[NDArray], float] | None,
) -> Solution:
    """Start from the solution of a convex relative, then descend: only mildly nonconvex."""
    convex = replace(problem, loss=problem.loss.dual_loss)
    enough = max(tol, START_TOL)
    start = _train_convex(convex, enough, max_epochs, random, state, weights, callback, None)
    run = Run(problem, start.state, tol, max_epochs, callback, accuracy)
    run.solver = f"{start.result.solver} ({convex.loss.name}), l-bfgs"
    run.epochs = start.result.epochs
    run.clock -= start.result.seconds
    if start.result.status in ("interrupted", "stopped"):
        status = start.result.status
        run.record(problem.primal(start.weights), np.nan, start.weights)
    else:
        try:
            status, _ = descend(run, start.weights)
        except (KeyboardInterrupt, StopTraining) as stop:
            status = _status_of(stop)
            if not run.history:
                run.record(problem.primal(start.weights), np.nan, start.weights)
    assert run.weights is not None
    return Solution(run.weights, start.state, run.result(status))
