"""L-BFGS on the primal, with the certificate that every smooth convex loss gives for free.

At any W put v_i = grad L(y_i, W'x_i). Then the duality gap between W and v is exactly
1/2 |grad P(W)|^2, so that P(W) - 1/2 |grad P(W)|^2 is a lower bound on the optimum.

Where directions differ much in curvature, the gradient is large long after the objective has
settled. So another point is tried too: the combination of the last iterates whose gradients cancel
best. Gradients are nearly linear along the last steps, so that it is found without the data. It is
evaluated when the gap predicted there is small enough.

An intercept that is not regularised takes another bound: see ``strategy.intercept``.

For the truncated entropy, which is not convex, 1/2 |grad P|^2 only measures stationarity.
"""

from collections import deque
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.records.certificate import Point
from shortlist.solvers.records.result import Status
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage.base import squared_norm
from shortlist.solvers.strategy.conditioning import (
    MIN_STEPS_PER_MODEL,
    SAMPLE_GROWTH,
    STEPS_NEAR,
    plan,
)
from shortlist.solvers.strategy.hessian import Kind, Model, make_model
from shortlist.solvers.strategy.intercept import FreeIntercept
from shortlist.solvers.strategy.lbfgs import lbfgs
from shortlist.solvers.strategy.newton import CG_SHARE_LEFT, CG_SHARE_LEFT_NEAR, is_near

# Iterates whose gradients are combined.
MAX_COMBINED = 12
# Numbers that these iterates and gradients hold together: fewer are kept where weights are many.
MAX_KEPT_NUMBERS = 1 << 26
# A combination is evaluated if its predicted gap is at most this share of the gap asked for.
MAX_PREDICTED_SHARE = 0.8
# After a prediction that was not met, the next must be at most this share of it.
SHARE_AFTER_MISS = 0.5
# No combination is tried while the gap is more than this many times the gap asked for.
MAX_GAP_TO_COMBINE = 1e3
# Added to the diagonal of the combination's equations, as a share of it: gradients may be parallel.
RIDGE_OF_COMBINATION = 1e-7
# Relative rounding of the objective in units of the storage's precision.
NOISE_ULPS = 2.0


def descend(run: Run, weights: NDArray, patience: float = inf) -> tuple[Status, Point | None]:
    """Minimise the primal from ``weights``; leaves the best in the run.

    Returns a status, SLOW after ``patience`` evaluations, and the point whose gradients are the
    best duals met here, None if the run's own duals are better. One evaluation of value and
    gradient counts as one epoch: both cost two products with the data.
    """
    return _Descent(run, patience).go(weights)


