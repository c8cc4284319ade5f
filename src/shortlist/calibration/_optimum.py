"""The minimiser of a loss's expected value at a distribution of the label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist import losses
from shortlist.calibration._bayes import check_distribution
from shortlist.calibration._families import infimum, minimiser
from shortlist.calibration._minimise import risk_and_gradient
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
    Minima at infinity are returned as such: -inf for labels of probability zero under the
    entropies and the one-vs-all logistic loss, +inf for the k - 1 likeliest labels under the
    truncated entropy.

    Parameters
    ----------
    loss : a loss of `shortlist.losses`, or its name
    p : array of shape (n_classes,), the probability of each label
    """
    return minimiser(*checked(loss, p))


def bayes_risk(loss: Loss | str, p: ArrayLike) -> float:
    """The infimum of the expected loss over all scores when label y has probability p_y."""
    return infimum(*checked(loss, p)).risk


def checked(loss: Loss | str, p: ArrayLike) -> tuple[Loss, Vector]:
    """The loss, looked up if named, and p as a distribution over classes it is defined for."""
    loss = as_loss(loss)
    vector = check_distribution(p)
    loss.check_classes(len(vector))
    return loss, vector


def as_loss(loss: Loss | str) -> Loss:
    """The loss itself, or the one of that name. Examples have one right label here."""
    loss = losses.get(loss) if isinstance(loss, str) else loss
    if loss.multilabel:
        raise ValueError(f"calibration is about one right label; {loss.name} takes several")
    return loss
