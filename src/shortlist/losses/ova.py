"""One-vs-all losses: the sum over classes of a binary loss of the margin t_j = +-f_j.

The sign is + for the true label and - for the others; entries of v are independent. With
p_j = -+v_j in [0, 1] (minus for the true label):

    hinge, smoothed by gamma:  L = max over p of p (1 - t) - gamma/2 p^2,  L* = -p + gamma/2 p^2
    logistic:                  L = log(1 + exp(-t)),   L* = p log p + (1-p) log(1-p)

Dual steps: p = clip((1 - t) / (eta + gamma), 0, 1) for the hinge at the margin t of q; for the
logistic loss the logit w of p solves  w + eta sigmoid(w) = -t,  and -w solves it with eta + t in
place of -t: the smaller of p and 1 - p is computed, to full relative precision.
"""

import math
from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.domains import boxes
from shortlist.losses.hinge_projection import MIN_SCALE_TO_DIVIDE_BY
from shortlist.losses.kernels import Kernels, register
from shortlist.special import V, exp, log, log1m, log1p_positive

# Newton steps at most. They converge in fewer: this ends the loop where a score is not a number.
_MAX_NEWTON_STEPS = 100


class OVAHinge(NamedTuple):
    """One-vs-all hinge; smoothed if gamma > 0."""

    gamma: float


class OVALogistic(NamedTuple):
    """One-vs-all logistic loss."""

    k: int = 1


@njit
def _hinge_shares(f, y, scale, v):
    """v from p_j = clip((1 - t_j) / scale, 0, 1); scale = 0 gives the subgradient."""
    zero = f.dtype.type(0)
    one = f.dtype.type(1)
    if scale >= MIN_SCALE_TO_DIVIDE_BY:
        inverse = f.dtype.type(1.0 / scale)
        for j in range(f.shape[0]):
            v[j] = min(max((one + f[j]) * inverse, zero), one)
        v[y] = -min(max((one - f[y]) * inverse, zero), one)
    else:
        for j in range(f.shape[0]):
            v[j] = one if f[j] > -one else zero
        v[y] = -one if f[y] < one else zero


@njit
def _hinge_value_gradient(loss, f, y, v, work):
    _hinge_shares(f, y, loss.gamma, v)
    value = 0.0
    for j in range(f.shape[0]):
        margin = np.float64(f[j]) if j == y else -np.float64(f[j])
        p = abs(np.float64(v[j]))
        value += p * (1.0 - margin - 0.5 * loss.gamma * p)
    return value


@njit
def _hinge_conjugate(loss, v, y):
    total = 0.0
    for j in range(v.shape[0]):
        # Not |v_j|: steps of several examples at once take the formula to be quadratic.
        p = -np.float64(v[j]) if j == y else np.float64(v[j])
        total += p * (0.5 * loss.gamma * p - 1.0)
    return total


@njit
def _hinge_dual_step(loss, q, y, eta, start, v, work):
    _hinge_shares(q, y, eta + loss.gamma, v)


@njit
def _box_violation(loss, v, y):
    worst = 0.0
    for j in range(v.shape[0]):
        p = -np.float64(v[j]) if j == y else np.float64(v[j])
        if p != p:
            return np.inf
        worst = max(worst, max(-p, p - 1.0))
    return worst


@njit(sums=True)
def _logistic_pass(f, v):
    """v_j = sigmoid(f_j); returns the sum of log(1 + exp f_j)."""
    zero = f.dtype.type(0)
    one = f.dtype.type(1)
    total = zero
    for j in range(f.shape[0]):
        e = exp(-abs(f[j]))
        big = one / (one + e)
        v[j] = big if f[j] >= zero else e * big
        total += max(f[j], zero) + log1p_positive(e, one)
    return np.float64(total)


@njit
def _logistic_value_gradient(loss, f, y, v, work):
    scores = work[0]
    for j in range(f.shape[0]):
        scores[j] = f[j]
    scores[y] = -f[y]
    total = _logistic_pass(scores, v)
    v[y] = -v[y]
    return total


@njit(sums=True)
def _logistic_conjugate(loss, v, y):
    tiny = np.finfo(v.dtype).tiny
    one = v.dtype.type(1)
    total = v.dtype.type(0)
    for j in range(v.shape[0]):
        p = min(abs(v[j]), one)
        total += p * log(max(p, tiny)) + (one - p) * log1m(p, one, tiny)
    return np.float64(total)


@njit(sums=True)
def _start_sweep(a, w, log_half_eta):
    """An upper bound of the root of  w + eta sigmoid(w) = a  for every class, within log 2."""
    zero = a.dtype.type(0)
    c = a.dtype.type(log_half_eta)
    for j in range(a.shape[0]):
        # Left of 0, exp(w)/2 <= sigmoid(w) <= exp(w), and eta exp(w)/2 = V(a + log(eta/2)).
        w[j] = min(a[j] - V(a[j] + c), zero)


@njit(sums=True)
def _newton_sweep(a, w, eta):
    """One Newton step on  w + eta sigmoid(w) = a  for every class; returns the largest step."""
    zero = a.dtype.type(0)
    one = a.dtype.type(1)
    c = a.dtype.type(eta)
    worst = zero
    for j in range(a.shape[0]):
        # Convex left of 0, so steps from the right never pass the root.
        x = exp(w[j])
        s = x / (one + x)
        step = (a[j] - w[j] - c * s) / (one + c * (s / (one + x)))
        w[j] = min(w[j] + step, zero)
        worst = max(worst, abs(step) / (one - w[j]))
    return np.float64(worst)


@njit
def _logistic_dual_step(loss, q, y, eta, start, v, work):
    a = work[0]
    w = work[1]
    c = q.dtype.type(eta)
    one = q.dtype.type(1)
    for j in range(q.shape[0]):
        a[j] = min(q[j], c - q[j])
    a[y] = min(-q[y], c + q[y])
    _start_sweep(a, w, math.log(0.5 * eta) if eta > 0.0 else -np.inf)
    enough = np.sqrt(np.finfo(q.dtype).eps)
    for _ in range(_MAX_NEWTON_STEPS):
        if _newton_sweep(a, w, eta) <= enough:
            break
    for j in range(q.shape[0]):
        t = -q[j] if j == y else q[j]
        x = exp(w[j])
        p = (x if t <= c - t else one) / (one + x)
        v[j] = -p if j == y else p


register(
    OVAHinge,
    Kernels(
        _hinge_value_gradient,
        _hinge_conjugate,
        _box_violation,
        _hinge_dual_step,
        domain=lambda spec: boxes,
    ),
)
register(
    OVALogistic,
    Kernels(
        _logistic_value_gradient,
        _logistic_conjugate,
        _box_violation,
        _logistic_dual_step,
        domain=lambda spec: boxes,
    ),
)
