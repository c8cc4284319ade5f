"""Convex minimisation of an expected loss, free or with a given shortlist on top.

"Shortlist S on top" is the cone of scores g with g_i >= g_j for every i in S and j not in S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from shortlist.losses import Loss

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Objective = Callable[[Vector], tuple[float, Vector]]

#: What rounding leaves uncertain of a risk, relative to 1 + risk. Two unrelated minimisers
#: differed by at most 8e-16 on 600 random problems.
RISK_ROUNDING = 4e-15
#: The gradient aimed at, and the largest accepted, at an optimum of a loss with curvature 1, where
#: the risk is off by about half its square. At curvature 1/gamma a gradient 1/sqrt(gamma) times as
#: large is as good.
_GRADIENT_GOAL = 1e-10
_GRADIENT_TOLERANCE = 1e-7
#: L-BFGS-B alone does nearly always; now and then its line search gives up at a kink of the
#: second derivative, where the other method, or a fresh start from the same point, goes on.
_METHODS = {
    "L-BFGS-B": {"ftol": 0.0, "gtol": 1e-13, "maxiter": 2_000, "maxfun": 5_000, "maxcor": 30},
    "SLSQP": {"ftol": 1e-16, "maxiter": 1_000},
}
#: So often both are run for the goal, and so often in all for the largest gradient accepted.
_RESTARTS_FOR_THE_GOAL, _MAX_RESTARTS = 2, 10
#: Newton steps at the end, at most.
_POLISHING_STEPS = 3
#: The step of their finite differences, in units of the width over which the loss bends. Directions
#: whose curvature is below this share of the largest are taken to be flat.
_DIFFERENCE_STEP, _MIN_CURVATURE_SHARE = 1e-4, 1e-9
#: A variable this close to its bound that should be smaller is put there, in units of the width
#: over which the loss bends. Scores as close to each other tie.
_NEAR_A_BOUND = 1e-9
#: Less smoothed losses are minimised from the optimum of a loss this many times smoother.
_MIN_SMOOTHING_FROM_ZERO = 0.03
_SMOOTHING_STEP = 10.0
#: The score of a label whose optimal score is minus infinity: exp(-800 / k) rounds to zero.
_UNBOUNDED_SCORE = -800.0


@dataclass(frozen=True)
class Optimum:
    """Scores, their expected loss, how they were found, and how far from the infimum it may be."""

    scores: Vector
    risk: float
    method: str
    accuracy: float


def rounding_of(risk: float) -> float:
    return RISK_ROUNDING * (1.0 + abs(risk))


def risk_and_gradient(loss: Loss, scores: Vector, p: Vector) -> tuple[float, Vector]:
    """The expected loss at scores, and its gradient."""
    risks, gradients = _risks_and_gradients(loss, scores[None, :], p)
    return float(risks[0]), gradients[0]


def _risks_and_gradients(loss: Loss, rows: Vector, p: Vector) -> tuple[Vector, Vector]:
    """The expected losses at each row of scores, and their gradients."""
    n, m = rows.shape
    values, gradients = loss.value_and_gradient(np.repeat(rows, m, axis=0), np.arange(n * m) % m)
    return values.reshape(n, m) @ p, p @ gradients.reshape(n, m, m)


def minimise(
    loss: Loss, p: Vector, shortlist: Mask | None = None, out_of_reach: Mask | None = None
) -> Optimum:
    """Minimise the expected smooth convex loss, over all scores or with this shortlist on top.

    Labels `out_of_reach` have score -inf.
    """
    if not (loss.convex and loss.smooth):
        raise ValueError(f"no way to minimise {loss.name}: it is not both convex and smooth")
    away = np.zeros(len(p), dtype=bool) if out_of_reach is None else out_of_reach
    cone = _Cone(len(p), shortlist, away)
    z, remaining = _polished(loss, p, cone, _minimiser(loss, p, cone))
    scores = centred(loss, cone.scores(z), ~away)
    if shortlist is not None:
        near = _NEAR_A_BOUND * _width(loss)
        scores = with_exact_ties(scores, shortlist & ~away, ~shortlist & ~away, near)
    risk, _ = risk_and_gradient(loss, scores, p)
    accuracy = rounding_of(risk) + remaining
    return Optimum(np.where(away, -np.inf, scores), risk, "convex minimisation", accuracy)


class _Cone:
    """Scores as a linear function of variables z >= lower: the cone becomes a box.

    g = t + a on the shortlist and t - a elsewhere, with a >= 0.
    """

    def __init__(self, n_classes: int, shortlist: Mask | None, away: Mask) -> None:
        if shortlist is None:
            self.matrix = np.eye(n_classes)
            self.lower = np.full(n_classes, -np.inf)
        else:
            signs = np.diag(np.where(shortlist, 1.0, -1.0))
            self.matrix = np.column_stack([np.ones(n_classes), signs])
            self.lower = np.r_[-np.inf, np.zeros(n_classes)]
        self.matrix[away] = 0.0
        self.offset = np.where(away, _UNBOUNDED_SCORE, 0.0)

    def scores(self, z: Vector) -> Vector:
        return self.matrix @ z + self.offset

    def residual(self, z: Vector, gradient: Vector) -> Vector:
        """The step of projected gradient descent: zero exactly at an optimum."""
        return z - np.maximum(z - gradient, self.lower)


def _objective(loss: Loss, p: Vector, cone: _Cone) -> Objective:
    def objective(z: Vector) -> tuple[float, Vector]:
        risk, gradient = risk_and_gradient(loss, cone.scores(z), p)
        return risk, gradient @ cone.matrix

    return objective


def _minimiser(loss: Loss, p: Vector, cone: _Cone) -> Vector:
    if loss.with_smoothing is not None and 0 < loss.smoothing < _MIN_SMOOTHING_FROM_ZERO:
        z = _minimiser(loss.with_smoothing(_SMOOTHING_STEP * loss.smoothing), p, cone)
    else:
        z = np.zeros(len(cone.lower))
    objective = _objective(loss, p, cone)
    bounds = Bounds(cone.lower, np.full(len(z), np.inf))
    scale = 1.0 / np.sqrt(_width(loss))
    smallest, best = np.inf, z
    for restart in range(_MAX_RESTARTS):
        for method, options in _METHODS.items():
            z = minimize(objective, z, jac=True, method=method, bounds=bounds, options=options).x
            # Ignore the optimiser's status: near the optimum its line search fails by rounding.
            residual = float(np.abs(cone.residual(z, objective(z)[1])).max())
            if residual < smallest:
                smallest, best = residual, z
            if smallest <= _GRADIENT_GOAL * scale:
                return best
        if restart + 1 >= _RESTARTS_FOR_THE_GOAL and smallest <= _GRADIENT_TOLERANCE * scale:
            return best
    raise RuntimeError(
        f"minimising the expected {loss.name} stopped at a gradient of {smallest:.1e} "
        f"(p between {p.min():.1e} and {p.max():.1e})"
    )


def _width(loss: Loss) -> float:
    """The distance over which the gradient changes by its own size, 1 at most."""
    return min(loss.smoothing, 1.0) if loss.smoothing > 0 else 1.0


def _polished(loss: Loss, p: Vector, cone: _Cone, z: Vector) -> tuple[Vector, float]:
    """z after Newton steps, as long as they help, and by how much one more would lower the risk."""
    objective = _objective(loss, p, cone)
    near = z - cone.lower < _NEAR_A_BOUND * _width(loss)
    z = np.where(near & (objective(z)[1] > 0), cone.lower, z)
    gradient = objective(z)[1]
    step, decrease = _newton_step(loss, p, cone, z, gradient)
    for _ in range(_POLISHING_STEPS):
        if decrease <= RISK_ROUNDING:
            break
        moved = np.maximum(z + step, cone.lower)
        slope = objective(moved)[1]
        if np.abs(cone.residual(moved, slope)).max() >= np.abs(cone.residual(z, gradient)).max():
            break
        z, gradient = moved, slope
        step, decrease = _newton_step(loss, p, cone, z, gradient)
    return z, decrease


def _newton_step(
    loss: Loss, p: Vector, cone: _Cone, z: Vector, gradient: Vector
) -> tuple[Vector, float]:
    """Newton's step from differences of gradients, and the decrease of the risk it promises."""
    free = (z > cone.lower) | (gradient < 0)
    step = np.zeros(len(z))
    if not gradient[free].any():
        return step, 0.0
    width = _DIFFERENCE_STEP * _width(loss)
    moves = width * np.eye(len(z))[free]
    rows = np.concatenate([z + moves, z - moves]) @ cone.matrix.T + cone.offset
    slopes = _risks_and_gradients(loss, rows, p)[1] @ cone.matrix
    ahead, behind = np.split(slopes[:, free], 2)
    changes = (ahead - behind) / (2.0 * width)
    curvatures, directions = np.linalg.eigh((changes + changes.T) / 2.0)
    along = directions.T @ gradient[free]
    # Flat directions have no gradient but for noise: adding a constant to all scores is one.
    steep = curvatures > _MIN_CURVATURE_SHARE * curvatures[-1]
    lengths = np.where(steep, -along / np.where(steep, curvatures, 1.0), 0.0)
    step[free] = directions @ lengths
    return step, -float(along @ lengths) / 2.0


def centred(loss: Loss, scores: Vector, within: Mask | None = None) -> Vector:
    """Scores moved to mean zero over these labels, if the loss depends on differences only.

    A separable loss does not: each class has a score of its own.
    """
    if loss.separable:
        return scores
    return scores - scores.mean(where=True if within is None else within)


def with_exact_ties(scores: Vector, listed: Mask, others: Mask, near: float) -> Vector:
    """Scores moved into the cone exactly, where a solver has missed it by rounding.

    Scores within `near` of the level where they meet, relative to its size, are put on it.
    """
    if not listed.any() or not others.any():
        return scores
    lowest, highest = scores[listed].min(), scores[others].max()
    if lowest >= highest and lowest - highest > near * (1.0 + abs(lowest)):
        return scores
    level = (lowest + highest) / 2
    near *= 1.0 + abs(level)
    moved = np.where(listed, np.maximum(scores, level), scores)
    moved = np.where(others, np.minimum(moved, level), moved)
    return np.where(np.abs(moved - level) <= near, level, moved)
