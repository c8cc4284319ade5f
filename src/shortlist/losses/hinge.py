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
    largest_wrong,
    shifted_differences,
    simplex_violation,
    sum_of_wrong,
)
from shortlist.losses.domains import capped
from shortlist.losses.kernels import Kernels, ascend_exactly, gap_share, register, share_of_value
from shortlist.projections.selection import STRIDE, largest, stride_exceeds
from shortlist.projections.threshold import clip_into, solve_threshold
from shortlist.projections.topk import fill_capped, settle_cap, walk_cap

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
def _zero_after_mean(loss):
    return True


@njit
def _zero_before_mean(loss):
    return False


@overloaded
def _is_joint(loss):
    """Whether the maximum with zero is taken after the mean: alpha, as against beta."""
    return _zero_after_mean if loss.instance_class is AlphaHinge else _zero_before_mean


@njit
def _subgradient(loss, f, y, v, work):
    """Value and subgradient of the nonsmooth hinges."""
    k = loss.k
    z = work[0]
    top = shifted_differences(f, y, 1.0, z)
    values = work[1]
    places = np.empty(k, np.int32)
    largest(z, k, values, places)
    v[:] = 0
    share = v.dtype.type(1.0 / k)
    value = 0.0
    s = 0.0
    if _is_joint(loss):
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


# How far below the last threshold to look for entries that may become positive.
_SLACK = 0.02


@njit
def _list_above(f, y, cut, places):
    """List the j != y with f_j > cut; returns how many."""
    count = 0
    m = f.shape[0]
    whole = m - m % STRIDE
    for begin in range(0, whole, STRIDE):
        if stride_exceeds(f, begin, cut):
            for j in range(begin, begin + STRIDE):
                if f[j] > cut and j != y:
                    places[count] = j
                    count += 1
    for j in range(whole, m):
        if f[j] > cut and j != y:
            places[count] = j
            count += 1
    return count


@njit
def _solve(loss, f, y, eta, start, work):
    """The projection of gradients and dual steps, on the few classes that can matter.

    x_j is positive only where b_j = (1 + f_j - f_y) / (eta + gamma) exceeds the threshold theta.
    These classes are listed in the first row of ``work`` (see :func:`_places`), their x_j in the
    second. Returns how many are listed. ``start`` holds the last theta and a number that is not
    zero if there is one: alpha's last cap.
    """
    scale = eta + loss.gamma
    # Where there is a last theta, the classes above it are nearly all that matter.
    guess = start[0] - _SLACK if start[1] != 0.0 else -np.inf
    if _is_joint(loss) and guess > -np.inf:
        # If they do, there is no need for the least threshold, which takes the k largest scores.
        count, theta = _solve_above(loss, f, y, eta, scale, guess, start, work)
        if count >= loss.k and theta >= guess:
            start[0] = theta
            return count
        guess = min(guess, theta - _SLACK) if count >= loss.k else -np.inf
    least = _least_threshold(loss, f, y, scale)
    if least == np.inf:
        return 0
    while True:
        count, theta = _solve_above(loss, f, y, eta, scale, max(guess, least), start, work)
        # Alpha's cap is a share of the sum over the k largest.
        if count >= (loss.k if _is_joint(loss) else 1):
            if not theta < guess or guess <= least:
                break
            guess = theta - _SLACK
        else:
            # Too few are above the guess, or rounding has hidden one above the least threshold.
            least = least if guess > least else -np.inf
            guess = -np.inf
    start[0] = theta
    return count


@njit
def _solve_above(loss, f, y, eta, scale, guess, start, work):
    """List the classes with b_j above ``guess``, and solve the projection on them.

    Returns how many there are, and theta, which is exact if it is not below ``guess``. With fewer
    than k classes alpha is not solved.
    """
    places = _places(work)
    own = np.float64(f[y])
    count = _list_above(f, y, _cut_in_scores(f, own, scale, guess), places)
    if count < (loss.k if _is_joint(loss) else 1):
        return count, np.inf
    z = work[1, :count]
    top = f.dtype.type(-np.inf)
    for t in range(count):
        top = max(top, f[places[t]])
    inverse = f.dtype.type(1.0 / scale)
    lowest = np.finfo(f.dtype).min
    for t in range(count):
        z[t] = max((f[places[t]] - top) * inverse, lowest)
    level = (1.0 + (np.float64(top) - own)) / scale
    return count, _solve_few(loss, z, level, eta / scale, start)


@njit
def _places(work):
    """The first row of scratch as a list of whole numbers."""
    return work[0].view(np.int32)


@njit
def _write(work, count, y, v):
    """Fill v from the listed classes; returns s = -v_y, at most 1."""
    places, x = _places(work), work[1]
    s = 0.0
    for t in range(count):
        s += np.float64(x[t])
    if s > 1.0:
        factor = v.dtype.type(1.0 / s)
        for t in range(count):
            x[t] *= factor
        s = 1.0
    v[:] = 0
    for t in range(count):
        v[places[t]] = x[t]
    close_at_label(v, y, s)
    return s


