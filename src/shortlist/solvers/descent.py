"""L-BFGS on the primal, with the certificate that every smooth convex loss gives for free.

At any W put v_i = grad L(y_i, W'x_i). Then the duality gap between W and v is exactly
1/2 |grad P(W)|^2, so that P(W) - 1/2 |grad P(W)|^2 is a lower bound on the optimum. The best bound
so far, from here or from the duals training came with, is what the primal is held against; no
duals are kept. For the truncated entropy, which is not convex, 1/2 |grad P|^2 only measures
stationarity.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from shortlist.solvers.run import Run

MEMORY = 10


def descend(run: Run, weights: NDArray) -> tuple[str, NDArray]:
    """Minimise the primal from ``weights``; returns a status and the best weights found.

    One evaluation of value and gradient counts as one epoch: both cost two products with the
    data. The primal never increases from one recorded iterate to the next.
    """
    problem = run.problem
    shape = weights.shape
    convex = problem.loss.convex
    bound = run.history[-1].dual if convex and run.history else -np.inf
    run.best = weights

    def objective(flat: NDArray) -> tuple[float, NDArray]:
        value, gradient = problem.primal_gradient(flat.reshape(shape))
        run.epochs += 1
        return value, gradient.reshape(-1)

    def note(value: float, gradient: NDArray, flat: NDArray) -> bool:
        nonlocal bound
        run.best = flat.reshape(shape).astype(problem.rows.dtype)
        half = 0.5 * float(gradient @ gradient)
        if convex and value - half > bound:
            bound = value - half
            run.best_for_dual = run.best
        run.record(value, bound if convex else np.nan, run.best)
        run.tell(run.best)
        return (value - bound if convex else half) <= run.tol * value

    value, gradient = objective(weights.astype(np.float64).reshape(-1))
    if note(value, gradient, weights.astype(np.float64).reshape(-1)):
        return "converged", run.best
    status = ["stalled"]
    last: dict[str, NDArray] = {}

    def both(flat: NDArray) -> tuple[float, NDArray]:
        value, gradient = objective(flat)
        last.update(flat=flat.copy(), gradient=gradient)
        return value, gradient

    def after_step(intermediate_result: OptimizeResult) -> None:
        flat, value = intermediate_result.x, float(intermediate_result.fun)
        gradient = last["gradient"]
        if not np.array_equal(flat, last["flat"]):
            value, gradient = objective(flat)
        if note(value, gradient, flat):
            status[0] = "converged"
            raise StopIteration
        if run.epochs >= run.max_epochs:
            status[0] = "max_epochs"
            raise StopIteration

    minimize(
        both,
        weights.astype(np.float64).reshape(-1),
        jac=True,
        method="L-BFGS-B",
        callback=after_step,
        options={"maxcor": MEMORY, "maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0},
    )
    return status[0], run.best
