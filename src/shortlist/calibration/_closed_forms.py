"""Minimisers of the expected loss in closed form, as the paper derives them.

Each function returns scores, infinite where the minimum is approached but not attained.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def ova_hinge(p: Vector) -> Vector:
    """f_j = 1 where p_j > 1/2, otherwise -1."""
    return np.where(p > 0.5, 1.0, -1.0)


def ova_smooth_hinge(p: Vector, smoothing: float) -> Vector:
    """f_j strictly increasing in p_j: linear pieces in the odds, and 2 p_j - 1 between them.

    The middle piece exists for smoothing > 1 only, where |2 p_j - 1| <= smoothing - 1.
    """
    q = 1.0 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = 1.0 - smoothing * q / p
        unlikely = -1.0 + smoothing * p / q
    outer = np.where(p >= 0.5, likely, unlikely)
    return np.where(np.abs(2.0 * p - 1.0) <= smoothing - 1.0, 2.0 * p - 1.0, outer)


def ova_logistic(p: Vector) -> Vector:
    """f_j = log(p_j / (1 - p_j))."""
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log1p(-p)


def multiclass_hinge(p: Vector) -> Vector:
    """One for the likeliest label if its probability is at least 1/2, zero for all others."""
    f = np.zeros_like(p)
    likeliest = int(np.argmax(p))
    if p[likeliest] >= 0.5:
        f[likeliest] = 1.0
    return f


def truncated_entropy(p: Vector, k: int) -> Vector:
    """log p_j, and infinity for the k - 1 likeliest labels; softmax at k = 1."""
    with np.errstate(divide="ignore"):
        f = np.log(p)
    f[likeliest_labels(p, k - 1)] = np.inf
    return f


def likeliest_labels(p: Vector, count: int) -> NDArray[np.intp]:
    """The labels with the `count` largest probabilities, lower labels first among equals."""
    return np.argsort(-p, kind="stable")[:count]
