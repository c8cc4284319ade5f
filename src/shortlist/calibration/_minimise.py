"""Convex minimisation of an expected loss, free or with a given shortlist on top.

"Shortlist S on top" is the cone of scores g with g_i >= g_j for every i in S and j not in S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from shortlist.calibration._linear_program import hinge_optimum
from shortlist.losses import Loss

Vector = NDArray[np.float64]
Shortlist = NDArray[np.bool_]

#: The risk is then accurate to about the square of this, far below any gap of interest.
_GRADIENT_TOLERANCE = 1e-6
#: L-BFGS-B alone does nearly always; now and then its line search gives up at a kink of the
#: second derivative, where the other method, or a fresh start from the same point, goes on.
_METHODS = {
    "L-BFGS-B": {"ftol": 0.0, "gtol": 1e-13, "maxiter": 2_000, "maxfun": 5_000, "maxcor": 30},
    "SLSQP": {"ftol": 1e-16, "maxiter": 1_000},
}
_MOST_RESTARTS = 10


@dataclass(frozen=True)
class Optimum:
    """Scores, their expected loss, and how they were found."""

    scores: Vector
    risk: float
    method: str


def minimise(loss: Loss, p: Vector, shortlist: Shortlist | None = None) -> Optimum:
    """Minimise the expected convex loss over all scores, or those with this shortlist on top."""
    if loss.name in ("hinge", "ova_hinge"):
        scores = hinge_optimum(loss, p, shortlist)
        method = "linear program"
    elif loss.smooth and loss.convex:
        scores = _smooth_optimum(loss, p, shortlist)
        method = "convex minimisation"
    else:
        raise ValueError(f"no way to minimise {loss.name}: it is neither smooth nor a hinge")
    if not loss.name.startswith("ova_"):
        scores = scores - scores.mean()
    if shortlist is not None:
        scores = _with_exact_ties(scores, shortlist)
    return Optimum(scores, risk_and_gradient(loss, scores, p)[0], method)


def risk_and_gradient(loss: Loss, scores: Vector, p: Vector) -> tuple[float, Vector]:
    """The expected loss at scores, and its gradient."""
    n_classes = len(p)
    values, gradients = loss.value_and_gradient(
        np.tile(scores, (n_classes, 1)), np.arange(n_classes)
    )
    return float(p @ values), p @ gradients


def _smooth_optimum(loss: Loss, p: Vector, shortlist: Shortlist | None) -> Vector:
    n_classes = len(p)
    if shortlist is None:
        into_scores = np.eye(n_classes)
        bounds = Bounds(np.full(n_classes, -np.inf), np.full(n_classes, np.inf))
    else:
        # g = t + a on the shortlist and t - a elsewhere, a >= 0, maps the cone onto a box.
        into_scores = np.column_stack([np.ones(n_classes), np.diag(np.where(shortlist, 1.0, -1.0))])
        bounds = Bounds(np.r_[-np.inf, np.zeros(n_classes)], np.full(n_classes + 1, np.inf))

    def objective(z: Vector) -> tuple[float, Vector]:
        risk, gradient = risk_and_gradient(loss, into_scores @ z, p)
        return risk, gradient @ into_scores

    z = np.zeros(into_scores.shape[1])
    for _ in range(_MOST_RESTARTS):
        for method, options in _METHODS.items():
            z = minimize(objective, z, jac=True, method=method, bounds=bounds, options=options).x
            residual = _projected_gradient(objective(z)[1], z, bounds)
            if residual <= _GRADIENT_TOLERANCE:
                return into_scores @ z
    raise RuntimeError(
        f"minimising the expected {loss.name} stopped at a gradient of {residual:.1e} "
        f"(p between {p.min():.1e} and {p.max():.1e})"
    )


def _projected_gradient(gradient: Vector, z: Vector, bounds: Bounds) -> float:
    """The longest step of projected gradient descent: zero exactly at an optimum.

    The optimisers' own verdict is no use: near the optimum line searches end on rounding.
    """
    return float(np.abs(z - np.maximum(z - gradient, bounds.lb)).max())


def _with_exact_ties(scores: Vector, shortlist: Shortlist) -> Vector:
    """Scores moved into the cone exactly, where a solver has missed it by rounding."""
    lowest, highest = scores[shortlist].min(), scores[~shortlist].max()
    if lowest >= highest and lowest - highest > 1e-9 * (1.0 + abs(lowest)):
        return scores
    level = (lowest + highest) / 2
    near = 1e-9 * (1.0 + abs(level))
    moved = np.where(shortlist, np.maximum(scores, level), np.minimum(scores, level))
    return np.where(np.abs(moved - level) <= near, level, moved)
