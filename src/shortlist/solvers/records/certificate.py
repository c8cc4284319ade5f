"""Certificates: the duality gap of weights and duals, with a bound on what rounding does to it.

With s_i = W'x_i and W(v) = -sum_i C_i x_i v_i', for any W and any feasible v,

    P(W) - D(v) = 1/2 |W - W(v)|^2 + sum_i C_i [L(s_i) + L*(v_i) - <s_i, v_i>].

Every term is at least zero, so nothing cancels between them. SDCA holds W close to W(v): the first
term is what rounding has added up. Three effects of rounding are bounded and added to the gap:

- the drift of W. A change of W by a block of B examples rounds each entry of W once, and the
  products and the duals of the block; the kernels add up the squares of these errors.
- the scores. An inner product of d terms errs by at most 6 sqrt(d) u |x_i| |w_j|, u the unit
  roundoff. Its effect on a term of the sum is of first order in |grad L(s_i) - v_i|_1, which is
  small close to a solution. Where a kink lies between the scores and those that rounding may have
  moved, the longest gradient near by counts.
- the kernels that compute L and L*, by KERNEL_ULPS units in the last place of their terms.

Duals in single precision may miss their domain by a unit in the last place, so that in double they
are moved inside first. That moves W(v), which is bounded as drift is.

A descent certifies by v_i = grad L(s_i). Then the gap is 1/2 |g|^2, g = W - W(v) the gradient, and
all that counts is by how much the g computed errs: see :func:`error_of_gradient`.

The square roots treat rounding errors as independent with mean zero (Higham and Mary, "A new
approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019). Six
standard deviations are exceeded with probability below 1e-8. Where the bound is not small against
the tolerance, single precision gives way to double, in which it is negligible.

This is about P and D of one pair, whose common errors cancel. By itself, P errs by what errors of
the scores change the losses, to first order in |grad L(s_i)|_1, and D likewise in |v_i|_1. Both are
at most r, the largest 1-norm of a gradient, for every example: a coarser bound, needed only between
a primal and a dual bound of different evaluations.
"""

from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.storage.base import (
    STANDARD_DEVIATIONS,
    Lengths,
    Sums,
    error_of_scores,
    unit_roundoff,
)

# By how much the kernels that compute L and L* err, in units in the last place.
KERNEL_ULPS = 16.0
# Roundings of a score besides those of its inner product: a difference from the largest one.
ROUNDINGS_OF_DIFFERENCES = 2.0
# If a score may be off by more than this, no bound on the gradient's rounding is given.
MAX_ERROR_OF_SCORES = 0.5
# By how much rounding can put duals outside their domain, relative to their size.
DOMAIN_ULPS = 4.0


class Certificate(NamedTuple):
    """P(W) and a lower bound on the optimum, a pair: their difference is at least the true gap.

    ``rounding`` is the part of the gap that bounds rounding. By itself, the primal errs by
    ``doubt`` at most, and ``alone`` is the dual bound that holds with any primal. ``apart`` bounds
    |W - W(v)|.
    """

    primal: float
    dual: float
    rounding: float
    doubt: float
    alone: float
    apart: float = inf


class Point(NamedTuple):
    """A place, the objective there and its gradient, and a certificate if it came with them."""

    place: NDArray
    value: float
    gradient: NDArray
    certificate: Certificate | None = None


def distance_to_optimum(gap: float, apart: float = inf) -> float:
    """A bound on |W - W*| from a duality gap; ``apart`` bounds |W - W(v)| for its duals v.

    P is 1-strongly convex, so that P(W) - P(W*) is at least 1/2 |W - W*|^2. The identity above,
    taken at W*, says that P(W*) - D(v) is at least 1/2 |W(v) - W*|^2. Both are parts of the gap:

        |W - W*|^2 + |W(v) - W*|^2 <= 2 gap    and    |W(v) - W*| >= |W - W*| - apart.

    At W = W(v) that is |W - W*| <= sqrt(gap); whatever v, it is sqrt(2 gap) at most.
    """
    apart = min(apart, sqrt(2.0 * gap))
    return 0.5 * (apart + sqrt(4.0 * gap - apart**2))


def rounding_in_sums(sums: Sums, width: float, column: float, dtype: np.dtype) -> float:
    """A bound on the effect of rounding on the sum over examples."""
    unit = unit_roundoff(dtype)
    scores = rounding_in_scores(sqrt(sums.distances), width, column, dtype)
    return scores + KERNEL_ULPS * unit * sums.sizes


def rounding_in_scores(reach: float, width: float, column: float, dtype: np.dtype) -> float:
    """A bound on the effect of rounded scores; sqrt(sum_i (C_i |x_i| |g_i|_1)^2) is ``reach``."""
    return error_of_scores(width, column, dtype) * reach