@njit
def _cut_in_scores(f, own, scale, theta):
    """Scores above it have b_j > theta; in the precision of f, and not above the exact one."""
    exact = theta * scale + own - 1.0
    cut = f.dtype.type(exact)
    return cut if np.float64(cut) <= exact else np.nextafter(cut, f.dtype.type(-np.inf))


@njit
def _least_threshold_beta(loss, f, y, scale):
    """A lower bound on theta; infinite if all x_j are zero.

    theta is not negative. At k = 1 the largest x_j is at most 1, so that theta >= max b - 1.
    """
    top = (1.0 + (np.float64(largest_wrong(f, y)) - np.float64(f[y]))) / scale
    if not top > 0.0:
        return np.inf
    return max(top - 1.0 - 1e-6 * abs(top), 0.0) if loss.k == 1 else 0.0


@njit
def _least_threshold_alpha(loss, f, y, scale):
    """A lower bound on theta; infinite if all x_j are zero.

    No x_j exceeds s/k, and the k largest b_j lie above theta: theta is at least the k-th largest
    less 1/k. All x_j are zero if the mean of the k largest is not positive.
    """
    if not 1.0 + (np.float64(largest_wrong(f, y)) - np.float64(f[y])) > 0.0:
        return np.inf
    values = np.empty(loss.k, f.dtype)
    kept = f[y]
    f[y] = -np.inf
    largest(f, loss.k, values, np.empty(loss.k, np.int32))
    f[y] = kept
    mean = 0.0
    for i in range(loss.k):
        mean += (1.0 + (np.float64(values[i]) - np.float64(kept))) / loss.k
    if not mean > 0.0:
        return np.inf
    kth = (1.0 + (np.float64(values[loss.k - 1]) - np.float64(kept))) / scale
    return kth - 1.0 / loss.k - 1e-6 * abs(kth)


@overloaded
def _least_threshold(loss, f, y, scale):
    return _least_threshold_beta if loss.instance_class is BetaHinge else _least_threshold_alpha


@njit
def _solve_few_simplex(z, top, rho):
    """Minimise |x - b|^2 + rho s^2 over x >= 0, s <= 1, b = z + top; replaces z by x.

    x_j = b_j - theta on the entries above theta. Newton's method from the left: the entries that
    are above the last theta give the next, until none falls away. Returns theta.
    """
    t = -np.inf  # theta - top
    inside = z.shape[0] + 1
    while True:
        total, above = 0.0, 0
        for j in range(z.shape[0]):
            if z[j] > t:
                total += np.float64(z[j])
                above += 1
        # Entries only leave the list, except by rounding.
        if above >= inside or above == 0:
            break
        inside = above
        # The sum is theta / rho or one, whichever is smaller.
        t = max((rho * total - top) / (rho * inside + 1.0), (total - 1.0) / inside)
    for j in range(z.shape[0]):
        z[j] = max(np.float64(z[j]) - t, 0.0)
    return top + t


@njit
def _solve_few_capped(k, z, top, rho):
    """Minimise |x - b|^2 + rho s^2 over 0 <= x <= 1/k, s <= 1, b = z + top; replaces z by x."""
    ref, t = solve_threshold(z, top, 1.0 / k, 1.0, rho, False, -1.0)
    x = np.empty_like(z)
    clip_into(z, ref, t, 1.0 / k, 1.0, x)
    for j in range(z.shape[0]):
        z[j] = x[j]
    return top + ref + t


@overloaded(apart=True)
def _solve_few_apart(k, z, top, rho):
    return _solve_few_capped


@njit
def _solve_few_beta(loss, z, top, rho, start):
    start[1] = 1.0
    if loss.k == 1:
        return _solve_few_simplex(z, top, rho)
    return _solve_few_apart(loss.k, z, top, rho)


@njit
def _solve_few_alpha(loss, z, top, rho, start):
    scratch = np.empty_like(z)
    ref, t, c = 0.0, 0.0, 0.0
    if start[1] != 0.0:
        ref, t, c = settle_cap(z, top, loss.k, 1.0, rho, start[0], start[1])
    if c == 0.0:
        ref, t, c = walk_cap(z, top, loss.k, 1.0, rho, scratch)
    if c > 0.0:
        fill_capped(z, ref, t, c, loss.k, 1.0, scratch)
        for j in range(z.shape[0]):
            z[j] = scratch[j]
        start[1] = c
    else:
        z[:] = 0
    return top + ref + t


@overloaded(apart=True)
def _solve_few_jointly(loss, z, top, rho, start):
    return _solve_few_alpha


