"""Stochastic dual coordinate ascent: epochs of visits, exact gaps when they are due."""

import numpy as np

from shortlist.solvers.duals import readable
from shortlist.solvers.result import Evaluation
from shortlist.solvers.run import Run
from shortlist.solvers.support import ASK_EVERY, support_rows

# Of the estimated gap, the share that is expected to be left at the end of the epoch.
FIRST_TRUST = 0.5
# Support epochs end when the gap on the support is this share of what they found.
SUPPORT_GAIN = 0.03
# ... or when they have cost so many full epochs.
SUPPORT_BUDGET = 4.0
# Whoever has taken so many times the epochs he is given patience for is slow, whatever he promises.
BROKEN_PROMISES = 3.0
# Below so many units in the last place of the primal, the gap is rounding.
RESOLUTION = 8


def ascend(run: Run, random: np.random.Generator, patience: float = np.inf) -> str:
    """Visit all examples, epoch by epoch, until the gap is small enough.

    Returns a status, or "slow" as soon as the measured rate of convergence promises more than
    ``patience`` further epochs, or a few times as many have been spent on promises.
    """
    problem = run.problem
    run.state.model = None
    active = np.flatnonzero(problem.costs.cost > 0)
    # A few hard examples can hold most of the gap, so the sample must not be small.
    every = min(max(active.size // 1000, 1), ASK_EVERY)
    trust = FIRST_TRUST
    begun = run.epochs
    earliest = next_check = run.epochs + 1
    primal = np.inf
    eps = float(np.finfo(problem.rows.dtype).eps)
    # Who asks for less than rounding lets one tell is given all the digits there are.
    resolved = run.tol >= RESOLUTION * eps
    first = len(run.history)
    while run.epochs < run.max_epochs:
        order = random.permutation(active)
        estimate = 0.0
        for shares in problem.rows.epoch(problem.loss.spec, order, run.state, problem.costs, every):
            estimate += shares * every
        run.epochs += 1
        if problem.loss.sparse_duals and problem.rows.support_price < np.inf:
            _polish_support(run, random)
        due = run.epochs >= next_check or (
            trust * estimate <= 0.9 * run.tol * primal and run.epochs >= earliest
        )
        if due or run.epochs >= run.max_epochs:
            found = run.evaluate()
            if resolved and found.relative_gap <= run.tol:
                rebuilt = run.rebuilt()
                if run.certify(found, rebuilt).relative_gap <= run.tol:
                    run.tell(run.state.weights)
                    return "converged"
                run.state.weights = rebuilt
            if _stalled(run.history[first:], eps):
                return "converged" if run.certify().relative_gap <= run.tol else "stalled"
            broken = run.epochs - begun > BROKEN_PROMISES * patience
            if broken or _epochs_to_go(run.history[first:], run.tol) > patience:
                return "slow"
            primal = found.primal
            trust = min(max(found.gap / estimate, 0.01), 10.0) if estimate > 0 else FIRST_TRUST
            earliest = 1.1 * run.epochs
            next_check = 2 * run.epochs
        run.tell(run.state.weights)
    return "converged" if run.certify().relative_gap <= run.tol else "max_epochs"


def _polish_support(run: Run, random: np.random.Generator) -> None:
    """Cheap epochs on the support until its gap is well down or the budget is spent."""
    problem, state = run.problem, run.state
    scratch = np.empty(problem.n_classes, state.duals.dtype)
    rows = support_rows(readable(state.duals), problem.costs.cost, scratch)
    by_class = np.ascontiguousarray(state.weights.T)
    whole = problem.rows.n * problem.n_classes
    spent = 0.0
    first = None
    while spent < SUPPORT_BUDGET and rows.size:
        rows = random.permutation(rows)
        gap, entries, moved = problem.rows.support_epoch(
            problem.loss, rows, by_class, state.duals, problem.costs
        )
        if not entries:
            break
        spent += problem.rows.support_price * entries / whole
        run.epochs += entries / whole
        first = gap if first is None else first
        if gap <= SUPPORT_GAIN * first:
            break
        # Who stayed put, at a bound as a rule, is likely to stay: the next full epoch asks.
        rows = rows[:moved]
    state.weights = np.ascontiguousarray(by_class.T)


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
    recent = [abs(e.relative_gap) for e in history[-4:]]
    return min(recent[1:]) >= 0.99 * recent[0]
