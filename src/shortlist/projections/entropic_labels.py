"""The entropic step of softmax with several right labels Y, p = |Y|.

    min  <pi, log pi> - <q, v> + eta/2 |v|^2   over pi in the unit simplex,  v = pi - 1_Y / p

(a proximal step of the negative entropy about the uniform distribution on Y). With one multiplier
sigma,  eta v_j + log pi_j = q_j - sigma  for all labels, that is

    wrong:  v_j = pi_j = V(q_j - sigma + log eta) / eta
    right:  pi_y = V(q_y - sigma + eta/p + log eta) / eta   (eta = 0:  pi_j = exp(q_j - sigma)),

and one scalar equation is left: the sum of pi is 1, which is to say that the sum of v is 0. The
latter is what is computed. Where eta is large, v is small beside 1/p: a v_y made from pi_y would
be rounding, so it is corrected by a Newton step on  eta v + log(1 + p v) = q_y - sigma + log p,
whose terms are small. With M the largest of q + (eta/p) 1_Y, the largest pi lies between 1/m and 1:

    M - eta <= sigma <= M - eta/m + log m.

Newton's method on log(sum of pi) = log1p(sum of v), kept inside these bounds, takes 2 or 3 sweeps
from a warm start. Scalars are double; only sweeps over the wrong labels run in the precision of q.
"""

import math

import numpy as np

from shortlist._jit import njit
from shortlist.projections.entropic import (
    MAX_STEP_OF_FIRST_ORDER,
    ROOM_FOR_ROUNDING,
    sweep,
    sweep_exp,
)
from shortlist.projections.threshold import MAX_NEWTON_TRIALS, MAX_TRIALS, split
from shortlist.special import V


@njit
def _right_share(above, eta, log_eta, p):
    """(v, -dv/dsigma) of a right label whose score is sigma + ``above``."""
    w = V(above + eta / p + log_eta)
    pi = w / eta
    v = pi - 1.0 / p
    slope = pi / (1.0 + w)
    if pi * p > 0.5:
        v -= (math.log1p(p * v) + eta * v - (above + math.log(p))) * slope
    return v, slope


@njit
def _softmax(z, height, q, labels, highest, v):
    """eta = 0: a closed form."""
    top = max(height, 0.0)
    first, second = split(z, top - height, 0.0)
    total, _ = sweep_exp(z, first, second, np.inf, v)
    for y in labels:
        total += math.exp((np.float64(q[y]) - highest) - top)
    factor = v.dtype.type(1.0 / total)
    for j in range(v.shape[0]):
        v[j] *= factor
    for y in labels:
        pi = math.exp((np.float64(q[y]) - highest) - top) / total
        v[y] = v.dtype.type(pi - 1.0 / labels.shape[0])
    return top + math.log(total)


@njit
def entropic_step_labels(z, height, q, labels, highest, eta, start, v):
    """Solve the problem above; writes v and returns sigma - highest.

    ``z`` holds q_j over the wrong labels, less their maximum, and -inf at the right ones;
    ``highest`` is the largest q of a right label, ``height`` by how much the maximum is above
    it. ``start[0]`` holds a guess of the result and receives it.
    """
    p = labels.shape[0]
    precision = np.finfo(z.dtype).eps
    # The quadratic term adds eta pi to logarithms: below this it is lost in rounding.
    if eta < 0.25 * precision:
        return _softmax(z, height, q, labels, highest, v)

    log_eta = math.log(eta)
    # sigma = highest + base + t: relative to the highest of all scores, t keeps its digits.
    base = max(height, 0.0)
    top = max(height, eta / p) - base
    low = top - eta - ROOM_FOR_ROUNDING
    high = top - eta / z.shape[0] + math.log(z.shape[0]) + ROOM_FOR_ROUNDING
    t = min(max(start[0] - base, low), high)
    step = 0.0
    for trial in range(MAX_TRIALS):
        first, second = split(z, base - height, t - log_eta)
        total, slope = sweep(z, first, second, np.inf, v)
        excess = total / eta
        size = excess
        bend = slope / eta
        for y in labels:
            right, right_slope = _right_share(
                (np.float64(q[y]) - highest - base) - t, eta, log_eta, p
            )
            excess += right
            size += abs(right)
            bend += right_slope
        step = np.nan
        if -1.0 < excess < np.inf and bend > 0.0:
            step = math.log1p(excess) * (1.0 + excess) / bend
            if step * step <= precision:
                break  # the correction to first order below does the rest
            if abs(excess) <= precision * size:
                break  # as good as rounding allows
        if excess > 0.0:
            low = t
        else:
            high = t
        new = t + step
        if not (low < new < high) or trial > MAX_NEWTON_TRIALS:
            new = low + 0.5 * (high - low)
            if new in (low, high):
                break
        t = new
    if not abs(step) <= MAX_STEP_OF_FIRST_ORDER:
        step = 0.0
    # First order in sigma: V' = V / (1 + V).
    one = z.dtype.type(1)
    c = z.dtype.type(step)
    inverse = z.dtype.type(1.0 / eta)
    for j in range(z.shape[0]):
        v[j] = v[j] * (one - c / (one + v[j])) * inverse
    t += step
    start[0] = base + t
    for y in labels:
        right, _ = _right_share((np.float64(q[y]) - highest - base) - t, eta, log_eta, p)
        v[y] = v.dtype.type(right)
    return base + t
