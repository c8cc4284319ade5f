"""The method of multipliers: a finish for hinges on tables of few weights, smooth ones too.

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
takes 42 evaluations instead of 108.

R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
programming, Mathematics of Operations Research 1, 1976.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from shortlist.solvers.duals import as_array, store
from shortlist.solvers.kernels.centred import add_slopes, step_near
from shortlist.solvers.kernels.curvature import unpack_hessian
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import SMOOTHED
from shortlist.solvers.records.result import Evaluation, Status
from shortlist.solvers.records.run import Run, StopTraining
from shortlist.solvers.storage.base import shares_of, squared_norm
from shortlist.solvers.strategy.hessian import MAX_COUPLED_WEIGHTS, Coupled, count_pairs
from shortlist.solvers.strategy.lbfgs import interpolate

# Numbers that are kept in memory, of examples and duals together.
MAX_NUMBERS = 1 << 26
# The weight of the distance to the duals c in the first problem.
FIRST_GAMMA_OF_MULTIPLIERS = 0.1
# If a problem leaves more than SLOW_GAP_RATIO of the gap, multiply gamma by GAMMA_DECREASE. If
# Newton's method fails, multiply gamma by GAMMA_INCREASE: more examples have second derivatives.
GAMMA_DECREASE, SLOW_GAP_RATIO = 0.5, 0.5
GAMMA_INCREASE = 10.0
# Training has stalled where gamma leaves these bounds.
MIN_GAMMA, MAX_GAMMA = 1e-12, 1e9
# If P(0) - D is at most this share of P(0), W = 0 is a solution.
MIN_GAIN_OVER_P0 = 1e-12
# Allowance for rounding in a dual that is not certified, as a share of the primal.
ROUNDING_OF_DUAL = 1e-12
# At most so many Newton steps on one problem. It is solved when its gap is the one asked for. On
# noisy labels of 31 unequal classes (2000 x 15), fits take 1 to 1.3 times as long with 30, and
# Letter at C = 100 and 1000 takes 1.5 times as long with 14.
MAX_STEPS = 20
# A step must decrease the objective by this share of what its slope promises.
MIN_DECREASE_SHARE = 1e-4
# Lengths of one step that are tried, an evaluation each.
MAX_LENGTHS_TRIED = 20
# Step of finite differences in the scores, in units of gamma.
FINITE_STEP = 1e-5
# Differences across a kink may leave the Hessian not positive definite, and so may rounding: then
# these shares of its largest entry are added to its diagonal.
DAMPINGS = (0.0, 1e-9, 1e-6, 1e-3)


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
        # The weights of the last step, for a run that is cut.
        self.reached = np.zeros(0)

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
        pairs = count_pairs(m), count_pairs(d)

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

        packed = sum(self._in_shares(share))
        hessian = np.empty((m * d, m * d))
        for damping in DAMPINGS:
            unpack_hessian(packed, m, d, hessian)
            diagonal = np.einsum("jj->j", hessian)
            diagonal += damping * diagonal.max()
            try:
                return -Coupled.of(hessian).solve(point.gradient)
            except LinAlgError:
                continue
        return -point.gradient

    def _in_shares(self, work: Callable[[int, int], Any]) -> list[Any]:
        return self.crew.run(work, shares_of(0, len(self.x), self.crew.size))


def suits_multipliers(problem: Problem) -> bool:
    """Whether they are the way to go on from SDCA: the loss is a hinge that is not smooth."""
    return not problem.loss.smooth and allows_multipliers(problem)


def allows_multipliers(problem: Problem) -> bool:
    """Whether the loss is a hinge, on few enough weights, with rows and duals at hand."""
    loss, storage, m = problem.loss, problem.storage, problem.n_classes
    if not loss.sparse_duals or loss.multilabel:
        return False
    if not (storage.explicit and storage.rows_at_hand and problem.keeps_duals):
        return False
    d = storage.weights_per_class
    return m * d <= MAX_COUPLED_WEIGHTS and storage.n * (d + 6 * m) <= MAX_NUMBERS


def solve_by_multipliers(run: Run, weights: NDArray) -> Status:
    """Minimise the primal of a hinge from ``weights`` and the state's duals on.

    Leaves the best in the run, and its duals in the state. An evaluation counts as an epoch.
    """
    problem, state = run.problem, run.state
    dtype, everything = problem.storage.dtype, slice(0, problem.storage.n)
    centre = as_array(state.duals).astype(np.float64)
    near = _NearDuals(problem, centre, run.stage.gamma or FIRST_GAMMA_OF_MULTIPLIERS)
    place = weights.astype(np.float64)
    gap, best_dual = inf, run.bound
    while MIN_GAMMA <= near.gamma <= MAX_GAMMA:
        run.begin(SMOOTHED, near.gamma)
        try:
            point = _minimise(run, near, place, _wanted(run, best_dual))
        except (KeyboardInterrupt, StopTraining):
            _note(run, np.ascontiguousarray(near.reached, dtype), best_dual)
            raise
        place, solved = point.weights, point.gap <= _wanted(run, best_dual)
        if solved or point.dual > best_dual:
            near.centre[:] = point.duals
            store(state.duals, everything, problem.costs.y, point.duals.astype(dtype))
            state.weights = np.ascontiguousarray(place - point.gradient, dtype)
            state.rounding = inf
            best_dual = max(best_dual, point.dual)
        near.release(point)
        # Half of what is negligible: this dual is not certified yet.
        least_gain = max(MIN_GAIN_OVER_P0 * run.at_zero, 0.5 * run.negligible)
        nothing_to_gain = run.at_zero - best_dual <= least_gain
        if nothing_to_gain:
            place = np.zeros_like(place)
        found = _note(run, np.ascontiguousarray(place, dtype), best_dual)
        if run.solved(found) or nothing_to_gain or run.epochs >= run.max_epochs:
            found = run.certify()
        run.notify()
        if run.solved(found):
            return Status.CONVERGED
        if nothing_to_gain:
            return Status.STALLED
        if run.epochs >= run.max_epochs:
            return Status.MAX_EPOCHS
        last_gap, gap = gap, run.primal - best_dual
        if not solved:
            near.gamma *= GAMMA_INCREASE
        elif gap > SLOW_GAP_RATIO * last_gap:
            near.gamma *= GAMMA_DECREASE
    run.certify()
    return Status.STALLED


def _wanted(run: Run, dual: float) -> float:
    """The largest gap that is small enough, by this dual objective."""
    of_gain = max(run.tol * (run.at_zero - dual), run.negligible)
    return min(run.tol * run.primal, run.tol * run.at_zero, of_gain)


def _note(run: Run, weights: NDArray, dual: float) -> Evaluation:
    """Record the primal, with a dual objective that is not certified yet, less its rounding."""
    primal, _ = run.problem.primal_gradient(weights, double=True)
    rounding = ROUNDING_OF_DUAL * primal
    pair = run.problem.pair(primal, dual - rounding, weights, double=True)
    found = run.record(pair, weights, trusted=False)
    run.settle(primal, weights)
    return found


def _minimise(run: Run, near: _NearDuals, weights: NDArray, wanted: float) -> _Point:
    """Newton's steps until the gap of the problem near the duals is the one wanted."""
    near.reached = weights
    point = _evaluate(run, near, weights)
    for _ in range(MAX_STEPS):
        if point.gap <= wanted or run.epochs >= run.max_epochs:
            break
        found = _search(run, near, point, near.newton_step(point))
        if found is None:
            break
        near.release(point)
        point, near.reached = found, found.weights
        run.notify(np.ascontiguousarray(point.weights, run.problem.storage.dtype))
    return point


def _evaluate(run: Run, near: _NearDuals, weights: NDArray) -> _Point:
    run.epochs += 1
    return near.at(weights)


def _search(run: Run, near: _NearDuals, point: _Point, direction: NDArray) -> _Point | None:
    """A point on the ray whose objective is smaller by what the slope promises, or None."""
    slope = float(np.vdot(point.gradient, direction))
    step = 1.0
    for _ in range(MAX_LENGTHS_TRIED):
        found = _evaluate(run, near, point.weights + step * direction)
        if found.value <= point.value + MIN_DECREASE_SHARE * step * slope:
            return found
        near.release(found)
        step = interpolate(0.0, point.value, slope, step, found.value)
    return None