def rounding_in_weights(squares: float, dtype: np.dtype) -> float:
    """A bound on 1/2 |W - W(v)|^2 from the squared errors in units of roundoff."""
    unit = unit_roundoff(dtype)
    return 0.5 * (STANDARD_DEVIATIONS * unit) ** 2 * squares


def rounding_in_duals(sums: Sums, domain_known: bool, dtype: np.dtype) -> float:
    """A bound on what rounding has done to duals whose sums were computed in double.

    Moving them into their domain changed W(v). Where the domain is not known they were not moved:
    that would change L* and <s, v> by DOMAIN_ULPS units in the last place.
    """
    unknown = 0.0 if domain_known else DOMAIN_ULPS * float(np.finfo(dtype).eps) * sums.sizes
    return 0.5 * STANDARD_DEVIATIONS**2 * sums.moves + unknown


class RoundedGradient(NamedTuple):
    """What bounds the rounding of a gradient that was computed in ``dtype``.

    ``gradient_norm`` is |g|, ``weights_norm`` |W|, ``class_norm`` the largest norm of a class's
    weights, ``losses`` the sum of the losses. ``lengths`` are sums over examples, ``width`` is the
    number of multiplications of a score, ``largest_row_norm`` the largest |x_i|.
    """

    gradient_norm: float
    weights_norm: float
    class_norm: float
    losses: float
    lengths: Lengths
    width: float
    largest_row_norm: float
    dtype: np.dtype

    @property
    def error_of_scores(self) -> float:
        """By how much a score errs, a unit of |x_i|."""
        rounded = ROUNDINGS_OF_DIFFERENCES * unit_roundoff(self.dtype) * self.class_norm
        return error_of_scores(self.width, self.class_norm, self.dtype) + rounded


def error_of_gradient(found: RoundedGradient) -> float:
    """A bound on |computed g - g| for a loss that is ``log_lipschitz``; infinite if there is none.

    With g_i = C_i grad L(s_i) and e the error of scores a unit of |x_i|, in this order:

    - rounded scores change the entries of g_i by a factor of at most exp(2 e |x_i|);
    - the kernel that computes g_i errs by KERNEL_ULPS units in the last place of its entries, by
      chance or all alike;
    - the entries of sum_i x_i g_i' are sums of products, as scores are: sums of no more than
      ``additions`` terms, whose absolute values add up to a matrix of norm sum_i |x_i| |g_i|;
    - W is added.
    """
    e, lengths = found.error_of_scores, found.lengths
    largest = e * found.largest_row_norm
    if not largest <= MAX_ERROR_OF_SCORES:
        return inf
    unit = unit_roundoff(found.dtype)
    both = found.gradient_norm + found.weights_norm
    scores = 2.0 * e * exp(2.0 * largest) * sqrt(lengths.fourths)
    kernel = KERNEL_ULPS * unit * (sqrt(lengths.squares) + both)
    sums = STANDARD_DEVIATIONS * sqrt(lengths.additions) * unit * lengths.norms
    return scores + kernel + sums + STANDARD_DEVIATIONS * unit * both


def certificate_by_gradient(primal: float, found: RoundedGradient) -> Certificate | None:
    """The pair of W and of the gradients at W; None where rounding leaves nothing certain.

    The errors of P are part of the gap, so that the dual bound holds for any primal.
    """
    error = error_of_gradient(found)
    if not error < inf:
        return None
    scores = found.error_of_scores
    moved = scores * exp(2.0 * scores * found.largest_row_norm) * sqrt(found.lengths.absolutes)
    doubt = moved + KERNEL_ULPS * unit_roundoff(found.lengths.loss_dtype) * found.losses
    apart = found.gradient_norm + error
    gap = 0.5 * apart**2 + doubt
    rounding = gap - 0.5 * found.gradient_norm**2
    return Certificate(primal, primal - gap, rounding, doubt, primal - gap, apart)


def certificate(
    sums: Sums, norm: float, drift: float, rounding: float, doubt: float, smooth: bool
) -> Certificate:
    """From the sums over examples, |W|^2 and bounds on 1/2 |W - W(v)|^2 and on rounding.

    ``doubt`` bounds what rounded scores do to P or D by themselves. For D ``rounding`` will do if
    the loss has kinks: then |v_i|_1 is part of what it is made of.
    """
    primal = 0.5 * norm + sums.losses
    gap = max(sums.losses + sums.conjugates - sums.products, 0.0) + drift + rounding
    dual = primal - gap
    alone = dual - doubt if smooth else dual
    # Moving duals into their domain has moved W(v) too.
    apart = sqrt(2.0 * drift) + STANDARD_DEVIATIONS * sqrt(sums.moves)
    return Certificate(primal, dual, drift + rounding, rounding + doubt, alone, apart)
