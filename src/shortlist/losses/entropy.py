"""The entropy family: softmax and the top-k entropies alpha and beta.

    L(f) = max over x in the set of <u, x> - <x, log x> - (1-s) log(1-s),  u_j = f_j - f_y, j != y
    L*(v) = <x, log x> + (1-s) log(1-s)   on the set, v_y = -s

    softmax:  x >= 0, s <= 1     alpha:  0 <= x_j <= s/k, s <= 1     beta:  0 <= x_j <= 1/k, s <= 1

On the simplex this is log(1 + sum_j exp u_j). The dual step adds eta/2 (|x|^2 + s^2) and is the
entropic step of ``shortlist.projections`` at a_j = q_j - q_y; value and gradient are its case
eta = 0.
"""

import math
from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.differences import (
    close_at_label,
    shifted_differences,
    simplex_violation,
    sum_of_wrong,
)
from shortlist.losses.domains import capped
from shortlist.losses.kernels import Kernels, register
from shortlist.losses.softmax_visit import ascend_softmax
from shortlist.projections.entropic import (
    ALPHA,
    SIMPLEX,
    entropic_step,
    sigmoid,
    softplus,
)
from shortlist.special import exp, log, log1p_positive


class Softmax(NamedTuple):
    """Softmax, the cross-entropy of the multinomial logistic model."""

    k: int = 1


class TopKEntropy(NamedTuple):
    """Top-k entropy for k >= 2; ``kind`` tells alpha from beta as in projections.entropic."""

    k: int
    kind: int


@njit(sums=True)
def _exponentials(z, v):
    total = z.dtype.type(0)
    for j in range(z.shape[0]):
        e = exp(z[j])
        v[j] = e
        total += e
    return np.float64(total)


@njit
def log_loss(z, top, y, v):
    """log(1 + sum_j exp u_j) for u = z + top, z_y = -inf; writes its gradient to v."""
    total = _exponentials(z, v)
    omega = top + math.log(total)  # log of sum_j exp u_j
    factor = v.dtype.type(sigmoid(omega) / total)
    for j in range(v.shape[0]):
        v[j] *= factor
    close_at_label(v, y, sum_of_wrong(v, y))
    return softplus(omega)


@njit
def value_gradient_softmax(loss, f, y, v, work):
    top = shifted_differences(f, y, 1.0, work[0])
    return log_loss(work[0], top, y, v)


@njit(maxima=True)
def _lane_maxima(scores, top):
    for j in range(scores.shape[0]):
        for b in range(scores.shape[1]):
            top[b] = max(top[b], scores[j, b])


@njit(sums=True)
def _lane_exponentials(scores, top, wrong):
    for j in range(scores.shape[0]):
        for b in range(scores.shape[1]):
            e = exp(scores[j, b] - top[b])
            scores[j, b] = e
            wrong[b] += e


@njit(sums=True)
def _lane_values(own, top, wrong, cost, right, factor):
    """log(1 + sum_j exp u_j) of every lane, into ``right``; its gradient's factor."""
    one = own.dtype.type(1)
    tiny = np.finfo(own.dtype).tiny
    for b in range(own.shape[0]):
        below = own[b] - top[b]
        e = exp(below)
        total = wrong[b] + e
        # If the label is far behind, exp underflows, and the difference of scores is used.
        ratio = wrong[b] / max(e, tiny)
        near = log1p_positive(ratio, one)
        far = log(total) - below
        right[b] = near if e > tiny else far
        factor[b] = cost[b] / total


@njit
def _softmax_lanes(loss, scores, y, cost, scratch):
    """Softmax with examples in the lanes: short rows would run in scalar remainders."""
    own, top, wrong, right, factor = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    costs = scratch[5]
    top[:] = -np.inf
    wrong[:] = 0
    for b in range(y.shape[0]):
        own[b] = scores[y[b], b]
        costs[b] = cost[b]
        scores[y[b], b] = -np.inf
    _lane_maxima(scores, top)
    for b in range(y.shape[0]):
        top[b] = max(top[b], own[b])
    _lane_exponentials(scores, top, wrong)
    _lane_values(own, top, wrong, costs, right, factor)
    for j in range(scores.shape[0]):
        for b in range(scores.shape[1]):
            scores[j, b] *= factor[b]
    total = 0.0
    for b in range(y.shape[0]):
        scores[y[b], b] = -wrong[b] * factor[b]
        total += cost[b] * np.float64(right[b])
    return total