@overloaded
def _solve_few(loss, z, top, rho, start):
    """Replace z by x for b = z + top, the maximum of z being 0; returns theta.

    ``start`` holds theta and, for alpha, the cap of the last solution; zero if there is none. What
    is more than a few lines is compiled apart: a fifth of the time to compile the visits, of which
    there is one for each way to keep examples and duals.
    """
    return _solve_few_beta if loss.instance_class is BetaHinge else _solve_few_jointly


@njit
def _value_gradient(loss, f, y, v, work):
    if loss.gamma < FLAT:
        return _subgradient(loss, f, y, v, work)
    return _value_from(loss, f, y, np.zeros(2), v, work)


@njit
def _value_from(loss, f, y, start, v, work):
    """Value and gradient of a smoothed hinge, from the last theta and cap if there are some."""
    count = _solve(loss, f, y, 0.0, start, work)
    places, x = _places(work), work[1]
    s = _write(work, count, y, v)
    if s == 0.0:
        return 0.0
    # <1 + u, x> - gamma/2 |x|^2, relative to one of the listed classes: scores may be huge.
    base = np.float64(f[places[0]])
    value = s * (1.0 + (base - np.float64(f[y])))
    for t in range(count):
        share = np.float64(x[t])
        value += share * ((np.float64(f[places[t]]) - base) - 0.5 * loss.gamma * share)
    return max(value, 0.0)


@njit
def _curvature_beta(loss, f, y, step, hessian, work):
    """(D - e e' / |F|) / gamma on the entries F strictly inside their bounds, e = 1 on F.

    The second term is there if the bound on the sum holds with equality. Otherwise the label's
    row and column make all rows add up to zero.
    """
    x = work[2]
    start = np.zeros(2)
    count = _solve(loss, f, y, 0.0, start, work[:2])
    _write(work[:2], count, y, x)
    bound = start[0] > 0.0  # theta
    cap = x.dtype.type(1.0 / loss.k)
    inside = 0
    for j in range(f.shape[0]):
        if j != y and 0 < x[j] < cap:
            inside += 1
    hessian[:] = 0
    inverse = 1.0 / loss.gamma
    shared = inverse / inside if bound and inside > 0 else 0.0
    for a in range(f.shape[0]):
        if a == y or not 0 < x[a] < cap:
            continue
        for b in range(f.shape[0]):
            if b != y and 0 < x[b] < cap:
                hessian[a, b] = -shared
        hessian[a, a] += inverse
        if not bound:
            hessian[a, y] = -inverse
            hessian[y, a] = -inverse
            hessian[y, y] += inverse


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
def _dual_step(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < FLAT:
        _subgradient(loss, q, y, v, work)
    elif q.shape[0] == 2 and loss.k == 1:
        _step_of_two(loss, q, y, eta, v)
    else:
        _write(work, _solve(loss, q, y, eta, start, work), y, v)


@njit
def _gap_share(loss, s, y, cost, eta, start, v, g, work):
    """The example's share of the gap; its gradient is looked for near the last dual.

    If the scores were those of the last visit's end, x would be the gradient too: for entries
    between the bounds  1 + s_j - s_y = (eta + gamma) (x_j + theta) - eta (x_j - v_y).
    """
    if loss.gamma < FLAT or start[1] == 0.0:
        return gap_share(loss, s, y, cost, v, g, work)
    near = np.empty(2)
    near[0] = ((eta + loss.gamma) * start[0] + eta * np.float64(v[y])) / loss.gamma
    near[1] = start[1]
    return share_of_value(loss, _value_from(loss, s, y, near, g, work), s, y, cost, v)


@njit
def _ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """The exact visit; only listed classes and those with duals so far take part."""
    eta = cost * kappa
    if eta + loss.gamma < FLAT or s.shape[0] == 2:
        return ascend_exactly(loss, s, y, cost, kappa, start, stands_for, v, delta, work)
    share = 0.0
    if stands_for > 0:
        share = _gap_share(loss, s, y, cost, eta, start, v, delta, work) * stands_for
    e, c = s.dtype.type(eta), s.dtype.type(cost)
    for j in range(s.shape[0]):
        s[j] += e * v[j]
        delta[j] = v[j]
    _write(work, _solve(loss, s, y, eta, start, work), y, v)
    for j in range(s.shape[0]):
        delta[j] = c * (delta[j] - v[j])
    return share


@njit
def _violation_beta(loss, v, y):
    return simplex_violation(v, y, 0.0, 1.0 / loss.k)


@njit
def _violation_alpha(loss, v, y):
    return simplex_violation(v, y, 1.0 / loss.k, 0.0)


register(
    BetaHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation_beta,
        _dual_step,
        ascend=_ascend,
        curvature=_curvature_beta,
        domain=lambda spec: capped(spec.k, joint=False, linear=True),
    ),
)
register(
    AlphaHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation_alpha,
        _dual_step,
        ascend=_ascend,
        domain=lambda spec: capped(spec.k, joint=True, linear=True),
    ),
)
