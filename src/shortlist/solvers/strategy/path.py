"""The path over C: one problem solved for one C after another, each from the solution before.

When C becomes C' = r C, the duals start at t v, 0 <= t <= 1: they are feasible, since zero is in
the domain of every conjugate here. The weights become r t W.

t = 1    keeps the duals: good at small C, where duals are at their bounds
t = 1/r  keeps the weights: good at large C, where W has nearly settled
t = 0    is a cold start: a warm one is never worse

The dual objective chooses t. It is concave in t and takes no product with the data. After a
descent, the next larger C begins with a descent too, from the weights.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.duals import Duals
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import Keeper, Snapshot
from shortlist.solvers.records.run import Callback
from shortlist.solvers.storage.base import Costs, State, rounding_of_duals
from shortlist.solvers.strategy.conditioning import has_small_scores, plan
from shortlist.solvers.strategy.descents import fill_duals_at
from shortlist.solvers.strategy.hessian import Kind, uniform_model
from shortlist.solvers.strategy.train import MIN_TOL_FOR_DESCENT, Solution, train
from shortlist.solvers.threads import one_blas_thread

# Multiples t of the duals that are tried, from 1 down to C / C', evenly in log t, and the largest
# C' / C that this goes by.
TRIALS_OF_FACTOR, MAX_RATIO_TRIED = 9, 1e4
# How far the next C may be, in steps between the last two, for weights to be predicted.
MAX_STEPS_PREDICTED = 2.0
# If SDCA took more epochs, descend at the next C from predicted weights, where Newton's steps are
# cheap. That takes two evaluations and a step, the time of two epochs.
MAX_EPOCHS_OF_SDCA = 1.5
# Examples that tell which multiple of the duals to start from.
SAMPLED_DUALS = 2000
# If the last gap is at most this share of the gap asked for, compute the gap of the start: it may
# be a solution, which spares an epoch. At small C duals hardly change, and it often is.
MAX_SHARE_FAR_BELOW = 0.01


@dataclass
class Path:
    """Solutions of ``problem``, whose costs are those at C = 1, for values of C in any order.

    It can be asked for more values at any time; neighbours share most work when asked for in
    increasing order.
    """

    problem: Problem
    tol: float
    max_epochs: float
    seed: int
    last_C: float = 0.0
    last: Solution | None = field(default=None, repr=False)
    # The solution before the last: its C and weights.
    _before: tuple[float, NDArray] | None = field(default=None, repr=False)

    def at(self, C: float) -> Problem:
        """The problem at one C."""
        costs = self.problem.costs
        return replace(self.problem, costs=Costs(costs.y, C * costs.cost))

    def solve(
        self,
        C: float,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
        resume: Snapshot | None = None,
    ) -> Solution:
        """Train at C, from a snapshot if there is one, and keep the solution to go on from."""
        problem = self.at(C)
        state, weights = None, None
        if self.last is not None and resume is None:
            # BLAS would wake its own threads, which would then wait at the cost of ours.
            with one_blas_thread():
                state, weights = self._start(problem, C)
        solution = train(
            problem,
            tol=self.tol,
            max_epochs=self.max_epochs,
            seed=self.seed,
            state=state,
            weights=weights,
            callback=callback,
            keeper=keeper,
            resume=resume,
            one_of_many=self.last_C != C and not self._far_below(),
            expected=self._expected_primal(C),
        )
        return self.adopt(C, solution)

    def _start(self, problem: Problem, C: float) -> tuple[State | None, NDArray | None]:
        """Duals or weights to start from, or both; neither is a start at zero."""
        assert self.last is not None
        if has_small_scores(problem) and self.tol >= MIN_TOL_FOR_DESCENT:
            return None, self._next_small_weights(problem, C)
        descends, takes_duals = way_on(problem, self.last, costs_fell=self.last_C > C)
        weights = None
        if descends or self._was_slow(C):
            weights = self._predicted_weights(C)
            # Where scores were small, gradients are good duals: only Newton's steps are faster.
            if not descends or has_small_scores(self.at(self.last_C)):
                descends = plan(problem, weights).kind is Kind.LISTED
                takes_duals = not descends
        state = None
        if takes_duals:
            self.fill_duals()
            state = carry_over(problem, self.last.state, C / self.last_C)
        return state, weights if descends else None

    def _was_slow(self, C: float) -> bool:
        """Whether SDCA took so long for the last C that a descent is faster for a larger one."""
        assert self.last is not None
        smooth = self.problem.loss.convex and self.problem.loss.smooth
        return smooth and self.last_C < C and self.last.result.epochs > MAX_EPOCHS_OF_SDCA

    def _next_small_weights(self, problem: Problem, C: float) -> NDArray | None:
        """Newton's step from the last weights, with the Hessian at zero.

        Their gradient is W plus that of the losses, which C multiplies: it is known for any C.
        """
        assert self.last is not None
        known = self.last.point_of_duals
        if known is None or self.last_C > C:
            return None
        ratio = known.place.dtype.type(C / self.last_C)
        gradient = known.place + ratio * (known.gradient - known.place)
        return known.place - uniform_model(problem).solve(gradient)

    def _expected_primal(self, C: float) -> float:
        """About the primal at C: between the last one and one that grows as C does."""
        if self.last is None or self.last_C > C:
            return np.inf
        return float(self.last.result.primal * np.sqrt(C / self.last_C))

    def _far_below(self) -> bool:
        """Whether SDCA brought the last gap far below the one asked for."""
        if self.last is None or self.last.result.by_descent:
            return False
        last = self.last.result
        return max(last.relative_gap, last.gain_gap) <= MAX_SHARE_FAR_BELOW * self.tol

    def fill_duals(self) -> None:
        """Make the duals of the last solution; a descent's are made only when they are needed."""
        last = self.last
        if last is not None and last.point_of_duals is not None:
            fill_duals_at(self.at(self.last_C), last.point_of_duals, last.state)
            last.point_of_duals = None

    def adopt(self, C: float, solution: Solution) -> Solution:
        """Go on from a solution at C."""
        self._before = (self.last_C, self.last.weights) if self.last else None
        self.last, self.last_C = solution, C
        return solution

    def _predicted_weights(self, C: float) -> NDArray:
        """Weights to start a descent at C from: solutions are nearly linear in log C."""
        assert self.last is not None
        weights = self.last.weights
        if self._before is None or not self._before[0] < self.last_C < C:
            return weights
        C_before, before = self._before
        ahead = np.log(C / self.last_C) / np.log(self.last_C / C_before)
        if ahead > MAX_STEPS_PREDICTED:
            return weights
        return weights + weights.dtype.type(ahead) * (weights - before)


