"""How the expected loss of each family is minimised, chosen by the type of the loss's kernels.

A new family that is convex needs nothing here: smooth losses are minimised as they are, others as
linear programs. Others, and those with a closed form, are registered below.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.calibration import _closed_forms as closed
from shortlist.calibration._linear_program import hinge_infimum
from shortlist.calibration._minimise import Optimum, minimise
from shortlist.calibration._pooling import (
    logistic_infimum,
    smooth_ova_hinge_infimum,
    truncated_infimum,
)
from shortlist.losses import Loss
from shortlist.losses.entropy import Softmax, TopKEntropy
from shortlist.losses.hinge_projection import BetaHinge
from shortlist.losses.mixture import Mixture
from shortlist.losses.ova import OVAHinge, OVALogistic
from shortlist.losses.truncated import TruncatedEntropy

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


def infimum(loss: Loss, p: Vector, shortlist: Mask | None = None) -> Optimum:
    """The infimum of the expected loss, over all scores or those with this shortlist on top."""
    return _infimum(loss.spec, loss, p, shortlist)


def minimiser(loss: Loss, p: Vector) -> Vector:
    """Scores that minimise the expected loss, in closed form where the paper has one."""
    return _minimiser(loss.spec, loss, p)


@singledispatch
def _infimum(spec: Any, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    solve = hinge_infimum if loss.convex and not loss.smooth else minimise
    return solve(loss, p, shortlist)


@_infimum.register(OVAHinge)
def _(spec: OVAHinge, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    solve = smooth_ova_hinge_infimum if loss.smooth else hinge_infimum
    return solve(loss, p, shortlist)


@_infimum.register(Softmax)
@_infimum.register(TopKEntropy)
def _(spec: Any, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    return minimise(loss, p, shortlist, out_of_reach(p, shortlist))


@_infimum.register(Mixture)
def _(spec: Mixture, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    return _infimum(spec.parts[0], loss, p, shortlist)


@_infimum.register(TruncatedEntropy)
def _(spec: Any, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    return truncated_infimum(p, loss.k, shortlist)


@_infimum.register(OVALogistic)
def _(spec: Any, loss: Loss, p: Vector, shortlist: Mask | None) -> Optimum:
    return logistic_infimum(p, shortlist)


def out_of_reach(p: Vector, shortlist: Mask | None) -> Mask:
    """The labels whose scores tend to -inf in the infimum of an entropy.

    They have probability zero, so their scores only cost the others, and no bound: they are not
    listed, or no unlisted label has a positive probability.
    """
    impossible = p == 0
    if shortlist is None or not (~shortlist & ~impossible).any():
        return impossible
    return impossible & ~shortlist


@singledispatch
def _minimiser(spec: Any, loss: Loss, p: Vector) -> Vector:
    return infimum(loss, p).scores


@_minimiser.register(OVAHinge)
def _(spec: OVAHinge, loss: Loss, p: Vector) -> Vector:
    return closed.ova_smooth_hinge(p, spec.gamma) if loss.smooth else closed.ova_hinge(p)


@_minimiser.register(OVALogistic)
def _(spec: OVALogistic, loss: Loss, p: Vector) -> Vector:
    return closed.ova_logistic(p)


@_minimiser.register(BetaHinge)
def _(spec: BetaHinge, loss: Loss, p: Vector) -> Vector:
    if spec.k == 1 and not loss.smooth:
        return closed.multiclass_hinge(p)
    return infimum(loss, p).scores


@_minimiser.register(Softmax)
@_minimiser.register(TruncatedEntropy)
def _(spec: Any, loss: Loss, p: Vector) -> Vector:
    return closed.truncated_entropy(p, loss.k)
