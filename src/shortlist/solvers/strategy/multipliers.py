"""The method of multipliers: a finish for hinges on tables of few weights.

Given duals c, the solution v of

    max over v of  D(v) - gamma/2 sum_i C_i |v_i - c_i|^2

has a dual objective that is no smaller than that of c. It is found in the weights, where the
problem is smooth:

    min over W of  1/2 |W|^2 + sum_i C_i M_i(W'x_i),
    M_i(s) = max over v of  <s, v> - L*(v) - gamma/2 |v - c_i|^2.

The maximiser is a dual step, and the gradient of M_i. Few examples have second derivatives, those
with duals between their bounds: steps are Newton's. Then v takes the place of c, and so on. Without
c, as in ``strategy.smoothing``, gamma must fall with the gap asked for. Here the gap falls at the
same gamma, and the active examples change less from one problem to the next: Letter at C = 10
takes 40 evaluations instead of 108.

R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
programming, Mathematics of Operations Research 1, 1976.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from shortlist.solvers.duals import as_array, store
from shortlist.solvers.kernels.centred import add_slopes, step_near, unpack_hessian
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import SMOOTHED
from shortlist.solvers.records.result import Evaluation
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage.base import shares_of, squared_norm

FIRST_GAMMA = 0.1
# gamma falls by this factor if the gap was not brought to this share of the last one.
FACTOR_OF_GAMMA, SLOW_SHARE = 0.5, 0.5
SMALLEST_GAMMA = 1e-6
# Newton's steps on one problem; its gap need not be smaller than the one asked for.
MOST_STEPS = 30
# A step must decrease the objective by this share of what its slope promises.
LEAST_DECREASE = 1e-4
MOST_TRIALS = 20
# Where slopes are found by differences: of scores, in units of gamma.
FINITE_STEP = 1e-5
# Least squares fit indicators of labels by far less than one: the primal of the hinge is smallest
# at 4 to 8 times these weights on Letter, digits, breast cancer, wine and iris, C = 0.1 to 1000.
MARGIN_OF_SQUARES = 6.0


@dataclass(frozen=True)
class _Point:
    """Weights (d + 1, m), the objective near c and its gradient, and the maximisers there."""

    weights: NDArray
    value: float
    gradient: NDArray
    scores: NDArray
    duals: NDArray
    conjugates: float

    @property
    def gap(self) -> float:
        """How far the objective is from its minimum at most."""
        return 0.5 * squared_norm(self.gradient)

    @property
    def dual(self) -> float:
        """D at the maximisers: their weights are W less the gradient."""
        return -0.5 * squared_norm(self.weights - self.gradient) - self.conjugates


class _NearDuals:
    """The problem near the duals ``centre``, in double."""

    def __init__(self, problem: Problem, centre: NDArray, gamma: float) -> None:
        self.loss, self.costs, self.crew = problem.loss, problem.costs, problem.crew
        self.x = problem.storage.sample(1)
        self.centre = centre
        self.gamma = gamma
        self.starts = np.zeros((len(self.x), 2))
        self.weighted = np.empty_like(centre)
        self.spare: list[tuple[NDArray, NDArray]] = []

    def at(self, weights: NDArray) -> _Point:
        scores, duals = self._room()

        def share(begin: int, end: int) -> tuple[float, float, NDArray]:
            rows = slice(begin, end)
            np.matmul(self.x[rows], weights, out=scores[rows])
            maxima, conjugates = step_near(
                *(self.loss.spec, scores[rows], self.costs.y[rows], self.costs.cost[rows]),
                *(self.gamma, self.centre[rows], self.starts[rows]),
                *(duals[rows], self.weighted[rows]),
            )
            return maxima, conjugates, self.x[rows].T @ self.weighted[rows]

        maxima, conjugates, gradients = zip(*self._in_shares(share), strict=True)
        value = 0.5 * squared_norm(weights) + sum(maxima)
        return _Point(weights, value, weights + sum(gradients), scores, duals, sum(conjugates))

    def _room(self) -> tuple[NDArray, NDArray]:
        if self.spare:
            return self.spare.pop()
        return np.empty_like(self.centre), np.empty_like(self.centre)

    def release(self, point: _Point) -> None:
        """Let a later point use this one's arrays: new memory takes as long as the dual steps."""
        self.spare.append((point.scores, point.duals))

    def newton_step(self, point: _Point) -> NDArray:
        """The step to the minimum of the second-order model."""
        d, m = point.weights.shape
        pairs = m * (m + 1) // 2, d * (d + 1) // 2

        def share(begin: int, end: int) -> NDArray:
            rows = slice(begin, end)
            packed = np.zeros(pairs)
            add_slopes(
                *(self.loss.spec, self.x[rows], point.scores[rows]),
                *(self.costs.y[rows], self.costs.cost[rows]),
                *(self.gamma, self.centre[rows], point.duals[rows]),
                *(FINITE_STEP * self.gamma, self.loss.fewest_classes, packed),
            )
            return packed

        hessian = np.empty((m * d, m * d))
        unpack_hessian(sum(self._in_shares(share)), m, d, hessian)
        # Its upper triangle is the lower one of the transpose, which lies as LAPACK wants it.
        factor = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        flat = cho_solve(factor, point.gradient.T.reshape(-1), check_finite=False)
        return -flat.reshape(m, d).T

    def _in_shares(self, work: Callable[[int, int], Any]) -> list[Any]:
        return self.crew.run(work, shares_of(0, len(self.x), self.crew.size))


