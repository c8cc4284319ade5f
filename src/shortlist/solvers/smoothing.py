"""A finish for the hinges themselves, which have kinks: descend on ever less smoothed versions.

The smoothed hinge of parameter gamma is at most gamma/2 below the hinge, and its duals are feasible
for the hinge. So the minimiser of a smoothed objective is close to that of the true one, and its
duals certify how close: the gap reported is the true objective's, at these weights and duals.
Where the regularisation is weak, a few descents cost much less than coordinate steps.
"""

from dataclasses import replace

from numpy.typing import NDArray

from shortlist import losses
from shortlist.solvers.descent import descend
from shortlist.solvers.run import Progress, Run

FIRST_GAMMA = 0.1
# Below, L-BFGS sees the kinks; coordinate steps are better at the last digits.
LAST_GAMMA = 1e-4


def smoothed(loss: losses.Loss, gamma: float) -> losses.Loss:
    """The smoothed version of a hinge."""
    name = loss.name.replace("hinge", "smooth_hinge")
    variant = loss.variant or "alpha"
    return losses.get(name, k=loss.k, variant=variant, smoothing=gamma, multilabel=loss.multilabel)


def descend_smoothed(run: Run, weights: NDArray) -> tuple[str, NDArray]:
    """Minimise the primal of a hinge; returns a status and the best weights found.

    Leaves the last duals in the run's state. Every evaluation of a smoothed objective and of the
    true one counts as an epoch.
    """
    problem = run.problem
    lowest = run.history[-1].primal
    run.best = weights
    gamma = FIRST_GAMMA

    def tell(progress: Progress) -> object:
        # The gap of a smoothed objective would only confuse.
        assert run.callback is not None
        return run.callback(replace(progress, last=run.history[-1]))

    while gamma >= LAST_GAMMA:
        inner = Run(
            replace(problem, loss=smoothed(problem.loss, gamma)),
            run.state,
            max(run.tol / 3.0, 0.01 * gamma),
            run.max_epochs,
            tell if run.callback is not None else None,
            epochs=run.epochs,
            clock=run.clock,
        )
        try:
            weights = descend(inner, weights)[1]
        finally:
            run.epochs = inner.epochs
        for_dual = weights if inner.best_for_dual is None else inner.best_for_dual
        inner.problem.fill_duals(for_dual, run.state)
        # One pass for both: the primal of the descent's weights, the dual of the duals' own.
        own_norm = problem.rows.squared_norm(run.state.weights)
        primal, dual = problem.evaluate(replace(run.state, weights=weights), own_norm)
        run.epochs += 2
        if primal < lowest:
            lowest, run.best = primal, weights
        # The duals of the level before are gone, and with them their bound.
        run.record(lowest, dual, run.best)
        run.tell(run.best)
        if lowest - dual <= run.tol * lowest:
            return "converged", run.best
        if run.epochs >= run.max_epochs:
            return "max_epochs", run.best
        # The gap is mostly the smoothing's, and that is proportional to gamma.
        gamma *= min(0.3, max(0.01, 0.5 * run.tol * lowest / (lowest - dual)))
    return "stalled", run.best
