"""Stochastic dual coordinate ascent: epochs of visits, exact gaps when they are due."""

import numpy as np

from shortlist.solvers.result import Evaluation
from shortlist.solvers.run import Run

# Of the estimated gap, the share that is expected to be left at the end of the epoch.
FIRST_TRUST = 0.5
# How many examples are asked for their share of the gap in each epoch.
SAMPLED = 2000


def ascend(run: Run, random: np.random.Generator, patience: float = np.inf) -> str:
    """Visit all examples, epoch by epoch, until the gap is small enough.

    Returns a status, or "slow" as soon as the measured rate of convergence promises more than
    ``patience`` further epochs.
    """
    problem = run.problem
    active = np.flatnonzero(problem.costs.cost > 0)
    every = max(1, active.size // SAMPLED)
    trust = FIRST_TRUST
    next_check = run.epochs + 1
    primal = np.inf
    while run.epochs < run.max_epochs:
        order = random.permutation(active)
        estimate = 0.0
        for shares in problem.rows.epoch(problem.loss.spec, order, run.state, problem.costs, every):
            estimate += shares * every
        run.epochs += 1
        due = trust * estimate <= run.tol * primal or run.epochs >= next_check
        if due or run.epochs >= run.max_epochs:
            found = run.evaluate()
            if found.relative_gap <= run.tol and run.certify().relative_gap <= run.tol:
                run.tell(run.state.weights)
                return "converged"
            if _stalled(run.history, np.finfo(problem.rows.dtype).eps):
                run.certify()
                return "stalled"
            if _epochs_to_go(run.history, run.tol) > patience:
                return "slow"
            primal = found.primal
            trust = min(max(found.gap / estimate, 0.01), 2.0) if estimate > 0 else FIRST_TRUST
            next_check = 2 * run.epochs
        run.tell(run.state.weights)
    run.certify()
    return "max_epochs"


def _epochs_to_go(history: list[Evaluation], tol: float) -> float:
    """Epochs to a relative gap of tol if it goes on shrinking as between the last two looks."""
    if len(history) < 3:
        return 0.0
    before, now = history[-2:]
    if now.gap <= 0 or before.gap <= now.gap:
        return np.inf if now.gap > 0 and now.epoch > before.epoch else 0.0
    rate = np.log(before.gap / now.gap) / max(now.epoch - before.epoch, 1e-9)
    return float(np.log(max(now.relative_gap / tol, 1.0)) / rate)


def _stalled(history: list[Evaluation], eps: float) -> bool:
    """No progress any more, at a gap that rounding explains."""
    if len(history) < 4 or history[-1].relative_gap > 1e4 * eps:
        return False
    recent = [e.relative_gap for e in history[-4:]]
    return min(recent[1:]) > 0.99 * recent[0]
