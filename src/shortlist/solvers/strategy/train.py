"""Training from start to finish: SDCA while it is the faster, then a finish that suits the loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.problem import Problem
from shortlist.solvers.records.certificate import Point
from shortlist.solvers.records.checkpoint import (
    ASCENT,
    FINISH,
    NONCONVEX,
    Keeper,
    Snapshot,
    restored_state,
)
from shortlist.solvers.records.result import Result, Status
from shortlist.solvers.records.run import Callback, Run, StopTraining
from shortlist.solvers.storage.base import State
from shortlist.solvers.strategy.ascent import RESOLUTION_ULPS, ascend, visit_fresh
from shortlist.solvers.strategy.conditioning import NS_LOSS, NS_MULTIPLICATION, plan
from shortlist.solvers.strategy.descent import descend
from shortlist.solvers.strategy.descents import descend_from
from shortlist.solvers.strategy.double import descend_in_double, go_on_in_double
from shortlist.solvers.strategy.hessian import Kind
from shortlist.solvers.strategy.multipliers import (
    suits_multipliers,
)
from shortlist.solvers.strategy.starts import begin_at_means, least_squares, mean_eta
from shortlist.solvers.threads import crew_for, one_blas_thread

# Evaluations of the objective that L-BFGS takes from an early SDCA solution to a relative gap of
# 1e-3, with a model of the Hessian for each class. Measured on Letter and CLINC150 at C = 10 to
# 1000. Newton's steps take 6 to 10, and each needs a model that costs as much as an evaluation.
EVALUATIONS_CONDITIONED = 15.0
# The same without a model.
EVALUATIONS_UNCONDITIONED = 35.0
# SDCA on a smooth hinge gives way to a descent if it is predicted to need more further epochs than
# this. Descents take more evaluations there, and cheap visits on the support replace epochs. With a
# model of the Hessian, and a tolerance of MIN_TOL_FOR_DESCENT or more, EVALUATIONS_UNCONDITIONED
# epochs are enough.
EPOCHS_BEFORE_DESCENT_SMOOTH_HINGE = 60.0
# The same on a hinge, which a descent smooths step by step.
EPOCHS_BEFORE_DESCENT_HINGE = 60.0
# A descent on a hinge is tried if its duals involve at most so many classes, the label counted.
# With more, the classes whose duals are not zero change at every step.
MAX_CLASSES_FOR_DESCENT = 3
# The same for a smooth hinge. On Letter at C = 100 the smooth top-10 hinge, of more classes, is
# solved by 307 epochs of SDCA, and not by 500 evaluations of a descent.
MAX_CLASSES_FOR_DESCENT_SMOOTH = 6
# With at least so many examples a feature, hinges on small tables may begin with a descent or the
# method of multipliers.
MANY_EXAMPLES_PER_FEATURE = 100
# They begin with SDCA all the same if the mean of C |x|^2 is at most this. On Letter (|x|^2 = 3.1)
# the hinge takes 0.08 seconds at C = 0.3 and 0.2 at C = 1 by SDCA, 0.10 and 0.08 by multipliers.
MAX_MEAN_ETA_OF_HINGES = 2.0
# SDCA on a hinge gives way to multipliers if it is predicted to need more further epochs than this.
# Digits (28 examples a feature) take 62 ms at C = 10 and 96 ms at C = 1000 with 60 epochs here,
# and 235 ms and 1222 ms with 15. Iris at C = 1 to 1000 takes half as long with 60 as with 600.
EPOCHS_BEFORE_MULTIPLIERS = 60.0
# It gives way to a descent on a small table if it is predicted to need more than this.
EPOCHS_ON_TABLES = 600.0
# The same on a smooth hinge.
EPOCHS_ON_TABLES_SMOOTH = 300.0
# A loss that is not convex needs no better start than this.
START_TOL = 1e-8
# Below this tolerance SDCA finishes faster than a descent.
MIN_TOL_FOR_DESCENT = 1e-4
# The last model's weights (``State.best``) need not belong to the start's duals. They are tried as
# a solution if the duals' own weights have at most so many times the gap asked for.
MAX_GAP_RATIO_NEARLY_SOLVED = 4.0
# After a change of the data, descend from the last model's weights if their relative gap is at most
# this. If it is larger, SDCA first visits the examples that changed, and those that hold the gap.
# If that is slow, hinges go on by a descent, and other losses by SDCA.
MAX_GAP_TO_DESCEND = 0.1
# Nanoseconds a score of a visit's step for its duals.
NS_STEP = 12.0


@dataclass
class Solution:
    """Trained weights, the dual state to go on from, and the record with the certificate."""

    weights: NDArray
    state: State
    result: Result
    # The point whose gradients are the duals that go with this solution, if the state does not hold
    # them yet.
    point_of_duals: Point | None = None


@dataclass(frozen=True)
class _Request:
    """The arguments of :func:`train`; ``random`` is made of its seed."""

    tol: float
    max_epochs: float
    random: np.random.Generator
    state: State | None
    weights: NDArray | None
    callback: Callback | None
    accuracy: Callable[[NDArray], float] | None
    keeper: Keeper | None
    resume: Snapshot | None
    one_of_many: bool
    expected: float

    def run(self, problem: Problem, first: State) -> Run:
        """The record of a run from ``first`` on."""
        told = (self.callback, self.accuracy)
        given = (problem, first, self.tol, self.max_epochs, *told)
        return Run(*given, keeper=self.keeper, expected=self.expected)


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
    keeper: Keeper | None = None,
    resume: Snapshot | None = None,
    one_of_many: bool = False,
    expected: float = np.inf,
) -> Solution:
    """Minimise the primal of ``problem`` to a relative duality gap of at most ``tol``.

    ``state`` warm-starts from feasible duals with the weights that belong to them, ``weights``
    from a model: a descent begins there. ``keeper`` is offered snapshots, and training goes on
    from the one given as ``resume``. Ctrl-C and a callback's stop end with the best model met so
    far. ``one_of_many`` leaves out what a path seldom needs: whether the start is a solution
    already, and the duals of a descent's solution. ``expected`` is a guess of the solution's
    primal; it only says when to compute the gap.
    """
    request = _Request(
        *(tol, max_epochs, np.random.default_rng(seed), state, weights),
        *(callback, accuracy, keeper, resume),
        one_of_many=one_of_many,
        expected=expected,
    )
    shared = problem.storage.shared_work(problem.n_classes)
    with crew_for(shared) as crew:
        problem = replace(problem, crew=crew)
        way = _train_convex if problem.loss.convex else _train_nonconvex
        if shared == 0.0:
            return way(problem, request)
        with one_blas_thread():
            return way(problem, request)


def _train_convex(problem: Problem, request: _Request) -> Solution:
    state, weights, resume = request.state, request.weights, request.resume
    warm = state is not None or resume is not None
    if resume is not None:
        state, weights = restored_state(problem, resume), resume.weights
    run = request.run(problem, state if state is not None else problem.zero_state())
    run.one_of_many = request.one_of_many and request.keeper is None
    if resume is not None:
        run.go_on_from(resume)
    try:
        status = _solve(run, request.random, warm, weights)
    except (KeyboardInterrupt, StopTraining) as stop:
        _recover(run)
        status = _status_of(stop)
    return _solution(run, status)


def _solve(run: Run, random: np.random.Generator, warm: bool, weights: NDArray | None) -> Status:
    """Minimise; leaves the best in the run and duals to go on from in its state."""
    keeps_duals = run.problem.keeps_duals
    at_once = keeps_duals and _descend_at_once(run.problem, run.tol)
    if warm:
        if keeps_duals and _already_solved(run, weights):
            return Status.CONVERGED
        if run.state.fresh is not None and not run.epochs:
            near = at_once or run.history[-1].relative_gap <= MAX_GAP_TO_DESCEND
            if weights is None or not near:
                if visit_fresh(run, random):
                    return Status.CONVERGED
                if weights is not None:
                    weights = run.weights if run.problem.loss.sparse_duals else None
    elif not at_once:
        begin_at_means(run.problem, run.state)
    if run.stage.name == ASCENT and weights is None:
        if at_once or not keeps_duals:
            weights = _first_weights(run)
        else:
            status = _ascend_first(run, random)
            if status != Status.SLOW:
                return status
            weights = run.weights
    if run.stage.name != FINISH:
        assert weights is not None
        status = descend_from(run, weights)
        if status != Status.STALLED or not keeps_duals:
            return status
        # The line search is at the end of its digits; coordinate steps have more.
        run.begin(FINISH)
    return _ascend(run, random)


def _first_weights(run: Run) -> NDArray:
    """Where a descent begins that no SDCA comes before."""
    start = run.state.weights
    if suits_multipliers(run.problem) and not start.any():
        return least_squares(run.problem)
    return start


def _already_solved(run: Run, weights: NDArray | None) -> bool:
    """Whether the start is a solution, with the duals' own weights or with those given."""
    if run.one_of_many and weights is None:
        return False
    own = run.certify()
    if run.solved(own):
        return True
    if weights is None and own.gap <= MAX_GAP_RATIO_NEARLY_SOLVED * run.wanted:
        weights = run.state.best
    if weights is None or not run.problem.loss.convex:
        return False
    primal, _ = run.problem.primal_gradient(weights, double=True)
    found = run.problem.pair(primal, -np.inf, weights, double=True)
    return run.solved(run.record(found, weights))


