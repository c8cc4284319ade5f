"""A finish for the hinges themselves, which have kinks: descend on ever less smoothed versions.

The smoothed hinge of parameter gamma is at most gamma/2 below the hinge, and its duals are feasible
for the hinge. So the minimiser of a smoothed objective is close to that of the true one, and its
duals certify how close: the gap reported is the true objective's, at these weights and duals.
Where the regularisation is weak, a few descents cost much less than coordinate steps.
"""

from dataclasses import dataclass, replace
from math import inf

from numpy.typing import NDArray

from shortlist.solvers.duals import as_array, store
from shortlist.solvers.records.checkpoint import SMOOTHED, Keeper, Snapshot
from shortlist.solvers.records.result import Status
from shortlist.solvers.records.run import Progress, Run
from shortlist.solvers.strategy.descent import descend

# The smoothing of the first version that is descended on.
FIRST_GAMMA_OF_SMOOTHING = 0.1
# Factors of gamma from one version to the next. After a smaller one, other examples are active:
# Letter at C = 10 takes 109 evaluations with the smaller factor at 0.2, and 182 at 0.01.
MIN_FACTOR_OF_GAMMA, MAX_FACTOR_OF_GAMMA = 0.2, 0.3
# Within these bounds, the next gamma aims at this share of the gap asked for.
GAP_SHARE_AIMED_AT = 0.5
# Below this gamma L-BFGS sees the kinks. SDCA is better at the last digits.
MIN_GAMMA_TO_DESCEND = 1e-4
# The tolerance of a smoothed version is so many times as small as that of the hinge, but at least
# this multiple of gamma, as the smoothed hinge is up to gamma / 2 below the hinge.
TOL_DIVISOR, MIN_TOL_PER_GAMMA = 3.0, 0.01
# Bytes of duals that are copied, to be taken back if the next ones are worse.
MAX_COPIED_DUAL_BYTES = 1 << 26


@dataclass
class _KeeperOfWhole:
    """Keeps the run on the hinge when a descent on its smoothed version is to be kept."""

    run: Run
    keeper: Keeper

    def due(self) -> bool:
        return self.keeper.due()

    def keep(self, snapshot: Snapshot) -> None:
        whole = self.run.snapshot()
        self.keeper.keep(replace(whole, weights=snapshot.weights, epochs=snapshot.epochs))


def descend_smoothed(run: Run, weights: NDArray) -> Status:
    """Minimise the primal of a hinge; leaves the best in the run, and its duals in the state.

    Every evaluation of a smoothed objective and of the true one counts as an epoch.
    """
    problem = run.problem
    smoother = problem.loss.smoother
    assert smoother is not None
    gamma = run.stage.gamma or FIRST_GAMMA_OF_SMOOTHING
    best_dual = run.bound

    def notify(progress: Progress) -> object:
        # The gap of a smoothed objective would only confuse.
        assert run.callback is not None
        return run.callback(replace(progress, last=run.history[-1] if run.history else None))

    while gamma >= MIN_GAMMA_TO_DESCEND:
        run.begin(SMOOTHED, gamma)
        inner = Run(
            replace(problem, loss=smoother(gamma)),
            run.state,
            max(run.tol / TOL_DIVISOR, MIN_TOL_PER_GAMMA * gamma),
            run.max_epochs,
            notify if run.callback is not None else None,
            epochs=run.epochs,
            clock=run.clock,
            keeper=_KeeperOfWhole(run, run.keeper) if run.keeper is not None else None,
            stage=run.stage,
        )
        try:
            _, for_dual = descend(inner, weights)
        finally:
            run.epochs = inner.epochs
        assert inner.weights is not None
        weights = inner.weights
        dual = _fill_if_better(
            run, inner, weights if for_dual is None else for_dual.place, best_dual
        )
        best_dual = max(best_dual, dual)
        primal, _ = problem.primal_gradient(weights, double=True)
        run.epochs += 2
        # The bound is noted already, with the weights of its duals.
        found = run.record(problem.pair(primal, -inf, weights, double=True), weights)
        run.settle(primal, weights)
        run.notify(weights)
        if run.solved(found):
            return Status.CONVERGED
        if run.epochs >= run.max_epochs:
            return Status.MAX_EPOCHS
        # The gap is mostly the smoothing's, and that is proportional to gamma.
        factor = GAP_SHARE_AIMED_AT * run.wanted / found.gap
        gamma *= min(MAX_FACTOR_OF_GAMMA, max(MIN_FACTOR_OF_GAMMA, factor))
    return Status.STALLED


def _fill_if_better(run: Run, inner: Run, weights: NDArray, best: float) -> float:
    """Put the duals of a smoothed objective into the run's state; returns their bound.

    Where there is memory for a copy, worse duals than those of the best bound are taken back.
    """
    state = run.state
    kept = None
    if state.duals.nbytes <= MAX_COPIED_DUAL_BYTES:
        kept = as_array(state.duals).copy(), state.weights, state.rounding
    inner.problem.fill_duals(weights, state)
    found = run.problem.certify(state, run.wanted, run.primal)
    run.record(found, state.weights)
    if kept is not None and found.dual < best:
        duals, state.weights, state.rounding = kept
        store(state.duals, slice(0, len(duals)), run.problem.costs.y, duals)
    return found.dual
