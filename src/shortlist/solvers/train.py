"""Training from start to finish: SDCA while it is the faster, then a finish that suits the loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shortlist import losses
from shortlist.solvers.conditioning import count_blocks
from shortlist.solvers.descent import descend
from shortlist.solvers.problem import Problem
from shortlist.solvers.result import Result
from shortlist.solvers.rows import GramRows, State
from shortlist.solvers.run import Callback, Run, StopTraining
from shortlist.solvers.sdca import ascend
from shortlist.solvers.smoothing import descend_smoothed
from shortlist.solvers.threads import threads_for

# L-BFGS takes some fifty evaluations from an early SDCA solution, whatever C, and half as many with
# a change of variables for each class. Where SDCA is slow it also slows down as it goes, so that a
# promise of this many further epochs is likely to be broken.
PATIENCE = 25.0
# Support visits make up for more of them, and without a change of variables L-BFGS takes longer on
# smooth hinges, some two hundred; with or without, on the hinges, smoothed step by step.
PATIENCE_SMOOTH_HINGE = 60.0
PATIENCE_HINGE = 150.0
# The last digits, below this relative gap, are better left to coordinate steps.
LAST_DIGITS = 1e-4


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
    callback: Callback | None = None,
    accuracy: Callable[[NDArray], float] | None = None,
) -> Solution:
    """Minimise the primal of ``problem`` to a relative duality gap of at most ``tol``.

    ``state`` warm-starts from duals of an earlier solution; their weights must belong to this
    problem. Ctrl-C and a callback's stop end with the model reached so far.
    """
    random = np.random.default_rng(seed)
    # A product with all examples is the largest there is.
    with threads_for(2.0 * problem.rows.n * problem.rows.width * problem.n_classes):
        if problem.loss.convex:
            return _train_convex(problem, tol, max_epochs, random, state, callback, accuracy)
        return _train_nonconvex(problem, tol, max_epochs, random, state, callback, accuracy)


def _train_convex(
    problem: Problem,
    tol: float,
    max_epochs: float,
    random: np.random.Generator,
    state: State | None,
    callback: Callback | None,
    accuracy: Callable[[NDArray], float] | None,
) -> Solution:
    run = Run(problem, state or problem.zero_state(), tol, max_epochs, callback, accuracy)
    weights = run.state.weights
    try:
        if state is not None and (held := _held(run)) is not None:
            return Solution(held, run.state, run.result("converged"))
        status = ascend(run, random, _patience(problem, tol))
        weights = run.state.weights
        if status == "slow":
            run.solver = "sdca + l-bfgs"
            status, weights = (descend if problem.loss.smooth else descend_smoothed)(run, weights)
            _settle_duals(run)
            run.state.model = weights
            if status == "stalled":
                # The line search is at the end of its digits; coordinate steps have more.
                status = ascend(run, random)
                weights = run.state.weights
    except (KeyboardInterrupt, StopTraining) as stop:
        weights = _recover(run)
        status = _status_of(stop)
    return Solution(weights, run.state, run.result(status))


def _held(run: Run) -> NDArray | None:
    """The weights of a warm start that is a solution already, or None."""
    state = run.state
    # Duals may have been carried over to examples with other features.
    if state.model is not None and state.model.shape == state.weights.shape:
        norm = run.problem.rows.squared_norm(state.weights)
        primal, dual = run.problem.evaluate(replace(state, weights=state.model), norm)
        held = run.record(primal, dual, state.model).relative_gap <= run.tol
        return state.model if held else None
    found = run.evaluate()
    held = found.relative_gap <= run.tol and run.certify(found).relative_gap <= run.tol
    return state.weights if held else None


def _patience(problem: Problem, tol: float) -> float:
    """How many further epochs of SDCA to accept before a descent takes over."""
    if isinstance(problem.rows, GramRows):
        return np.inf  # descents need explicit weights
    if not problem.loss.sparse_duals:
        if tol < LAST_DIGITS:
            return PATIENCE
        # By operations, not by the clock, so that a seed decides all. Besides the products, of
        # ``width`` numbers for each score, a visit solves for its duals, which an evaluation does
        # not: in nanoseconds a score, on the machine this was measured on, 50 against 12.
        products = 0.16 * problem.rows.width
        patience = PATIENCE if count_blocks(problem) <= 1 else PATIENCE / 2
        return patience * (12.0 + products) / (50.0 + products)
    if problem.loss.smooth:
        quick = count_blocks(problem) and tol >= LAST_DIGITS
        return PATIENCE if quick else PATIENCE_SMOOTH_HINGE
    return PATIENCE_HINGE if tol >= LAST_DIGITS else np.inf


def _settle_duals(run: Run) -> None:
    """Set the state to the best duals of the descent, and to the weights that belong to them."""
    if run.best_for_dual is not None:
        run.problem.fill_duals(run.best_for_dual, run.state)
    run.best = run.best_for_dual = None


def _recover(run: Run) -> NDArray:
    """Make weights, duals and the record agree again after a cut anywhere."""
    run.callback = None
    if run.best is not None:
        weights = run.best
        bound = run.history[-1].dual if run.history else np.nan
        run.record(run.problem.primal(weights), bound, weights)
        run.stop_drift()
        _settle_duals(run)
        return weights
    # The duals are feasible at all times; the weights may be behind them by a visit or two.
    run.stop_drift()
    run.evaluate()
    return run.state.weights


def _status_of(stop: BaseException) -> str:
    return "interrupted" if isinstance(stop, KeyboardInterrupt) else "stopped"


def _train_nonconvex(
    problem: Problem,
    tol: float,
    max_epochs: float,
    random: np.random.Generator,
    state: State | None,
    callback: Callback | None,
    accuracy: Callable[[NDArray], float] | None,
) -> Solution:
    """Start from the softmax solution, then descend: the loss is only mildly nonconvex."""
    convex = replace(problem, loss=losses.get("softmax"))
    start = train(
        convex, tol=tol, max_epochs=max_epochs, seed=random, state=state, callback=callback
    )
    run = Run(problem, start.state, tol, max_epochs, callback, accuracy)
    run.solver = f"{start.result.solver} (softmax), l-bfgs"
    run.epochs = start.result.epochs
    run.clock -= start.result.seconds
    weights = start.weights
    if start.result.status in ("interrupted", "stopped"):
        status = start.result.status
        run.record(problem.primal(weights), np.nan, weights)
    else:
        try:
            status, weights = descend(run, weights)
        except (KeyboardInterrupt, StopTraining) as stop:
            status = _status_of(stop)
            weights = _recover(run)
    return Solution(weights, start.state, run.result(status))