def _ascend_first(run: Run, random: np.random.Generator) -> Status:
    """Run SDCA until a descent is predicted to be faster. A resumed run continues its stage."""
    if not run.epochs:
        run.begin(ASCENT)
    return _ascend(run, random, _patience(run.problem, run.tol))


def _ascend(run: Run, random: np.random.Generator, patience: float = np.inf) -> Status:
    """SDCA, in double from where single precision is too coarse."""
    status = ascend(run, random, patience)
    if status == Status.COARSE:
        status = go_on_in_double(run, lambda wide: _solve_again(wide, random))
    return ascend(run, random, patience) if status == Status.COARSE else status


def _solve_again(run: Run, random: np.random.Generator) -> Status:
    run.begin(ASCENT)
    return _solve(run, random, True, None)


def _descend_at_once(problem: Problem, tol: float) -> bool:
    """Whether a descent is as fast as SDCA from the start.

    On tables of few features an evaluation takes a tenth of an epoch, and a model of the Hessian
    makes descents short. So it does where C is small. Where both take milliseconds, a descent has
    fewer kernels to compile. It begins at W = 0: its first step goes to a multiple of the classes'
    means anyway.
    """
    loss = problem.loss
    many = problem.storage.n >= MANY_EXAMPLES_PER_FEATURE * problem.storage.width
    if suits_multipliers(problem):
        return many and not loss.separable and mean_eta(problem) > MAX_MEAN_ETA_OF_HINGES
    if tol < MIN_TOL_FOR_DESCENT or not (loss.smooth or loss.smoother):
        return False
    now, later = plan(problem).kind, plan(problem, late=True).kind
    if loss.sparse_duals:
        suits = later is Kind.COUPLED and loss.fewest_classes == 2 and many
        return suits and mean_eta(problem) > MAX_MEAN_ETA_OF_HINGES
    return now in (Kind.CLASSES, Kind.UNIFORM) or later is Kind.COUPLED


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
        conditioned = plan(problem).kind in (Kind.CLASSES, Kind.COUPLED, Kind.LISTED)
        return (EVALUATIONS_CONDITIONED if conditioned else EVALUATIONS_UNCONDITIONED) * price
    if suits_multipliers(problem):
        return EPOCHS_BEFORE_MULTIPLIERS
    # Without a model of the Hessian a descent takes far longer. On 20 newsgroups (tf-idf, 11314 x
    # 49085) SDCA solves the hinge at C = 30 in 11 seconds and 257 epochs, the smooth hinge and the
    # one-vs-all hinge at C = 100 in 23 and 39 seconds. Descents had gaps of 0.1, 0.014 and 0.15
    # after 87, 126 and 20 seconds, at a limit of 250 to 400 epochs (a busy machine).
    if plan(problem, late=True).kind is Kind.NONE:
        return np.inf
    most = MAX_CLASSES_FOR_DESCENT_SMOOTH if loss.smooth else MAX_CLASSES_FOR_DESCENT
    if loss.fewest_classes > most:
        return np.inf
    if tol >= MIN_TOL_FOR_DESCENT and plan(problem, late=True).kind is Kind.COUPLED:
        return EPOCHS_ON_TABLES_SMOOTH if loss.smooth else EPOCHS_ON_TABLES
    if loss.smooth:
        quick = plan(problem).kind is not Kind.NONE and tol >= MIN_TOL_FOR_DESCENT
        return EVALUATIONS_UNCONDITIONED if quick else EPOCHS_BEFORE_DESCENT_SMOOTH_HINGE
    return EPOCHS_BEFORE_DESCENT_HINGE if tol >= MIN_TOL_FOR_DESCENT else np.inf


