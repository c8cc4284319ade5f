"""Mixtures over k of the smooth top-k hinges and of the top-k entropies, alpha or beta.

    L(f) = sum_k mu_k L_k(f),    mu_k >= 0 that sum to 1

Value and gradient are sums over the parts. The conjugate is their infimal convolution,

    L*(v) = min of sum_k mu_k L_k*(v_k)   over   v = sum_k mu_k v_k,

which only the parts' own duals would tell: the page "The losses" of the documentation says what
that costs. So there is no dual step, and descents train a mixture. With v_ik = grad L_k their
certificate needs no conjugate: at any W the gap is 1/2 |grad P(W)|^2.

Shares are given as weights of ranks, which correspond to them one to one: w_r is the sum of
mu_k / k over k >= r, and mu_k = k (w_k - w_{k+1}).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import njit
from shortlist._parameters import Parameters
from shortlist._text import Setting
from shortlist.errors import ParameterError
from shortlist.losses import kernels
from shortlist.losses.base import Loss
from shortlist.losses.differences import close_at_label, sum_of_wrong
from shortlist.losses.entropy import TopKEntropy
from shortlist.losses.hinge_projection import AlphaHinge, BetaHinge
from shortlist.losses.kernels import Kernels, register
from shortlist.losses.makers import entropy, hinge
from shortlist.projections.entropic import kind_of

# Smaller shares are rounding: differences of two weights of ranks that are equal.
MIN_SHARE_OF_K = 1e-12


class Mixture(NamedTuple):
    """Parts of one family, and the share of each."""

    parts: tuple
    shares: tuple


@njit
def _value_gradient(loss, f, y, v, work):
    g = np.empty_like(f)
    v[:] = 0
    value = 0.0
    for i in range(len(loss.parts)):
        share = loss.shares[i]
        value += share * kernels.value_gradient(loss.parts[i], f, y, g, work)
        for j in range(f.shape[0]):
            v[j] += f.dtype.type(share) * g[j]
    close_at_label(v, y, sum_of_wrong(v, y))
    return value


register(Mixture, Kernels(_value_gradient))


def equal_shares(k: int) -> NDArray:
    """The weights of ranks of 1, 2, ..., k in equal shares."""
    return np.cumsum(1.0 / np.arange(k, 0, -1.0))[::-1] / k


def shares_by_k(rank_weights: NDArray) -> dict[int, float]:
    """The share of each k that has one."""
    drops = rank_weights - np.append(rank_weights[1:], 0.0)
    shares = drops * np.arange(1, len(rank_weights) + 1)
    return {k: float(share) for k, share in enumerate(shares, start=1) if share > MIN_SHARE_OF_K}


def mixed_smooth_hinge(given: Parameters) -> Loss:
    if given.smoothing == 0:
        problem = "must be larger than 0: a mixture is trained by its gradient. Mixtures of plain "
        problem += "hinges beta are "
        raise ParameterError(
            "smoothing", problem + Setting("loss", "hinge") + " with " + Setting("rank_weights")
        )
    family = AlphaHinge if given.variant == "alpha" else BetaHinge
    mixed = _mixed("mixed_smooth_hinge", given, hinge, lambda k: family(k, given.smoothing))
    return replace(mixed, with_smoothing=partial(_smoothed, given))


def _smoothed(given: Parameters, gamma: float) -> Loss:
    return mixed_smooth_hinge(given._replace(smoothing=gamma))


def mixed_entropy(given: Parameters) -> Loss:
    return _mixed(
        "mixed_entropy", given, entropy, lambda k: TopKEntropy(k, kind_of(k, given.variant))
    )


def _mixed(
    name: str,
    given: Parameters,
    one: Callable[[Parameters], Loss],
    part: Callable[[int], Any],
) -> Loss:
    """The mixture with the traits of its part with the largest k, or that part if it is alone."""
    weights = equal_shares(given.k) if given.rank_weights is None else given.rank_weights
    shares = shares_by_k(weights)
    largest = one(given._replace(k=max(shares), multilabel=False, rank_weights=None))
    mixed = replace(
        largest,
        name=name,
        k=given.k,
        rank_weights=weights,
        with_margins=None,
        with_smoothing=None,
    )
    if len(shares) == 1:
        return mixed
    spec = Mixture(tuple(part(k) for k in shares), tuple(shares.values()))
    return replace(mixed, spec=spec, logits=None)
