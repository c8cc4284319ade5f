"""The hinge family: multiclass SVM, top-k hinge alpha and beta, and their smoothed versions.

    L(f) = max over x in the set of <1 + u, x> - gamma/2 |x|^2,    u_j = f_j - f_y, j != y
    L*(v) = -s + gamma/2 |x|^2   on the set, v_y = -s

    alpha:  0 <= x_j <= s/k, s <= 1        beta:  0 <= x_j <= 1/k, s <= 1

gamma = 0 gives the hinges themselves: alpha max(0, mean of the k largest 1 + u_j), beta the mean
over the k largest of max(0, 1 + u_j). Both are the multiclass hinge at k = 1.

The dual step is a biased projection: with b_j = (1 + q_j - q_y) / (eta + gamma) and
rho = eta / (eta + gamma), it minimises |x - b|^2 + rho s^2 over the set.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.differences import (
    close_at_label,
    shifted_differences,
    simplex_violation,
    sum_of_wrong,
)
from shortlist.losses.kernels import Kernels, ascend_exactly, gap_share, register
from shortlist.projections.selection import largest
from shortlist.projections.threshold import clip_into, solve_threshold
from shortlist.projections.topk import fill_capped, walk_cap

# Below this, eta + gamma cannot be divided by safely in single precision.
FLAT = 1e-30


class BetaHinge(NamedTuple):
    """Top-k hinge beta, and the multiclass hinge at k = 1."""

    k: int
    gamma: float


class AlphaHinge(NamedTuple):
    """Top-k hinge alpha for k >= 2."""

    k: int
    gamma: float


@njit
def _subgradient(k, joint, f, y, v, work):
    """Value and subgradient of the nonsmooth hinges; ``joint`` takes the maximum after the mean."""
    z = work[0]
    top = shifted_differences(f, y, 1.0, z)
    values = work[1]
    places = np.empty(k, np.int32)
    largest(z, k, values, places)
    v[:] = 0
    share = v.dtype.type(1.0 / k)
    value = 0.0
    s = 0.0
    if joint:
        for i in range(k):
            value += (1.0 + top + np.float64(values[i])) / k
        if value > 0.0:
            for i in range(k):
                v[places[i]] = share
                s += np.float64(share)
    else:
        for i in range(k):
            margin = 1.0 + top + np.float64(values[i])
            if margin > 0.0:
                value += margin / k
                v[places[i]] = share
                s += np.float64(share)
    close_at_label(v, y, s)
    return max(value, 0.0)


@njit
def smooth_hinge_value(z, top, x, s, gamma, y):
    # 1 + u = gamma (z + top)
    value = top * s
    for j in range(z.shape[0]):
        if j != y and x[j] > 0:
            value += np.float64(x[j]) * (np.float64(z[j]) - 0.5 * np.float64(x[j]))
    return max(gamma * value, 0.0)


@njit
def _project(loss, f, y, eta, start, v, work):
    """Shared by gradient and dual step: v from the projection; returns what values need."""
    z = work[0]
    scale = eta + loss.gamma
    top = shifted_differences(f, y, scale, z) + 1.0 / scale
    ref, t = solve_threshold(z, top, 1.0 / loss.k, 1.0, eta / scale, False, start[0])
    start[0] = ref + t
    if top > 0.0:
        s = clip_into(z, ref, t, 1.0 / loss.k, 1.0, v)
    else:
        v[:] = 0
        s = 0.0
    close_at_label(v, y, s)
    return top, s


@njit
def _project_alpha(loss, f, y, eta, start, v, work):
    z = work[0]
    scale = eta + loss.gamma
    top = shifted_differences(f, y, scale, z) + 1.0 / scale
    ref, t, c = walk_cap(z, top, loss.k, 1.0, eta / scale, work[1])
    if c > 0.0:
        s = fill_capped(z, ref, t, c, loss.k, 1.0, v)
    else:
        v[:] = 0
        s = 0.0
    close_at_label(v, y, s)
    return top, s


@njit
def _value_gradient_beta(loss, f, y, v, work):
    if loss.gamma < FLAT:
        return _subgradient(loss.k, False, f, y, v, work)
    top, s = _project(loss, f, y, 0.0, np.zeros(2), v, work)
    return smooth_hinge_value(work[0], top, v, s, loss.gamma, y)


@njit
def _value_gradient_alpha(loss, f, y, v, work):
    if loss.gamma < FLAT:
        return _subgradient(loss.k, True, f, y, v, work)
    top, s = _project_alpha(loss, f, y, 0.0, np.zeros(2), v, work)
    return smooth_hinge_value(work[0], top, v, s, loss.gamma, y)


@njit(sums=True)
def sum_of_squares(v):
    squares = 0.0
    for j in range(v.shape[0]):
        squares += np.float64(v[j]) * np.float64(v[j])
    return squares


@njit
def conjugate_of_hinge(loss, v, y):
    squares = sum_of_squares(v) - np.float64(v[y]) * np.float64(v[y])
    return 0.5 * loss.gamma * squares - sum_of_wrong(v, y)


@njit
def _step_of_two(loss, q, y, eta, v):
    """The dual step with one wrong label, where x is a number: visits on the support ask often."""
    margin = 1.0 + (np.float64(q[1 - y]) - np.float64(q[y]))
    x = v.dtype.type(min(max(margin / (2.0 * eta + loss.gamma), 0.0), 1.0 / loss.k))
    v[1 - y] = x
    v[y] = -x


@njit
def _dual_step_beta(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < FLAT:
        _subgradient(loss.k, False, q, y, v, work)
    elif q.shape[0] == 2:
        _step_of_two(loss, q, y, eta, v)
    else:
        _project(loss, q, y, eta, start, v, work)


@njit
def _dual_step_alpha(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < FLAT:
        _subgradient(loss.k, True, q, y, v, work)
    else:
        _project_alpha(loss, q, y, eta, start, v, work)


# Entries are looked at in strides: one comparison for all of a stride's.
_STRIDE = 32
# How far below the last threshold to look for entries that may become positive, where the shares
# add up to one.
_SLACK = 0.02


@njit
def _stride_matters(q, v, begin, cut):
    """Whether one of a stride's entries of q exceeds the cut, or one of v is not zero."""
    zero = v.dtype.type(0)
    hits = np.int32(0)
    for j in range(begin, begin + _STRIDE):
        hits |= np.int32(q[j] > cut) | np.int32(v[j] != zero)
    return hits != 0