def _recover(run: Run) -> None:
    """Make weights, duals and the record agree again after a cut anywhere."""
    run.callback = None
    if not run.problem.keeps_duals:
        if run.weights is None:
            _note_primal(run, run.state.weights, 0.0)
        return
    # The duals are feasible at all times; the weights may be behind them by a visit or two.
    run.problem.rebuild(run.state)
    if run.weights is None or run.history[-1].epoch < run.epochs:
        run.certify()


def _note_primal(run: Run, weights: NDArray, bound: float) -> None:
    run.record(run.problem.pair(run.problem.primal(weights), bound, weights), weights)


def _solution(run: Run, status: Status) -> Solution:
    if run.keeper is not None:
        run.keeper.keep(run.snapshot())
    assert run.weights is not None
    return Solution(run.weights, run.state, run.result(status), run.point_of_duals)


def _status_of(stop: BaseException) -> Status:
    return Status.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else Status.STOPPED


def _train_nonconvex(problem: Problem, request: _Request) -> Solution:
    """Solve the convex loss first, then descend.

    Its solution is a good start, since the loss is only mildly nonconvex.
    """
    stopped, resume = None, request.resume
    if resume is not None and resume.stage.name == NONCONVEX:
        weights = resume.weights
        run = request.run(problem, restored_state(problem, resume))
        run.go_on_from(resume)
    else:
        convex = replace(problem, loss=problem.loss.dual_loss)
        enough = max(request.tol, START_TOL)
        start = _train_convex(
            convex, replace(request, tol=enough, accuracy=None, one_of_many=False)
        )
        weights = start.weights
        run = request.run(problem, start.state)
        run.epochs = start.result.epochs
        run.clock -= start.result.seconds
        run.solver = f"{start.result.solver} ({convex.loss.name}), l-bfgs"
        run.begin(NONCONVEX)
        if start.result.status in (Status.INTERRUPTED, Status.STOPPED):
            stopped = Status(start.result.status)
    assert weights is not None
    try:
        status = stopped or descend(run, weights)[0]
        if status == Status.STALLED and problem.storage.dtype != np.float64:
            status = descend_in_double(run)
    except (KeyboardInterrupt, StopTraining) as stop:
        status = _status_of(stop)
    if run.weights is None:
        _note_primal(run, weights, np.nan)
    return _solution(run, status)