def least_squares(problem: Problem) -> NDArray:
    """Weights to begin with: those of least squares on indicators of labels, scaled."""
    x, cost = problem.storage.sample(1), problem.costs.cost
    sums = problem.storage.class_sums(problem.costs, problem.n_classes)
    sums -= sums.mean(axis=1, keepdims=True)
    moments = x.T @ (x * cost[:, None])
    moments[np.diag_indices_from(moments)] += 1.0
    try:
        return MARGIN_OF_SQUARES * cho_solve(cho_factor(moments), sums)
    except (LinAlgError, ValueError):  # features so large that one is lost in rounding
        return np.zeros_like(sums)


def solve_by_multipliers(run: Run, weights: NDArray) -> str:
    """Minimise the primal of a hinge from ``weights`` and the state's duals on.

    Leaves the best in the run, and its duals in the state. An evaluation counts as an epoch.
    """
    problem, state = run.problem, run.state
    dtype, everything = problem.storage.dtype, slice(0, problem.storage.n)
    centre = as_array(state.duals).astype(np.float64)
    near = _NearDuals(problem, centre, run.stage.gamma or FIRST_GAMMA)
    place = weights.astype(np.float64)
    gap, best_dual = inf, run.bound
    while True:
        run.begin(SMOOTHED, near.gamma)
        point = _minimise(run, near, place, _wanted(run, best_dual))
        place, near.centre[:] = point.weights, point.duals
        store(state.duals, everything, problem.costs.y, point.duals.astype(dtype))
        state.weights = np.ascontiguousarray(place - point.gradient, dtype)
        state.rounding = inf
        best_dual = max(best_dual, point.dual)
        near.release(point)
        found = _note(run, np.ascontiguousarray(place, dtype), best_dual)
        if found.within(run.tol) or run.epochs >= run.max_epochs:
            found = run.certify()
        run.notify()
        if found.within(run.tol):
            return "converged"
        if run.epochs >= run.max_epochs:
            return "max_epochs"
        last_gap, gap = gap, run.primal - best_dual
        if gap > SLOW_SHARE * last_gap:
            near.gamma *= FACTOR_OF_GAMMA
            if near.gamma < SMALLEST_GAMMA:
                run.certify()
                return "stalled"


def _wanted(run: Run, dual: float) -> float:
    """The largest gap that is small enough, by this dual objective."""
    return run.tol * max(min(run.primal, run.at_zero, run.at_zero - dual), 0.0)


def _note(run: Run, weights: NDArray, dual: float) -> Evaluation:
    """Record the primal, with a dual objective that is not certified yet."""
    primal, _ = run.problem.primal_gradient(weights, double=True)
    pair = run.problem.pair(primal, dual, weights, double=True)
    found = run.record(pair, weights, trusted=False)
    run.settle(primal, weights)
    return found


def _minimise(run: Run, near: _NearDuals, weights: NDArray, wanted: float) -> _Point:
    """Newton's steps until the gap of the problem near the duals is the one wanted."""
    point = _evaluate(run, near, weights)
    for _ in range(MOST_STEPS):
        if point.gap <= wanted or run.epochs >= run.max_epochs:
            break
        try:
            direction = near.newton_step(point)
        except LinAlgError:
            break
        found = _search(run, near, point, direction)
        if found is None:
            break
        near.release(point)
        point = found
        run.notify(np.ascontiguousarray(point.weights, run.problem.storage.dtype))
    return point


def _evaluate(run: Run, near: _NearDuals, weights: NDArray) -> _Point:
    run.epochs += 1
    return near.at(weights)


def _search(run: Run, near: _NearDuals, point: _Point, direction: NDArray) -> _Point | None:
    """A point on the ray whose objective is smaller by what the slope promises, or None."""
    slope = float(np.vdot(point.gradient, direction))
    step = 1.0
    for _ in range(MOST_TRIALS):
        found = _evaluate(run, near, point.weights + step * direction)
        if found.value <= point.value + LEAST_DECREASE * step * slope:
            return found
        near.release(found)
        excess = found.value - point.value - step * slope
        inner = -0.5 * slope * step * step / excess if excess > 0.0 else 0.0
        step = min(max(inner, 0.1 * step), 0.7 * step)
    return None
