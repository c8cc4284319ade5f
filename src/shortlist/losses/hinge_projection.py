"""The projection behind gradients and dual steps of the hinges, on the few classes that matter.

With b_j = (1 + f_j - f_y) / (eta + gamma) over j != y and rho = eta / (eta + gamma):

    minimise |x - b|^2 + rho s^2    over alpha's or beta's set (see ``losses.hinge``)

The solution is x_j = max(0, min(b_j - theta, cap)), so that only classes with b_j above theta take
part. A lower bound of theta, or the last theta, tells which to list.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.differences import close_at_label, largest_wrong
from shortlist.projections.selection import ENTRIES_OF_STRIDE, largest, stride_exceeds
from shortlist.projections.threshold import clip_into, solve_threshold
from shortlist.projections.topk import fill_capped, settle_cap, walk_cap

# Below this, eta + gamma cannot be divided by safely in single precision.
MIN_SCALE_TO_DIVIDE_BY = 1e-30


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
def is_joint(loss):
    """Whether the maximum with zero is taken after the mean: alpha, as against beta."""
    return _zero_after_mean if loss.instance_class is AlphaHinge else _zero_before_mean


# How far below the example's last theta to list classes, in units of the duals, which lie between
# 0 and 1. Where the new theta is lower still, the list is made again: the result is exact whatever
# this is.
_BELOW_LAST_THRESHOLD = 0.02
# A bound on theta is lowered by this share of the largest b_j, for rounding in single precision.
_ROUNDING_OF_BOUND = 1e-6


@njit
def _list_above(f, y, cut, places):
    """List the j != y with f_j > cut; returns how many."""
    kept = f[y]
    f[y] = -np.inf
    count = 0
    m = f.shape[0]
    whole = m - m % ENTRIES_OF_STRIDE
    for begin in range(0, whole, ENTRIES_OF_STRIDE):
        if stride_exceeds(f, begin, cut):
            # Written whether or not it counts: a branch would often be guessed wrong.
            for j in range(begin, begin + ENTRIES_OF_STRIDE):
                places[count] = j
                count += f[j] > cut
    for j in range(whole, m):
        places[count] = j
        count += f[j] > cut
    f[y] = kept
    return count


@njit
def _solve_listed_beta(loss, f, y, eta, start, work):
    scale = eta + loss.gamma
    least = _least_threshold(loss, f, y, scale)
    if least == np.inf:
        return 0
    # Where there is a last theta, the classes above it are nearly all that matter.
    guess = start[0] - _BELOW_LAST_THRESHOLD if start[1] != 0.0 else -np.inf
    while True:
        count, theta = _solve_above(loss, f, y, eta, scale, max(guess, least), start, work)
        if count > 0:
            if not theta < guess or guess <= least:
                break
            guess = theta - _BELOW_LAST_THRESHOLD
        else:
            # None is above the guess, or rounding has hidden one above the least threshold.
            least = least if guess > least else -np.inf
            guess = -np.inf
    start[0] = theta
    return count


@njit
def _solve_listed_alpha(loss, f, y, eta, start, work):
    """The k largest b_j lie above theta; if they are listed, they tell whether all x_j are zero.

    Where all were zero, ``start`` holds a zero, and in the place of theta about the k-th largest.
    """
    scale = eta + loss.gamma
    if start[1] == 0.0 and _none_enters(loss, f, y, scale, start[0]):
        return 0
    guess = start[0] - _BELOW_LAST_THRESHOLD
    kth_known = False
    while True:
        count, theta = _solve_above(loss, f, y, eta, scale, guess, start, work)
        if count >= loss.k:
            if start[1] == 0.0 or not theta < guess:
                break
            guess = theta - _BELOW_LAST_THRESHOLD
        else:
            # With huge scores the slack is lost to rounding.
            guess = (
                _kth_largest(loss, f, y, scale) - _BELOW_LAST_THRESHOLD
                if not kth_known
                else -np.inf
            )
            kth_known = True
    start[0] = theta
    return count if start[1] != 0.0 else 0


@overloaded
def solve_listed(loss, f, y, eta, start, work):
    """The projection of gradients and dual steps, on the few classes that can matter.

    x_j is positive only where b_j = (1 + f_j - f_y) / (eta + gamma) exceeds the threshold theta.
    These classes are listed in the first row of ``work`` (see :func:`listed_places`), their x_j in
    the second. Returns how many are listed. ``start`` holds the last theta and a number that is not
    zero if there is one: alpha's last cap.
    """
    return _solve_listed_beta if loss.instance_class is BetaHinge else _solve_listed_alpha


@overloaded(apart=True)
def solve_listed_apart(loss, f, y, eta, start, work):
    """:func:`solve_listed`, compiled apart: it would be half of each of many kernels of visits."""
    return _solve_listed_beta if loss.instance_class is BetaHinge else _solve_listed_alpha


@njit
def _none_enters(loss, f, y, scale, near):
    """Whether all x_j of alpha are zero, as far as one sweep can tell; b_j are about ``near``.

    They are if the k largest margins 1 + f_j - f_y add up to zero or less. For any cut they add
    up to at most  k cut + sum of max(0, margin - cut),  and to no less where k margins are above.
    """
    own = np.float64(f[y])
    cut = _cut_in_scores(f, own, scale, near)
    if not cut > -np.inf:
        return False
    f[y] = cut
    above = _sum_above(f, cut)
    f[y] = f.dtype.type(own)
    level = loss.k * (1.0 + (np.float64(cut) - own))
    # The sum is rounded.
    return above * (1.0 + f.shape[0] * np.finfo(f.dtype).eps) + level <= 0.0


@njit(sums=True)
def _sum_above(f, cut):
    total = f.dtype.type(0)
    for j in range(f.shape[0]):
        total += max(f[j] - cut, f.dtype.type(0))
    return np.float64(total)


@njit
def _solve_above(loss, f, y, eta, scale, guess, start, work):
    """List the classes with b_j above ``guess``, and solve the projection on them.

    Returns how many there are, and theta, which is exact if it is not below ``guess``. With fewer
    than k classes alpha is not solved.
    """
    places = listed_places(work)
    own = np.float64(f[y])
    count = _list_above(f, y, _cut_in_scores(f, own, scale, guess), places)
    if count < (loss.k if is_joint(loss) else 1):
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
def listed_places(work):
    """The first row of scratch as a list of whole numbers."""
    return work[0].view(np.int32)


@njit
def write_listed(work, count, y, v):
    """Fill v from the listed classes; returns s = -v_y, at most 1."""
    places, x = listed_places(work), work[1]
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
def _least_threshold(loss, f, y, scale):
    """A lower bound on beta's theta; infinite if all x_j are zero.

    theta is not negative. At k = 1 the largest x_j is at most 1, so that theta >= max b - 1.
    """
    top = (1.0 + (np.float64(largest_wrong(f, y)) - np.float64(f[y]))) / scale
    if not top > 0.0:
        return np.inf
    return max(top - 1.0 - _ROUNDING_OF_BOUND * abs(top), 0.0) if loss.k == 1 else 0.0


@njit
def _kth_largest(loss, f, y, scale):
    """The k-th largest b_j."""
    values = np.empty(loss.k, f.dtype)
    own = f[y]
    f[y] = -np.inf
    largest(f, loss.k, values, np.empty(loss.k, np.int32))
    f[y] = own
    return (1.0 + (np.float64(values[loss.k - 1]) - np.float64(own))) / scale


@njit
def solve_on_simplex(f, y, eta, gamma, start, work):
    """:func:`solve_listed` at k = 1, where the largest b_j bounds theta well enough."""
    scale = eta + gamma
    own = np.float64(f[y])
    top = largest_wrong(f, y)
    level = (1.0 + (np.float64(top) - own)) / scale
    if not level > 0.0:
        return 0
    places = listed_places(work)
    z = work[1]
    inverse = f.dtype.type(1.0 / scale)
    lowest = np.finfo(f.dtype).min
    least = max(level - 1.0 - _ROUNDING_OF_BOUND * abs(level), 0.0)
    # Where there is a last theta, the classes above it are nearly all that matter.
    guess = start[0] - _BELOW_LAST_THRESHOLD if start[1] != 0.0 else -np.inf
    while True:
        count = _list_above(f, y, _cut_in_scores(f, own, scale, max(guess, least)), places)
        for t in range(count):
            z[t] = max((f[places[t]] - top) * inverse, lowest)
        theta = _solve_few_simplex(z, count, level, eta / scale)
        if count > 0 and (theta >= guess or guess <= least):
            break
        # Some are below the guess, or rounding has hidden the largest.
        if guess <= least:
            least = -np.inf
        guess = theta - _BELOW_LAST_THRESHOLD if count > 0 else -np.inf
    start[0] = theta
    start[1] = 1.0
    return count


@njit
def _solve_few_simplex(z, count, top, rho):
    """Minimise |x - b|^2 + rho s^2 over x >= 0, s <= 1, b = z + top; replaces z by x.

    ``z`` has ``count`` entries.

    x_j = b_j - theta on the entries above theta. Newton's method from the left: the entries that
    are above the last theta give the next, until none falls away. Returns theta.
    """
    t = -np.inf  # theta - top
    inside = count + 1
    while True:
        total, above = _sum_of_larger(z, count, t)
        # Entries only leave the list, except by rounding.
        if above >= inside or above == 0:
            break
        inside = above
        # The sum is theta / rho or one, whichever is smaller.
        t = max((rho * total - top) / (rho * inside + 1.0), (total - 1.0) / inside)
    for j in range(count):
        z[j] = max(np.float64(z[j]) - t, 0.0)
    return top + t


@njit(sums=True)
def _sum_of_larger(z, count, t):
    """The sum of the entries above t, and how many there are."""
    total, above = 0.0, 0
    for j in range(count):
        larger = z[j] > t
        total += np.float64(z[j]) if larger else 0.0
        above += larger
    return total, above


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
        return _solve_few_simplex(z, z.shape[0], top, rho)
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
    else:
        z[:] = 0
    start[1] = c
    return top + ref + t


@overloaded(apart=True)
def _solve_few_jointly(loss, z, top, rho, start):
    return _solve_few_alpha


@overloaded
def _solve_few(loss, z, top, rho, start):
    """Replace z by x for b = z + top, the maximum of z being 0; returns theta.

    ``start`` holds theta and, for alpha, the cap of the last solution; zero if there is none. What
    is more than a few lines is compiled apart. That saves a fifth of the time to compile visits:
    there is a kernel for each way to keep examples and duals.
    """
    return _solve_few_beta if loss.instance_class is BetaHinge else _solve_few_jointly