@njit
def _softmax_curvature(loss, f, y, step, hessian, work):
    """diag p - p p'."""
    p = work[2]
    value_gradient_softmax(loss, f, y, p, work[:2])
    p[y] += 1
    for a in range(f.shape[0]):
        for b in range(f.shape[0]):
            hessian[a, b] = -p[a] * p[b]
        hessian[a, a] += p[a]


@njit
def _softmax_curvature_among(loss, f, y, v, classes, place, fewest, step, hessian, few, work):
    """diag p - p p' between some classes: p is known from the gradient."""
    for a in range(classes.shape[0]):
        few[a] = v[classes[a]]
    few[place] += 1.0
    for a in range(classes.shape[0]):
        for b in range(classes.shape[0]):
            hessian[a, b] = -few[a] * few[b]
        # Of the label 1 - p is known to more digits than p.
        hessian[a, a] = few[a] * (-v[y] if a == place else 1.0 - few[a])
    return True


@njit
def _value_gradient_topk(loss, f, y, v, work):
    top = shifted_differences(f, y, 1.0, work[0])
    start = np.zeros(2)
    value, s = entropic_step(work[0], top, 0.0, loss.k, loss.kind, f.shape[0] - 1, start, v)
    close_at_label(v, y, s)
    return value


@njit(sums=True)
def negative_entropy(v, y):
    tiny = np.finfo(v.dtype).tiny
    total = v.dtype.type(0)
    for j in range(v.shape[0]):
        x = max(v[j], v.dtype.type(0))
        total += x * log(max(x, tiny))
    return np.float64(total)


@njit
def conjugate_of_entropy(loss, v, y):
    s = sum_of_wrong(v, y)
    # The sum over v leaves out v_y: it is not positive, and counts as zero there. log1p keeps the
    # digits of s where it is tiny.
    return negative_entropy(v, y) + ((1.0 - s) * math.log1p(-s) if s < 1.0 else 0.0)


@njit
def _dual_step_softmax(loss, q, y, eta, start, v, work):
    top = shifted_differences(q, y, 1.0, work[0])
    _, s = entropic_step(work[0], top, eta, 1, SIMPLEX, q.shape[0] - 1, start, v)
    close_at_label(v, y, s)


@njit
def _dual_step_topk(loss, q, y, eta, start, v, work):
    top = shifted_differences(q, y, 1.0, work[0])
    _, s = entropic_step(work[0], top, eta, loss.k, loss.kind, q.shape[0] - 1, start, v)
    close_at_label(v, y, s)


@njit
def _violation_softmax(loss, v, y):
    return simplex_violation(v, y, 0.0, 1.0)


@njit
def _violation_topk(loss, v, y):
    if loss.kind == ALPHA:
        return simplex_violation(v, y, 1.0 / loss.k, 0.0)
    return simplex_violation(v, y, 0.0, 1.0 / loss.k)


register(
    Softmax,
    Kernels(
        value_gradient_softmax,
        conjugate_of_entropy,
        _violation_softmax,
        _dual_step_softmax,
        ascend=ascend_softmax,
        lanes=_softmax_lanes,
        curvature=_softmax_curvature,
        curvature_among=_softmax_curvature_among,
        domain=lambda spec: capped(1, joint=False, linear=False),
    ),
)
register(
    TopKEntropy,
    Kernels(
        _value_gradient_topk,
        conjugate_of_entropy,
        _violation_topk,
        _dual_step_topk,
        domain=lambda spec: capped(spec.k, joint=spec.kind == ALPHA, linear=False),
    ),
)
