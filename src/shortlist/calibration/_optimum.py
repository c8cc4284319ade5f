"""The minimiser of a loss's expected value at a distribution of the label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist import losses
from shortlist.calibration import _closed_forms as closed
from shortlist.calibration._bayes import check_distribution
from shortlist.calibration._minimise import minimise, risk_and_gradient
from shortlist.calibration._pooling import logistic_infimum, truncated_infimum
from shortlist.losses import Loss

Vector = NDArray[np.float64]


def expected_loss(loss: Loss | str, scores: ArrayLike, p: ArrayLike) -> float:
    """The mean of L(Y, scores) when label y has probability p_y; scores must be finite."""
    vector = check_distribution(p)
    g = np.asarray(scores, dtype=np.float64)
    if g.shape != vector.shape:
        raise ValueError(f"scores must have shape {vector.shape} like p, got {g.shape}")
    return risk_and_gradient(as_loss(loss), g, vector)[0]


def bayes_optimal_scores(loss: Loss | str, p: ArrayLike) -> Vector:
    """Scores that minimise the expected loss when label y has probability p_y.

    Closed forms of the paper for the one-vs-all losses, the multiclass hinge, softmax and the
    truncated entropy; a linear program for the top-k hinges; otherwise convex minimisation to
    about 1e-9 in the gradient, with scores that sum to zero.

    Where a loss depends on differences only, adding a constant to all scores changes nothing.
    Minima at infinity are returned as such: -inf for labels of probability zero under softmax
    and one-vs-all logistic loss, +inf for the k - 1 likeliest labels under the truncated entropy.

    Parameters
    ----------
    loss : a loss of `shortlist.losses`, or its name
    p : array of shape (n_classes,), the probability of each label
    """
    loss = as_loss(loss)
    vector = check_distribution(p)
    loss.check_classes(len(vector))
    if loss.name == "ova_hinge":
        return closed.ova_hinge(vector)
    if loss.name == "ova_smooth_hinge":
        return closed.ova_smooth_hinge(vector, loss.smoothing)
    if loss.name == "ova_logistic":
        return closed.ova_logistic(vector)
    if loss.name == "hinge" and loss.k == 1:
        return closed.multiclass_hinge(vector)
    if is_truncated_entropy(loss):
        return closed.truncated_entropy(vector, loss.k)
    require_full_support(loss, vector)
    return minimise(loss, vector).scores


def bayes_risk(loss: Loss | str, p: ArrayLike) -> float:
    """The infimum of the expected loss over all scores when label y has probability p_y."""
    loss = as_loss(loss)
    vector = check_distribution(p)
    loss.check_classes(len(vector))
    if is_truncated_entropy(loss):
        return truncated_infimum(vector, loss.k).risk
    if loss.name == "ova_logistic":
        return logistic_infimum(vector).risk
    require_full_support(loss, vector)
    return expected_loss(loss, bayes_optimal_scores(loss, vector), vector)


def as_loss(loss: Loss | str) -> Loss:
    return losses.get(loss) if isinstance(loss, str) else loss


def is_truncated_entropy(loss: Loss) -> bool:
    """Softmax is the truncated entropy, and the top-k entropy, at k = 1."""
    return loss.name == "truncated_entropy" or (loss.name == "entropy" and loss.k == 1)


def require_full_support(loss: Loss, p: Vector) -> None:
    if loss.name == "entropy" and (p == 0).any():
        raise ValueError(
            "p must be positive everywhere for the top-k entropy with k > 1: at a probability of "
            "zero its minimum lies at infinity"
        )
