"""One-vs-all losses: the sum over classes of a binary loss of the margin t_j = +-f_j.

The sign is + for the true label and - for the others; entries of v are independent. With
p_j = -+v_j in [0, 1] (minus for the true label):

    hinge, smoothed by gamma:  L = max over p of p (1 - t) - gamma/2 p^2,  L* = -p + gamma/2 p^2
    logistic:                  L = log(1 + exp(-t)),   L* = p log p + (1-p) log(1-p)

Dual steps: p = clip((1 - t) / (eta + gamma), 0, 1) for the hinge at the margin t of q; for the
logistic loss the logit w of p solves  w + eta sigmoid(w) = -t.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.kernels import Kernels, register
from shortlist.projections.entropic import sigmoid, softplus
from shortlist.special import exp, log


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
    if scale > 1e-30:
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
        p = abs(np.float64(v[j]))
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
    """v_j = sigmoid(f_j) and the sum of log(1 + exp f_j), label included as if it were wrong."""
    zero = f.dtype.type(0)
    one = f.dtype.type(1)
    total = zero
    for j in range(f.shape[0]):
        e = exp(-abs(f[j]))
        big = one / (one + e)
        v[j] = big if f[j] >= zero else e * big
        total += max(f[j], zero) + log(one + e)
    return np.float64(total)


@njit
def _logistic_value_gradient(loss, f, y, v, work):
    t = np.float64(f[y])
    total = _logistic_pass(f, v) - softplus(t)
    v[y] = v.dtype.type(-sigmoid(-t))
    return max(total, 0.0) + softplus(-t)


@njit(sums=True)
def _logistic_conjugate(loss, v, y):
    tiny = np.finfo(v.dtype).tiny
    one = v.dtype.type(1)
    total = v.dtype.type(0)
    for j in range(v.shape[0]):
        p = min(abs(v[j]), one)
        r = one - p
        total += p * log(max(p, tiny)) + r * log(max(r, tiny))
    return np.float64(total)


@njit(sums=True)
def _newton_sweep(e, w, eta):
    """One Newton step on  w + eta (sigmoid(w) - 1/2) = e  for every class; the largest step."""
    zero = e.dtype.type(0)
    one = e.dtype.type(1)
    half = e.dtype.type(0.5)
    c = e.dtype.type(eta)
    worst = zero
    for j in range(e.shape[0]):
        # The function is odd: solve for |e| and put the sign back at the end. On w >= 0 it is
        # concave, so steps from the left never pass the root.
        x = exp(-w[j])
        s = one / (one + x)
        step = (abs(e[j]) - w[j] - c * (s - half)) / (one + c * s * (x * s))
        w[j] = max(w[j] + step, zero)
        worst = max(worst, abs(step) / (one + w[j]))
    return np.float64(worst)


@njit
def _logistic_dual_step(loss, q, y, eta, start, v, work):
    e = work[0]
    w = work[1]
    half_eta = q.dtype.type(0.5 * eta)
    chord = q.dtype.type(4.0 / (4.0 + eta))
    for j in range(q.shape[0]):
        e[j] = q[j] - half_eta
    e[y] = -q[y] - half_eta
    for j in range(q.shape[0]):
        # Two lower bounds of the root: the slope is at most 1 + eta/4, the sigmoid at most 1.
        size = abs(e[j])
        w[j] = max(size * chord, size - half_eta)
    enough = 2.0 * np.sqrt(np.finfo(q.dtype).eps)
    for _ in range(100):
        if _newton_sweep(e, w, eta) <= enough:
            break
    for j in range(q.shape[0]):
        x = exp(-w[j])
        s = q.dtype.type(1) / (q.dtype.type(1) + x)
        # p is the smaller share when e < 0: x s = 1 - s keeps its digits.
        v[j] = s if e[j] >= 0 else x * s
    v[y] = -v[y]


register(
    OVAHinge, Kernels(_hinge_value_gradient, _hinge_conjugate, _box_violation, _hinge_dual_step)
)
register(
    OVALogistic,
    Kernels(_logistic_value_gradient, _logistic_conjugate, _box_violation, _logistic_dual_step),
)
