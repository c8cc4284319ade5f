"""Stochastic dual coordinate ascent with a certified stop."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from shortlist.solvers.problem import Problem
from shortlist.solvers.result import Evaluation, Result
from shortlist.solvers.rows import State

# Of the estimated gap, the share that is expected to be left at the end of the epoch.
FIRST_TRUST = 0.5
SAMPLED = 2000


class StopTraining(Exception):
    """Raised by a callback to end training with the model as it is."""


@dataclass
class Run:
    """One training run: the clock, the count of epochs and what was measured."""

    problem: Problem
    state: State
    tol: float
    max_epochs: int
    callback: Callable[[Evaluation], None] | None = None
    solver: str = "sdca"
    epochs: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    history: list[Evaluation] = field(default_factory=list)

    def evaluate(self) -> Evaluation:
        """Compute the exact gap, record it and tell the callback."""
        primal, dual = self.problem.evaluate(self.state)
        found = Evaluation(self.epochs, time.perf_counter() - self.started, primal, dual)
        self.history.append(found)
        if self.callback is not None:
            self.callback(found)
        return found

    def certify(self) -> Evaluation:
        """The gap at weights rebuilt from the duals, without the rounding of the updates."""
        if self.problem.rows.dtype == np.float32:
            self.state.weights = self.problem.rows.rebuild(
                self.state.duals, self.problem.costs.cost
            )
        return self.evaluate()

    def result(self, status: str) -> Result:
        last = self.history[-1]
        return Result(
            last.primal,
            last.dual,
            self.epochs,
            time.perf_counter() - self.started,
            status,
            self.solver,
            tuple(self.history),
        )


def solve(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_epochs: int = 1000,
    seed: int | np.random.Generator | None = None,
    state: State | None = None,
    callback: Callable[[Evaluation], None] | None = None,
) -> tuple[State, Result]:
    """Minimise the problem's primal to a relative duality gap of at most ``tol``."""
    warm = state is not None
    run = Run(problem, state or problem.zero_state(), tol, max_epochs, callback)
    try:
        status = "converged" if warm and run.evaluate().relative_gap <= tol else _ascend(run, seed)
    except (KeyboardInterrupt, StopTraining) as stop:
        # A visit may have been cut between its dual and its weights: make them agree again.
        run.callback = None
        run.state.weights = problem.rows.rebuild(run.state.duals, problem.costs.cost)
        run.evaluate()
        status = "interrupted" if isinstance(stop, KeyboardInterrupt) else "stopped"
    return run.state, run.result(status)


def _ascend(run: Run, seed: int | np.random.Generator | None) -> str:
    random = np.random.default_rng(seed)
    problem = run.problem
    n = problem.rows.n
    every = max(1, n // SAMPLED)
    trust = FIRST_TRUST
    next_check = 1.0
    primal = np.inf
    while run.epochs < run.max_epochs:
        order = random.permutation(n)
        estimate = 0.0
        for _, shares in problem.rows.epoch(
            problem.loss.spec, order, run.state, problem.costs, every
        ):
            estimate += shares * every
        run.epochs += 1
        expected = trust * estimate
        if expected > run.tol * primal and run.epochs < min(next_check, run.max_epochs):
            continue
        found = run.evaluate()
        if found.relative_gap <= run.tol:
            found = run.certify()
            if found.relative_gap <= run.tol:
                return "converged"
        if _stalled(run.history, np.finfo(problem.rows.dtype).eps):
            run.certify()
            return "stalled"
        primal = found.primal
        trust = min(max(found.gap / estimate, 0.01), 2.0) if estimate > 0 else FIRST_TRUST
        next_check = 2 * run.epochs
    run.certify()
    return "max_epochs"


def _stalled(history: list[Evaluation], eps: float) -> bool:
    """No progress any more, at a gap that rounding explains."""
    if len(history) < 4 or history[-1].relative_gap > 1e4 * eps:
        return False
    recent = [e.relative_gap for e in history[-4:]]
    return min(recent[1:]) > 0.99 * recent[0]