def way_on(problem: Problem, last: Solution, *, costs_fell: bool) -> tuple[bool, bool]:
    """Whether to descend from the weights of the last solution, and whether to take its duals.

    If a descent was needed before, larger costs need one too: begin with it. Gradients of a hinge
    are poor duals, so its duals are passed on with the weights.
    """
    if not problem.keeps_duals:
        return True, False
    descends = problem.loss.convex and last.result.by_descent and not costs_fell
    return descends, not (descends and problem.loss.smooth)


def carry_over(problem: Problem, state: State, ratio: float) -> State:
    """Turn a state into a start for ``problem``, whose C is ``ratio`` times the state's."""
    norm = problem.storage.squared_norm(state.weights)
    factor = 1.0
    if norm is not None:
        factor = _best_factor(problem, state.duals, norm * ratio**2, ratio)
        if factor == 0.0:
            return problem.zero_state()
    problem.storage.scale_duals(state.duals, factor)
    state.weights *= state.weights.dtype.type(ratio * factor)
    # Errors grow with the weights; duals rounded again add theirs.
    state.rounding *= (ratio * factor) ** 2
    state.rounding += rounding_of_duals(problem.storage.kappa, problem.costs.cost)
    return state


def state_from_duals(problem: Problem, duals: Duals, starts: NDArray) -> State:
    """A start from the duals of the same examples and labels under any other costs."""
    state = State(problem.storage.zero_weights(problem.n_classes), duals, starts)
    problem.rebuild(state)
    norm = problem.storage.squared_norm(state.weights)
    if norm is None:
        return state
    before = float(np.vdot(state.weights, state.weights))
    factor = _best_factor(problem, duals, before, np.inf)
    if factor == 0.0:
        return problem.zero_state()
    if factor < 1.0:
        problem.storage.scale_duals(state.duals, factor)
        problem.rebuild(state)
    return state


def _best_factor(problem: Problem, duals: Duals, norm: float, ratio: float) -> float:
    """A t in [0, 1] with a large D(t v); ``norm`` is |W(v)|^2. Zero if no t is better."""
    span = np.log(max(min(ratio, MAX_RATIO_TRIED), 1.0))
    step = max(1, problem.storage.n // SAMPLED_DUALS)
    best, factor, last = 0.0, 0.0, -np.inf
    for trial in np.exp(-span * np.linspace(0.0, 1.0, TRIALS_OF_FACTOR if span > 0 else 1)):
        dual = _scaled_dual(problem, duals, norm, float(trial), step)
        if dual > best:
            best, factor = dual, float(trial)
        if dual < last:
            break  # D is concave in t: it only falls from here
        last = dual
    better = step == 1 or _scaled_dual(problem, duals, norm, factor, 1) > 0.0
    return factor if better else 0.0


def _scaled_dual(problem: Problem, duals: Duals, norm: float, t: float, step: int) -> float:
    """D(t v), its conjugates estimated from every ``step``-th example."""
    loss, costs = problem.loss.dual_loss, problem.costs
    if step > 1:
        costs = Costs(costs.y, np.zeros_like(costs.cost))
        costs.cost[::step] = step * problem.costs.cost[::step]
    return -0.5 * norm * t**2 - problem.storage.sum_conjugates(loss, duals, costs, t)
