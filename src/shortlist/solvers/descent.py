"""L-BFGS on the primal, with the certificate that every smooth convex loss gives for free.

At any W put v_i = grad L(y_i, W'x_i). Then the duality gap between W and v is exactly
1/2 |grad P(W)|^2, so that P(W) - 1/2 |grad P(W)|^2 is a lower bound on the optimum. The best bound
so far, from here or from the duals training came with, is what the primal is held against; no
duals are kept. For the truncated entropy, which is not convex, 1/2 |grad P|^2 only measures
stationarity.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from shortlist.solvers.conditioning import condition
from shortlist.solvers.run import Run

MEMORY = 10


class _Point(NamedTuple):
    weights: NDArray
    value: float
    gradient: NDArray


def descend(run: Run, weights: NDArray) -> tuple[str, NDArray]:
    """Minimise the primal from ``weights``; returns a status and the best weights found.

    One evaluation of value and gradient counts as one epoch: both cost two products with the
    data. The primal never increases from one recorded iterate to the next.
    """
    problem = run.problem
    convex = problem.loss.convex
    bound = run.history[-1].dual if convex and run.history else -np.inf
    run.best = weights

    def evaluate(weights: NDArray) -> _Point:
        value, gradient = problem.primal_gradient(weights)
        run.epochs += 1
        return _Point(weights, value, gradient)

    def note(point: _Point) -> bool:
        nonlocal bound
        run.best = point.weights.astype(problem.rows.dtype)
        half = 0.5 * float(np.vdot(point.gradient, point.gradient))
        if convex and point.value - half > bound:
            bound = point.value - half
            run.best_for_dual = run.best
        run.record(point.value, bound if convex else np.nan, run.best)
        run.tell(run.best)
        return (point.value - bound if convex else half) <= run.tol * point.value

    start = evaluate(weights.astype(np.float64))
    if note(start):
        return "converged", run.best
    conditioner = condition(problem, weights)
    status = "stalled"
    last, last_flat = start, conditioner.forward(start.weights).reshape(-1)

    def look_at(flat: NDArray) -> _Point:
        nonlocal last, last_flat
        last = evaluate(conditioner.backward(flat.reshape(weights.shape)))
        last_flat = flat.copy()
        return last

    def objective(flat: NDArray) -> tuple[float, NDArray]:
        point = look_at(flat)
        return point.value, conditioner.gradient(point.gradient).reshape(-1)

    def after_step(intermediate_result: OptimizeResult) -> None:
        nonlocal status
        # The line search ends where it looked last, but for a failed one, which goes back.
        flat = intermediate_result.x
        if note(last if np.array_equal(flat, last_flat) else look_at(flat)):
            status = "converged"
            raise StopIteration
        if run.epochs >= run.max_epochs:
            status = "max_epochs"
            raise StopIteration

    minimize(
        objective,
        last_flat,
        jac=True,
        method="L-BFGS-B",
        callback=after_step,
        options={"maxcor": MEMORY, "maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0},
    )
    return status, run.best
