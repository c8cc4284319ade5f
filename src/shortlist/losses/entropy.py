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
from shortlist.losses.kernels import Kernels, ascend_exactly, register
from shortlist.projections.entropic import (
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
def _value_gradient_softmax(loss, f, y, v, work):
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
        # Where the label is far behind, exp underflows but the difference says it all.
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
    _value_gradient_softmax(loss, f, y, p, work[:2])
    p[y] += 1
    for a in range(f.shape[0]):
        for b in range(f.shape[0]):
            hessian[a, b] = -p[a] * p[b]
        hessian[a, a] += p[a]


@njit
def _value_gradient_topk(loss, f, y, v, work):
    top = shifted_differences(f, y, 1.0, work[0])
    start = np.zeros(2)
    value, s = entropic_step(work[0], top, 0.0, loss.k, loss.kind, f.shape[0] - 1, start, v)
    close_at_label(v, y, s)
    return value


@njit(sums=True)
def _negative_entropy(v, y):
    tiny = np.finfo(v.dtype).tiny
    total = v.dtype.type(0)
    for j in range(v.shape[0]):
        x = max(v[j], v.dtype.type(0))
        total += x * log(max(x, tiny))
    return np.float64(total)


@njit
def _conjugate(loss, v, y):
    rest = max(1.0 - sum_of_wrong(v, y), 0.0)
    # v_y <= 0 counts as zero in the sum.
    return _negative_entropy(v, y) + (rest * math.log(rest) if rest > 0.0 else 0.0)


@njit
def _dual_step_softmax(loss, q, y, eta, start, v, work):
    top = shifted_differences(q, y, 1.0, work[0])
    _, s = entropic_step(work[0], top, eta, 1, SIMPLEX, q.shape[0] - 1, start, v)
    close_at_label(v, y, s)


# The cheap visit below trusts its series for residuals between these bounds; beyond, it moves as
# far as they allow, and the next visit goes on.
_LEAST_RESIDUAL, _MOST_RESIDUAL = -2.3, 1.8
# Where the squared residuals have a larger mean, the exact step gains more than it costs.
_FAR = 0.25
# A class whose residual is beyond the bounds is left to the exact step if its new share exceeds
# this. From next to nothing it would take many visits.
_NEGLIGIBLE = 0.02
# A label less likely than this is left to the exact step: 1 + v_y has lost its digits.
_UNLIKELY = 1e-3


@njit(sums=True)
def _residuals(s, p, eta, r):
    """r_j = s_j - log p_j; returns the sums of a_j and of a_j r_j, a = p / (1 + eta p)."""
    tiny = np.finfo(s.dtype).tiny
    one = s.dtype.type(1)
    e = s.dtype.type(eta)
    weights = s.dtype.type(0)
    weighted = s.dtype.type(0)
    for j in range(s.shape[0]):
        x = max(p[j], tiny)
        r[j] = s[j] - log(x)
        a = x / (one + e * x)
        weights += a
        weighted += a * r[j]
    return np.float64(weights), np.float64(weighted)


@njit(inline=True)
def _moved(x, r, eta, one, half, two_thirds):
    """p with  eta p + log p = eta x + log x + r,  by one step of fourth order from x."""
    o = one + eta * x
    c = o * (o + two_thirds * r)
    return x + x * (r / o) * ((c - half * r) / (c - r))


@njit(sums=True)
def _move(s, r, p, eta, t, new):
    """new = p moved by r - t; returns the sums of new, of new / (1 + eta new), of p (r - t)^2.

    The last number returned is positive if an entry held back at the bound should become more than
    negligible: its equation is  eta z + log z = eta p + s - t.
    """
    number = r.dtype.type
    tiny = np.finfo(r.dtype).tiny
    one, half, two_thirds = number(1), number(0.5), number(2 / 3)
    e, shift = number(eta), number(t)
    least, most = number(_LEAST_RESIDUAL), number(_MOST_RESIDUAL)
    negligible = number(eta * _NEGLIGIBLE + math.log(_NEGLIGIBLE))
    zero = number(0)
    total, slope, spread, held = zero, zero, zero, zero
    for j in range(r.shape[0]):
        x = max(p[j], tiny)
        full = r[j] - shift
        excess = min(max(s[j] - shift + e * x - negligible, zero), one)
        held += excess if full > most else zero
        d = min(max(full, least), most)
        z = _moved(x, d, e, one, half, two_thirds)
        new[j] = z
        total += z
        slope += z / (one + e * z)
        spread += x * d * d
    return np.float64(total), np.float64(slope), np.float64(spread), held


@njit(sums=True)
def _shift_level(new, eta, dt):
    """new -= dt new / (1 + eta new); returns the sum."""
    one = new.dtype.type(1)
    e, d = new.dtype.type(eta), new.dtype.type(dt)
    total = new.dtype.type(0)
    for j in range(new.shape[0]):
        x = new[j]
        x -= x / (one + e * x) * d
        new[j] = x
        total += x
    return np.float64(total)


@njit(inline=True)
def _gain_of(r, x, d, half_eta, half, one, zero):
    h = d * d
    return r * d - half_eta * h - half * (h / x) * (one + max(-d / x, zero))


@njit(sums=True)
def _gain(r, p, new, eta, t, scale):
    """A lower bound of the gain of the dual objective from p to scale * new.

    The gain is <r, d> - KL(new, p) - eta/2 |d|^2, d = scale new - p, and with h = d/p
    (1 + h) log(1 + h) - h <= h^2/2 (1 + max(-h, 0)) for h >= -1.
    """
    number = r.dtype.type
    tiny = np.finfo(r.dtype).tiny
    one, half, zero = number(1), number(0.5), number(0)
    half_eta, shift, factor = number(0.5 * eta), number(t), number(scale)
    total = zero
    for j in range(r.shape[0]):
        x = max(p[j], tiny)
        total += _gain_of(r[j] - shift, x, new[j] * factor - x, half_eta, half, one, zero)
    return np.float64(total)


@njit
def _ascend_softmax(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """A visit of SDCA that starts from the example's last dual, at a quarter of the exact price.

    With p = v but p_y = 1 + v_y, the exact step solves  eta p_j + log p_j = r_j + eta p_old_j +
    log p_old_j - t,  sum p = 1,  where r_j = s_j - log p_old_j vanishes at a solution. From p_old
    it takes t by one Newton step, each p_j by one step of fourth order, then corrects t once and
    scales. The gain of the dual objective is bounded from below; if the bound is negative, or on
    a first visit, the exact step is taken. The share of the gap is 1/2 Var_p(r) to second order,
    and free: every visit measures it.
    """
    eta = cost * kappa
    last = np.float64(v[y])
    p = 1.0 + last
    if last == 0.0 or p < _UNLIKELY:
        return ascend_exactly(loss, s, y, cost, kappa, start, 1, v, delta, work)
    r, new = work[0], work[1]
    v[y] = 0
    weights, weighted = _residuals(s, v, eta, r)
    score = s[y]
    own = np.float64(score) - math.log(p)
    a = p / (1.0 + eta * p)
    t = (weighted + a * own) / (weights + a)
    s[y] = -np.inf  # the label is moved below
    total, slope, spread, held = _move(s, r, v, eta, t, new)
    s[y] = score
    residual = min(max(own - t, _LEAST_RESIDUAL), _MOST_RESIDUAL)
    spread += p * residual * residual
    if spread > _FAR or held > 0:
        v[y] = last
        return ascend_exactly(loss, s, y, cost, kappa, start, 1, v, delta, work)
    q = _moved(p, residual, eta, 1.0, 0.5, 2 / 3)
    total += q - np.float64(new[y])
    dt = (total - 1.0) / (slope + q / (1.0 + eta * q))
    dt = min(max(dt, -0.5), 0.5)
    new[y] = 0
    total = _shift_level(new, eta, dt)
    q -= q / (1.0 + eta * q) * dt
    scale = 1.0 / (total + q)
    change = q * scale - p
    gain = _gain(r, v, new, eta, t, scale)
    gain += _gain_of(own - t, p, change, 0.5 * eta, 0.5, 1.0, 0.0)
    if not gain >= 0.0:
        v[y] = last
        return ascend_exactly(loss, s, y, cost, kappa, start, 1, v, delta, work)
    factor = v.dtype.type(scale)
    c = v.dtype.type(cost)
    for j in range(v.shape[0]):
        x = new[j] * factor
        delta[j] = c * (v[j] - x)
        v[j] = x
    close_at_label(v, y, total * scale)
    delta[y] = v.dtype.type(cost * (last - np.float64(v[y])))
    return 0.5 * cost * spread


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
    if loss.kind == 1:
        return simplex_violation(v, y, 1.0 / loss.k, 0.0)
    return simplex_violation(v, y, 0.0, 1.0 / loss.k)


register(
    Softmax,
    Kernels(
        _value_gradient_softmax,
        _conjugate,
        _violation_softmax,
        _dual_step_softmax,
        ascend=_ascend_softmax,
        lanes=_softmax_lanes,
        curvature=_softmax_curvature,
    ),
)
register(TopKEntropy, Kernels(_value_gradient_topk, _conjugate, _violation_topk, _dual_step_topk))
