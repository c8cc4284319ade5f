"""What is proved about the expected loss of wrong scores, as numbers.

Let scores g list j and leave out i although p_i > p_j. Raise g_i and lower g_j by the same
amount: the expected loss falls at a rate of at least slope * (p_i - p_j), and that rate changes by
at most `curvature` per unit. Hence it can fall by slope^2 (p_i - p_j)^2 / (2 curvature), and g is
at least so far from the infimum. Exchanging all wrongly listed labels at once gives the same with
the excess error in place of p_i - p_j. The proofs are on the page "Calibration" of the
documentation.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from shortlist.losses import Loss
from shortlist.losses.entropy import Softmax, TopKEntropy
from shortlist.losses.hinge_projection import AlphaHinge, BetaHinge
from shortlist.losses.mixture import Mixture
from shortlist.losses.ordered import OrderedHinge
from shortlist.losses.ova import OVAHinge, OVALogistic
from shortlist.losses.printed import PrintedHinge
from shortlist.projections.entropic import ALPHA


class Descent(NamedTuple):
    """A lower bound on the slope, per unit of excess error, and an upper one on the curvature."""

    slope: float
    curvature: float


class Question(NamedTuple):
    """Shortlists of k labels out of n_classes; at most `exchanges` of them are wrong."""

    k: int
    n_classes: int
    exchanges: int


def proved_excess_risk(loss: Loss, epsilon: float, k: int, n_classes: int) -> float:
    """No scores have less expected loss beyond the infimum, whatever p, if their top-k error
    exceeds the Bayes error by epsilon; 0 where nothing is proved."""
    question = Question(k, n_classes, exchanges=min(k, n_classes - k))
    descent = _descent(loss.spec, question)
    return 0.0 if descent is None else (descent.slope * epsilon) ** 2 / (2 * descent.curvature)


@singledispatch
def _descent(spec: Any, question: Question) -> Descent | None:
    return None


@_descent.register
def _(spec: AlphaHinge, question: Question) -> Descent | None:
    if spec.gamma == 0:
        return None
    slope = min(1.0, (question.k + 1) / spec.gamma) if question.k >= spec.k else 0.0
    return Descent(slope, _hinge_curvature(question) / spec.gamma)


@_descent.register
def _(spec: BetaHinge, question: Question) -> Descent | None:
    if spec.gamma == 0:
        return None
    slope = min(1.0, (question.k + 1) / spec.gamma, (question.k + 1) / spec.k)
    return Descent(slope, _hinge_curvature(question) / spec.gamma)


@_descent.register
def _(spec: PrintedHinge, question: Question) -> Descent | None:
    if spec.gamma == 0 or question.k < spec.k - 1:
        return None
    slope = min(1.0 - 1.0 / spec.k, (question.k + 1) / spec.gamma)
    return Descent(slope, _hinge_curvature(question) / spec.gamma)


@_descent.register
def _(spec: OrderedHinge, question: Question) -> Descent | None:
    ranks = len(spec.weights)
    if spec.gamma == 0 or (spec.joint and question.k < ranks):
        return None
    slope = min(float(spec.weights[: question.k].sum()), question.k / spec.gamma)
    return Descent(slope, _hinge_curvature(question) / spec.gamma)


def _hinge_curvature(question: Question) -> float:
    """The squared length of the change of f_j - f_y over j, for the label y where it is largest."""
    return question.n_classes + 2.0 * question.exchanges


@_descent.register
def _(spec: Softmax, question: Question) -> Descent:
    return Descent(1.0, 1.0)


@_descent.register
def _(spec: TopKEntropy, question: Question) -> Descent:
    if spec.kind == ALPHA and question.k < spec.k:
        return Descent(0.0, 1.0)
    return Descent(min(1.0, (question.k + 1) / spec.k), 1.0)


@_descent.register
def _(spec: Mixture, question: Question) -> Descent | None:
    """Slopes of all parts have the same sign, so that both bounds add up."""
    parts = [_descent(part, question) for part in spec.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    sums = np.array(spec.shares) @ np.array(known)
    return Descent(*sums.tolist())


@_descent.register
def _(spec: OVALogistic, question: Question) -> Descent:
    return Descent(1.0, question.exchanges / 2.0)


@_descent.register
def _(spec: OVAHinge, question: Question) -> Descent | None:
    if spec.gamma == 0:
        return None
    return Descent(min(1.0, 2.0 / spec.gamma), 2.0 * question.exchanges / spec.gamma)
