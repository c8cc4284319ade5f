"""The hinge family for examples with several right labels Y, p = |Y|.

With x over the wrong labels, z over the right ones and s = <1,x>,

    L(f) = max over x in the set, z >= 0, <1,z> = s of
           <1 + f_wrong, x> - <f_Y, z> - gamma/2 (|x|^2 + |z - s/p|^2)
    L*(v) = -s + gamma/2 (|x|^2 + |z - s/p|^2)    on that set, v_wrong = x, v_Y = -z

    alpha:  0 <= x_j <= s/k, s <= 1        beta:  0 <= x_j <= 1/k, s <= 1

gamma = 0 gives alpha max(0, 1 + mean of the k largest wrong f_j - min f_Y), beta the mean over the
k largest of max(0, 1 + f_j - min f_Y): every right label is to lead. |z - s/p|^2 = |z|^2 - s^2/p is
zero for one label, where all of this is the multiclass loss.

The dual step. Write c = eta + gamma. Given s, the z that minimises c/2 |z|^2 + <q_Y, z> is
z_y = max(0, tau - q_y) / c: positive for the p' lowest right labels, of sum Q, with

    tau = (c s + Q) / p',    the derivative of the minimum in s.

As long as p' stays, the step is thus min c/2 |x|^2 - <1 + q_wrong - Q/p', x> + c/2 rho s^2 with
rho = 1/p' - gamma / (p c): the biased projection of the multiclass step, the mean of the active
labels in place of q_y. Which are active is found by walking. Let s solve the step for some p'.

- If tau > q of the next label, that label is active at the solution: adding it lowers the
  derivative at s, so s and tau can only grow from there.
- If tau <= q of the last active label, that one is not: without it, tau reaches its q at some s
  where the derivative is the one with it and not negative; so the solution lies before.

So the walk goes one way from wherever it starts: from the last visit's p', at first from the p'
of s = 1, which is the most there can be. Value and gradient are the case eta = 0.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.domains import capped
from shortlist.losses.hinge import sum_of_squares
from shortlist.losses.hinge_projection import MIN_SCALE_TO_DIVIDE_BY
from shortlist.losses.kernels import Kernels, register
from shortlist.losses.labels import right_labels, shift_wrong, sum_of_right, total, wrong_range
from shortlist.projections.selection import largest
from shortlist.projections.threshold import clip_into, solve_threshold
from shortlist.projections.topk import fill_capped, walk_cap


class MultilabelBetaHinge(NamedTuple):
    """Top-k hinge beta over several right labels, and the hinge at k = 1."""

    k: int
    gamma: float


class MultilabelAlphaHinge(NamedTuple):
    """Top-k hinge alpha over several right labels, for k >= 2."""

    k: int
    gamma: float


@njit
def _lowest(f, labels):
    """The right label with the lowest score, the first of them."""
    best = labels[0]
    for y in labels:
        if f[y] < f[best]:
            best = y
    return best


@njit
def _subgradient(k, joint, f, labels, v, work):
    """Value and subgradient of the nonsmooth hinges; ``joint`` takes the maximum after the mean."""
    z = work[0]
    y = _lowest(f, labels)
    margin = 1.0 + (shift_wrong(f, labels, 1.0, z) - np.float64(f[y]))
    values = work[1]
    places = np.empty(k, np.int32)
    largest(z, k, values, places)
    value = 0.0
    if joint:
        count = k
        for i in range(k):
            value += (margin + np.float64(values[i])) / k
        if not value > 0.0:
            count = 0
    else:
        count = 0
        while count < k and margin + np.float64(values[count]) > 0.0:
            value += (margin + np.float64(values[count])) / k
            count += 1
    v[:] = 0
    share = v.dtype.type(1.0 / k)
    s = 0.0
    for i in range(count):
        v[places[i]] = share
        s += np.float64(share)
    v[y] = v.dtype.type(-s)
    return max(value, 0.0)


@njit
def _solve_beta(loss, z, top, rho, start, v, heap):
    ref, t = solve_threshold(z, top, 1.0 / loss.k, 1.0, rho, False, start[0])
    start[0] = ref + t
    if top > 0.0:
        return clip_into(z, ref, t, 1.0 / loss.k, 1.0, v)
    v[:] = 0
    return 0.0


@njit
def _solve_alpha(loss, z, top, rho, start, v, heap):
    ref, t, c = walk_cap(z, top, loss.k, 1.0, rho, heap)
    if c > 0.0:
        return fill_capped(z, ref, t, c, loss.k, 1.0, v)
    v[:] = 0
    return 0.0


@overloaded
def _solve_wrong(loss, z, top, rho, start, v, heap):
    """Write x = argmin |x - z - top|^2 + rho <1,x>^2 over the set to v; returns its sum."""
    return _solve_alpha if loss.instance_class is MultilabelAlphaHinge else _solve_beta


@njit
def _sort_close(f, labels, lowest, scale, order, distance):
    """List the right labels that can be active, those with the lowest scores first.

    ``distance`` receives (f_y - lowest) / scale. All active labels lie below the tau of s = 1.
    Returns their number.
    """
    count = 0
    for y in labels:
        d = (np.float64(f[y]) - lowest) / scale
        if d < 1.0:
            i = count
            while i > 0 and distance[i - 1] > d:
                distance[i] = distance[i - 1]
                order[i] = order[i - 1]
                i -= 1
            distance[i] = d
            order[i] = y
            count += 1
    below = 0.0
    for i in range(1, count):
        below += distance[i - 1]
        if not i * distance[i] - below < 1.0:
            return i
    return count


@njit
def _project(loss, f, labels, eta, start, v, work):
    """Shared by gradient and dual step: writes v and returns (height, s).

    All is divided by c = eta + gamma: distances e_y = (q_y - lowest right q) / c, heights
    1 + q_j - lowest right q = c (z_j + height), and tau = lowest right q + c (s + E) / p'.
    """
    z = work[0]
    scale = eta + loss.gamma
    p = labels.shape[0]
    lowest = np.float64(f[_lowest(f, labels)])
    height = (shift_wrong(f, labels, scale, z) - lowest) / scale + 1.0 / scale
    order = np.empty(p, np.int64)
    distance = np.empty(p)
    most = _sort_close(f, labels, lowest, scale, order, distance)

    active = min(int(start[1]), most) if start[1] > 0.0 else most
    sum_of_active = 0.0
    for i in range(active):
        sum_of_active += distance[i]
    direction = 0
    while True:
        mean = sum_of_active / active
        # 1/p' - gamma / (p c), without the cancellation
        rho = (eta * p + loss.gamma * (p - active)) / (scale * p * active)
        s = _solve_wrong(loss, z, height - mean, rho, start, v, work[1])
        tau = s / active + mean
        if direction >= 0 and active < most and tau > distance[active]:
            direction = 1
            sum_of_active += distance[active]
            active += 1
        elif direction <= 0 and active > 1 and not tau > distance[active - 1]:
            direction = -1
            active -= 1
            sum_of_active -= distance[active]
        else:
            break
    start[1] = active

    for y in labels:
        v[y] = 0
    for i in range(active):
        v[order[i]] = v.dtype.type(-max(s / active + (mean - distance[i]), 0.0))
    return height, s


@njit
def _smooth_value(z, height, f, labels, v, s, gamma):
    value = height * s
    for j in range(z.shape[0]):
        if v[j] > 0:
            value += np.float64(v[j]) * (np.float64(z[j]) - 0.5 * np.float64(v[j]))
    lowest = np.float64(f[_lowest(f, labels)])
    share = s / labels.shape[0]
    for y in labels:
        right = -np.float64(v[y])
        value -= right * ((np.float64(f[y]) - lowest) / gamma)
        value -= 0.5 * (right - share) * (right - share)
    return max(gamma * value, 0.0)


@njit
def _value_gradient_with(loss, joint, f, y, v, work):
    labels = right_labels(y)
    if loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        return _subgradient(loss.k, joint, f, labels, v, work)
    height, s = _project(loss, f, labels, 0.0, np.zeros(2), v, work)
    return _smooth_value(work[0], height, f, labels, v, s, loss.gamma)


@njit
def _value_gradient_beta(loss, f, y, v, work):
    return _value_gradient_with(loss, False, f, y, v, work)


@njit
def _value_gradient_alpha(loss, f, y, v, work):
    return _value_gradient_with(loss, True, f, y, v, work)


@njit
def _dual_step_with(loss, joint, q, y, eta, start, v, work):
    labels = right_labels(y)
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        _subgradient(loss.k, joint, q, labels, v, work)
    else:
        _project(loss, q, labels, eta, start, v, work)


@njit
def _dual_step_beta(loss, q, y, eta, start, v, work):
    _dual_step_with(loss, False, q, y, eta, start, v, work)


@njit
def _dual_step_alpha(loss, q, y, eta, start, v, work):
    _dual_step_with(loss, True, q, y, eta, start, v, work)


@njit
def _conjugate(loss, v, y):
    labels = right_labels(y)
    s = total(v) - sum_of_right(v, labels)
    squares = sum_of_squares(v)
    share = s / labels.shape[0]
    for label in labels:
        right = -np.float64(v[label])
        squares += (right - share) * (right - share) - right * right
    return 0.5 * loss.gamma * squares - s


@njit
def _violation(v, y, share_of_sum, cap):
    """By how much v misses 0 <= x_j <= max(share_of_sum * s, cap), s <= 1, z >= 0, <1,z> = s."""
    labels = right_labels(y)
    right = sum_of_right(v, labels)
    balance = total(v)
    s = balance - right
    if not abs(s) < np.inf or not abs(right) < np.inf:
        return np.inf
    low, high = wrong_range(v, labels)
    most = share_of_sum * s if share_of_sum > 0.0 else cap
    worst = max(max(s - 1.0, abs(balance)), max(-low, high - most))
    for label in labels:
        worst = max(worst, np.float64(v[label]))
    return worst


@njit
def _violation_beta(loss, v, y):
    return _violation(v, y, 0.0, 1.0 / loss.k)


@njit
def _violation_alpha(loss, v, y):
    return _violation(v, y, 1.0 / loss.k, 0.0)


register(
    MultilabelBetaHinge,
    Kernels(
        _value_gradient_beta,
        _conjugate,
        _violation_beta,
        _dual_step_beta,
        domain=lambda spec: capped(spec.k, joint=False, linear=True),
    ),
)
register(
    MultilabelAlphaHinge,
    Kernels(
        _value_gradient_alpha,
        _conjugate,
        _violation_alpha,
        _dual_step_alpha,
        domain=lambda spec: capped(spec.k, joint=True, linear=True),
    ),
)
