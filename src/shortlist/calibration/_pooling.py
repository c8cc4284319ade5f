"""Infima of softmax-like and one-vs-all losses, over all scores or with a given shortlist.

A loss whose minimiser is increasing in p (log p, or the log odds) is minimised under "every
listed label scores at least as much as every other" by pooling: labels that would violate it
share a score. For the logarithms it is that of their mean probability; the infimum may lie at
infinite scores, which is why these losses are not left to a numerical minimiser. For the
one-vs-all smooth hinge it is the root of a function of one variable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import xlogy

from shortlist.calibration import _closed_forms as closed
from shortlist.calibration._minimise import Optimum, risk_and_gradient, rounding_of
from shortlist.losses import Loss

Vector = NDArray[np.float64]
Shortlist = NDArray[np.bool_]


def pooled(p: Vector, listed: Shortlist, others: Shortlist) -> Vector:
    """p with max(p, t) on the listed labels and min(p, t) on the others, its sum unchanged."""
    if not listed.any() or not others.any() or p[others].max() <= p[listed].min():
        return p
    levels = np.unique(p[listed | others])
    raised = np.maximum(levels[:, None] - p[listed], 0.0).sum(axis=1)
    lowered = np.maximum(p[others] - levels[:, None], 0.0).sum(axis=1)
    # The balance is piecewise linear in t with kinks at the levels: interpolation is exact.
    level = np.interp(0.0, raised - lowered, levels)
    q = p.copy()
    q[listed] = np.maximum(p[listed], level)
    q[others] = np.minimum(p[others], level)
    return q


def truncated_infimum(p: Vector, k: int, shortlist: Shortlist | None = None) -> Optimum:
    """The truncated top-k entropy (softmax at k = 1) with this shortlist on top.

    The k - 1 highest scores are best sent to infinity, where their labels cost nothing: the
    likeliest labels, as far as the shortlist permits. The rest is softmax among themselves.
    """
    free = np.zeros(len(p), dtype=bool)
    if shortlist is None:
        free[closed.likeliest_labels(p, k - 1)] = True
        q = p
    elif shortlist.sum() >= k:
        free[closed.likeliest_labels(np.where(shortlist, p, -1.0), k - 1)] = True
        q = pooled(p, shortlist & ~free, ~shortlist)
    else:
        free[closed.likeliest_labels(np.where(shortlist, 2.0, p), k - 1)] = True
        q = p
    scores = closed.truncated_entropy(q, 1)
    scores[free] = np.inf
    rest = ~free
    total = q[rest].sum()
    risk = float(max(xlogy(total, total) - xlogy(p[rest], q[rest]).sum(), 0.0))
    return Optimum(scores, risk, "closed form", rounding_of(risk))


def logistic_infimum(p: Vector, shortlist: Shortlist | None = None) -> Optimum:
    """The one-vs-all logistic loss with this shortlist on top."""
    q = p if shortlist is None else pooled(p, shortlist, ~shortlist)
    risk = -float((xlogy(p, q) + xlogy(1.0 - p, 1.0 - q)).sum())
    return Optimum(closed.ova_logistic(q), risk, "closed form", rounding_of(risk))


def smooth_ova_hinge_infimum(loss: Loss, p: Vector, shortlist: Shortlist | None = None) -> Optimum:
    """The one-vs-all smooth hinge with this shortlist on top.

    With the scores of the listed labels at least t and those of the others at most t, the best
    score of a label is its free one or t. What t is best shows in the derivative of the risk.
    """
    scores = closed.ova_smooth_hinge(p, loss.smoothing)
    if shortlist is not None:

        def slope(t: float) -> float:
            as_label, as_other = (np.clip((1.0 - s * t) / loss.smoothing, 0, 1) for s in (1, -1))
            slopes = (1.0 - p) * as_other - p * as_label
            raised = np.maximum(slopes[shortlist], 0.0).sum()
            return float(raised + np.minimum(slopes[~shortlist], 0.0).sum())

        level = brentq(slope, -1.0, 1.0, xtol=1e-16)
        scores = np.where(shortlist, np.maximum(scores, level), np.minimum(scores, level))
    risk, _ = risk_and_gradient(loss, scores, p)
    return Optimum(scores, risk, "closed form", rounding_of(risk))