class _Descent:
    def __init__(self, run: Run, patience: float) -> None:
        self.run, self.most_epochs = run, run.epochs + patience
        self.convex = run.problem.loss.convex
        self.dtype = run.problem.storage.dtype
        free = run.problem.free_intercept and self.convex
        self.intercept = FreeIntercept.of(run.problem) if free else None
        self.best_bound = -np.inf
        self.best_for_dual: Point | None = None
        size = run.problem.storage.weights_per_class * run.problem.n_classes
        kept = int(min(max(MAX_KEPT_NUMBERS // (2 * size), 3), MAX_COMBINED))
        self.recent: deque[tuple[NDArray, NDArray]] = deque(maxlen=kept)
        self.missed_prediction = np.inf
        self.keeps_scores = plan(run.problem).kind is Kind.LISTED
        run.problem.kept_scores.forget()

    def go(self, weights: NDArray) -> tuple[Status, Point | None]:
        status = self._minimise(weights)
        if status != Status.CONVERGED and self.dtype != np.float64 and self.convex:
            assert self.run.weights is not None
            self._confirm(self.run.weights)
        return status, self.best_for_dual

    def _minimise(self, weights: NDArray) -> Status:
        point = self._evaluate(weights)
        self.run.epochs -= 1  # a look at the start is a certificate, not an epoch
        if self._note(point):
            return Status.CONVERGED
        problem = self.run.problem
        chosen = plan(problem, point.place)
        steps, growth = chosen.steps, 1
        while True:
            gap = 0.5 * squared_norm(point.gradient)
            share = CG_SHARE_LEFT
            if chosen.kind is Kind.LISTED and is_near(gap, self.run.wanted):
                steps, share = STEPS_NEAR, CG_SHARE_LEFT_NEAR
            # Keep the scores if the next model is made at the next point.
            self.keeps_scores = chosen.kind is Kind.LISTED and steps == 1
            model = make_model(problem, point.place, chosen, share)
            status, point = self._steps(point, model, steps)
            if status != Status.STEPS:
                return status
            before, chosen = chosen, plan(problem, point.place, late=True, growth=growth)
            if before == chosen and chosen.kind is Kind.COUPLED and steps is not None:
                # Two models were not enough: the sample is too small, or the curvature changes
                # quickly. Then make them more often.
                growth *= SAMPLE_GROWTH
                chosen = plan(problem, point.place, late=True, growth=growth)
                steps = max(steps // 2, MIN_STEPS_PER_MODEL) if before == chosen else chosen.steps
            else:
                steps = chosen.steps

    def _steps(self, start: Point, model: Model, most: int | None) -> tuple[Status, Point]:
        """Steps of L-BFGS with one model of the Hessian; STEPS if ``most`` were taken."""
        run = self.run
        noise = NOISE_ULPS * float(np.finfo(self.dtype).eps)
        point = start
        for count, point in enumerate(lbfgs(self._evaluate, start, noise, model), start=1):
            if self._note(point) or self._combine():
                return Status.CONVERGED, point
            if run.epochs >= run.max_epochs:
                return Status.MAX_EPOCHS, point
            if run.epochs >= self.most_epochs:
                return Status.SLOW, point
            if count == most:
                return Status.STEPS, point
        return Status.STALLED, point

    def _evaluate(self, weights: NDArray) -> Point:
        weights = np.ascontiguousarray(weights, self.dtype)
        found = self.run.problem.bounded_gradient(weights, self.keeps_scores)
        self.run.epochs += 1
        return Point(weights, *found)

    def _note(self, point: Point) -> bool:
        """Record a point; returns whether the gap is small enough."""
        run = self.run
        self.recent.append((point.place, point.gradient))
        bound = self._bound(point) if self.convex else np.nan
        if bound > self.best_bound:
            self.best_bound = bound
            if bound > run.bound:
                self.best_for_dual = point
        certain = point.certificate if self.convex else None
        trusted = self.dtype == np.float64 or certain is not None
        pair = certain or run.problem.pair(point.value, bound, point.place)
        found = run.record(pair, point.place, trusted)
        run.notify(point.place)
        if not self.convex:
            return 0.5 * squared_norm(point.gradient) <= run.tol * point.value
        if trusted and (run.solved(found) or self.dtype == np.float64):
            return run.solved(found)
        but_for_rounding = replace(found, dual=max(found.dual, min(bound, found.primal)))
        return run.solved(but_for_rounding) and self._confirm(point.place)

    def _confirm(self, weights: NDArray) -> bool:
        """Certify a point in double, where single precision has no good bound on its error."""
        run = self.run
        value, gradient = run.problem.primal_gradient(weights, double=True)
        run.settle(value, weights)
        bound = self._bound(Point(weights, value, gradient))
        pair = run.problem.pair(value, bound, weights, double=True)
        return run.solved(run.record(pair, weights))

    def _bound(self, point: Point) -> float:
        """A lower bound on the optimum of a convex objective."""
        if self.intercept is not None:
            return self.intercept.bound(*point[:3])
        return point.value - 0.5 * squared_norm(point.gradient)

    def _combine(self) -> bool:
        """Evaluate the combination of iterates with the smallest gradient, if its gap may do.

        Returns whether its gap is small enough.
        """
        (w, g), others = self.recent[-1], list(self.recent)[:-1]
        square = float(np.vdot(g, g))
        wanted = self.run.wanted
        if not self.convex or len(others) < 2 or 0.5 * square > MAX_GAP_TO_COMBINE * wanted:
            return False
        changes = np.stack([(g - other).reshape(-1) for _, other in others])
        inner = (changes @ changes.T).astype(np.float64)
        right = (changes @ g.reshape(-1)).astype(np.float64)
        inner[np.diag_indices_from(inner)] *= 1.0 + RIDGE_OF_COMBINATION
        try:
            factors = np.linalg.solve(inner, right)
        except np.linalg.LinAlgError:
            return False
        predicted = 0.5 * (square - float(factors @ right))
        most = min(MAX_PREDICTED_SHARE * wanted, SHARE_AFTER_MISS * self.missed_prediction)
        if not 0 <= predicted <= most:
            return False
        shifts = (factor * (w - other) for factor, (other, _) in zip(factors, others, strict=True))
        found = self._evaluate((w - sum(shifts)).astype(w.dtype))
        if self._note(found):
            return True
        self.missed_prediction = predicted
        self.recent.pop()
        return False