@njit
def _list_candidates(q, v, y, cut, places):
    """List the j != y where q exceeds the cut or v is not zero; returns how many."""
    count = 0
    m = q.shape[0]
    whole = m - m % _STRIDE
    for begin in range(0, whole, _STRIDE):
        if _stride_matters(q, v, begin, cut):
            for j in range(begin, begin + _STRIDE):
                if (q[j] > cut or v[j] != 0) and j != y:
                    places[count] = j
                    count += 1
    for j in range(whole, m):
        if (q[j] > cut or v[j] != 0) and j != y:
            places[count] = j
            count += 1
    return count


@njit
def _ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """The exact visit, solved on the few classes that can matter.

    x_j is positive only where b_j = (1 + q_j - q_y) / (eta + gamma) exceeds the threshold theta.
    The step is solved on the classes with b_j above a guess, the last theta less some slack. If
    its theta lies above the guess, the classes left out have x_j = 0 and the step is the true
    one; otherwise the guess is lowered. ``start`` holds the last theta and whether there is one.
    """
    eta = cost * kappa
    scale = eta + loss.gamma
    m = s.shape[0]
    if scale < FLAT or m <= 2 * _STRIDE:
        return ascend_exactly(loss, s, y, cost, kappa, start, stands_for, v, delta, work)
    share = 0.0
    if stands_for > 0:
        share = gap_share(loss, s, y, cost, v, delta, work) * stands_for
    e = s.dtype.type(eta)
    for j in range(m):
        s[j] += e * v[j]
        delta[j] = 0
    places = np.empty(m, np.int32)
    guess = start[0] - _SLACK if start[1] != 0.0 else -np.inf
    while True:
        cut = s.dtype.type(guess * scale + np.float64(s[y]) - 1.0)
        count = _list_candidates(s, v, y, cut, places)
        if count < loss.k:
            guess = -np.inf
            continue
        q, x = work[0, : count + 1], work[1, : count + 1]
        for t in range(count):
            q[t] = s[places[t]]
        q[count] = s[y]
        theta, total = _solve_few(loss, q, scale, eta, x)
        if theta >= guess or count == m - 1:
            break
        guess = min(theta, guess) - _SLACK
    start[0] = theta
    start[1] = 1.0
    c = v.dtype.type(cost)
    for t in range(count):
        j = places[t]
        delta[j] = c * (v[j] - x[t])
        v[j] = x[t]
    last = np.float64(v[y])
    close_at_label(v, y, total)
    delta[y] = v.dtype.type(cost * (last - np.float64(v[y])))
    return share


@njit
def _solve_few_beta(loss, q, scale, eta, x):
    """Shares x of the wrong labels in q, whose last entry is the label's; theta and their sum."""
    z = np.empty_like(q)
    top = shifted_differences(q, q.shape[0] - 1, scale, z) + 1.0 / scale
    ref, t = solve_threshold(z, top, 1.0 / loss.k, 1.0, eta / scale, False, -1.0)
    if not top > 0.0:
        x[:] = 0
        return top, 0.0
    return top + ref + t, clip_into(z, ref, t, 1.0 / loss.k, 1.0, x)


@njit
def _solve_few_alpha(loss, q, scale, eta, x):
    """The same for the alpha hinge."""
    z = np.empty_like(q)
    top = shifted_differences(q, q.shape[0] - 1, scale, z) + 1.0 / scale
    ref, t, c = walk_cap(z, top, loss.k, 1.0, eta / scale, np.empty_like(q))
    if not c > 0.0:
        x[:] = 0
        return top + ref, 0.0
    return top + ref + t, fill_capped(z, ref, t, c, loss.k, 1.0, x)


@overloaded
def _solve_few(loss, q, scale, eta, x):
    return _solve_few_beta if loss.instance_class is BetaHinge else _solve_few_alpha


@njit
def _violation_beta(loss, v, y):
    return simplex_violation(v, y, 0.0, 1.0 / loss.k)


@njit
def _violation_alpha(loss, v, y):
    return simplex_violation(v, y, 1.0 / loss.k, 0.0)


register(
    BetaHinge,
    Kernels(_value_gradient_beta, conjugate_of_hinge, _violation_beta, _dual_step_beta),
)
register(
    AlphaHinge,
    Kernels(
        _value_gradient_alpha,
        conjugate_of_hinge,
        _violation_alpha,
        _dual_step_alpha,
        ascend=_ascend,
    ),
)
