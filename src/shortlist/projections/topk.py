"""Projections on the top-k simplex and the top-k cone, whose cap is a share of the sum.

    min  1/2 |x - b|^2 + rho/2 s^2    subject to  0 <= x_j <= s/k,  s = <1,x> <= radius

(the cone is radius = infinity). The solution is x_j = clip(b_j - theta, 0, c) with c = s/k.
For a given cap c the threshold theta(c) solves  sum_j clip(b_j - theta, 0, c) = k c. As c grows
from 0, theta falls and theta + c rises: entries enter at the bottom and leave the cap at the
top, each once. So the whole path is piecewise linear in c with at most k + m breaks, and the
derivative of the objective along it,

    -psi(c),   psi(c) = theta + p/k - rho k c,   p = sum_j max(0, b_j - theta - c),

changes sign once. The kernel walks the breaks from c = 0 until psi = 0 or k c = radius. Only the
entries above theta are ever sorted.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import njit
from shortlist._parameters import HINGE_VARIANTS, check_k
from shortlist.projections.checks import (
    check_nonnegative,
    check_positive,
    check_variant,
    each_row,
)
from shortlist.projections.selection import heapify, largest, pop_largest
from shortlist.projections.threshold import (
    clip_into,
    less,
    project_rows,
    shift_to_maximum,
    solve_threshold,
)


@njit
def walk_cap(z, top, k, radius, rho, heap):
    """Find (ref, t, c) for b = z + top, where z has maximum 0 (excluded entries: -inf).

    ref + t = theta - top, ref the k-th largest entry of z, which lies between theta and
    theta + c: relative to it all entries between the two keep their digits. ``heap`` is scratch
    of the size of z. At least k entries must be finite.
    """
    largest(z, k, heap, np.empty(k, np.int32))
    kth = heap[k - 1]
    ref = np.float64(kth)
    top = top + ref
    # c is at most radius/k. Entries further than that below the k-th largest entry cannot be
    # positive. Twice that distance leaves room for rounding.
    floor = z.dtype.type(-2.0 * radius / k)
    count = 0
    for j in range(z.shape[0]):
        x = z[j] - kth
        if x >= floor and x > -np.inf:
            heap[count] = x
            count += 1
    heapify(heap, count)
    capped_sum = 0.0
    for i in range(k):
        pop_largest(heap, count - i)
        capped_sum += np.float64(heap[count - 1 - i])
    if not top + capped_sum / k > 0.0:
        return ref, 0.0, 0.0

    most = radius / k
    popped = k
    if popped < count:
        pop_largest(heap, count - popped)
        popped += 1
        gap = np.float64(heap[count - k]) - np.float64(heap[count - 1 - k])
    else:
        gap = np.float64(np.inf)
    c = min((top + capped_sum / k) / (1.0 + rho * k), most)
    if c <= gap:
        # The k largest stand at the cap and nothing else is positive: any threshold between
        # the next entry and the cap's lower edge describes the same x, the middle most safely.
        return ref, -0.5 * (c + min(gap, 2.0 * most)), c

    u = k - 1  # entries at the cap: the u largest
    end = k + 1  # entries above zero: the `end` largest
    free_sum = np.float64(heap[count - k]) + np.float64(heap[count - 1 - k])
    capped_sum -= np.float64(heap[count - k])
    while True:
        free = end - u
        below = k - u
        stationary = (top + capped_sum / k + below * free_sum / (k * free)) / (
            below * below / (k * free) + u / k + rho * k
        )
        c = min(stationary, most)
        enters = np.inf
        if end < count:
            if popped == end:
                pop_largest(heap, count - popped)
                popped += 1
            enters = (free_sum - free * np.float64(heap[count - 1 - end])) / below
        leaves = np.inf
        if u > 0:
            leaves = (np.float64(heap[count - u]) * free - free_sum) / (end - k)
        if c <= min(enters, leaves):
            return ref, (free_sum - below * c) / free, c
        if enters <= leaves:
            free_sum += np.float64(heap[count - 1 - end])
            end += 1
        else:
            u -= 1
            capped_sum -= np.float64(heap[count - 1 - u])
            free_sum += np.float64(heap[count - 1 - u])


# Rounds of :func:`settle_cap` before it gives up. From the last visit's solution two or three are
# the rule.
_MAX_SETTLING_ROUNDS = 10
# Rounds in which entries above the cap are cut, at most: see :func:`fill_capped`.
_MAX_CUTS = 100


@njit
def settle_cap(z, top, k, radius, rho, theta, c):
    """What :func:`walk_cap` finds, from a guess of theta and c; (0, 0, 0) if the guess is too far.

    The guess tells which entries are at the cap and which lie between it and zero. For these the
    walk's equations give theta and c, and so on until the entries are the same twice: then theta
    and c lie on the path, where psi = 0 or k c = radius. Where the equations have no solution,
    theta alone moves to where the entries add up to k c. ref is the guess, so that entries near
    the threshold keep their digits.
    """
    most = radius / k
    ref = theta - top
    t = 0.0
    last_u, last_free = -1, -1
    for _ in range(_MAX_SETTLING_ROUNDS):
        u, free, capped_sum, free_sum = _sort_out(z, ref, t, c)
        # A threshold decides which entries these are: equal numbers of them are equal sets.
        if u == last_u and free == last_free:
            return ref, t, c
        last_u, last_free = -1, -1
        if u == k:
            low, high = _around_cap(z, ref, t, c)
            first = min((theta + capped_sum / k) / (1.0 + rho * k), most)
            if 0.0 < first <= low - high:  # as where the walk begins
                return ref, low - 0.5 * (first + min(low - high, 2.0 * most)), first
        if free == 0:
            break
        if u < k <= u + free:
            last_u, last_free = u, free
            below = k - u
            stationary = (theta + capped_sum / k + below * free_sum / (k * free)) / (
                below * below / (k * free) + u / k + rho * k
            )
            c = min(stationary, most)
            if not c > 0.0:
                break
            t = (free_sum - below * c) / free
        else:
            t = (free_sum - (k - u) * c) / free
    return 0.0, 0.0, 0.0


@njit(sums=True)
def _sort_out(z, ref, t, c):
    """How many entries of z - ref are at t + c or above, and between it and t; their sums."""
    u, free = np.int32(0), np.int32(0)
    capped_sum, free_sum = 0.0, 0.0
    for j in range(z.shape[0]):
        x = np.float64(z[j]) - ref
        capped = less(x, t, c) >= 0.0
        between = (x > t) & ~capped
        u += np.int32(capped)
        free += np.int32(between)
        capped_sum += x if capped else 0.0
        free_sum += x if between else 0.0
    return u, free, capped_sum, free_sum


@njit
def _around_cap(z, ref, t, c):
    """The smallest entry of z - ref at t + c or above, and the largest below."""
    low, high = np.inf, -np.inf
    for j in range(z.shape[0]):
        x = np.float64(z[j]) - ref
        if x - t >= c:
            low = min(low, x)
        else:
            high = max(high, x)
    return low, high


@njit
def fill_capped(z, ref, t, c, k, radius, x):
    """x = clip(z - ref - t, 0, c), made feasible to rounding; returns its sum."""
    total = clip_into(z, ref, t, c, radius, x)
    # Rounding can leave entries above s/k. Cutting them lowers s: repeat until it settles, which
    # takes one round unless entries are so large that their differences are mostly rounding.
    slack = 1.0 + 2.0 * np.finfo(z.dtype).eps
    for _ in range(_MAX_CUTS):
        cap = z.dtype.type(total / k)
        again = 0.0
        worst = z.dtype.type(0)
        for j in range(z.shape[0]):
            worst = max(worst, x[j])
            x[j] = min(x[j], cap)
            again += np.float64(x[j])
        total = again
        if worst <= slack * cap:
            break
    return total


@njit
def solve_printed(z, top, k, radius, rho, start, heap, x):
    """Write the solution over  0 <= x_j <= min(radius/k, s/(k-1)),  s <= radius,  for k >= 2.

    For b = z + top, where z has maximum 0 (excluded entries: -inf). Where s >= radius (k-1)/k the
    cap is radius/k, below it is s/(k-1): a part of the beta set of k, and the alpha set of k - 1
    with radius (k-1)/k. If the solution over the whole beta set lies in the first part, it is the
    solution here. Otherwise, since the objective is convex, that lies in the second. ``start``
    holds the last threshold. Returns the sum of x.
    """
    x[:] = 0
    if not top > 0.0:
        return 0.0
    ref, t = solve_threshold(z, top, radius / k, radius, rho, False, start[0])
    start[0] = ref + t
    s = clip_into(z, ref, t, radius / k, radius, x)
    edge = radius * (k - 1.0) / k
    if s >= edge:
        return s
    ref, t, c = walk_cap(z, top, k - 1, edge, rho, heap)
    if c > 0.0:
        return fill_capped(z, ref, t, c, k - 1, edge, x)
    x[:] = 0
    return 0.0


@njit
def _project_printed_rows(b, k, radius, rho, x):
    z = np.empty(b.shape[1], b.dtype)
    heap = np.empty(b.shape[1], b.dtype)
    for i in range(b.shape[0]):
        top = shift_to_maximum(b[i], z)
        solve_printed(z, top, k, radius, rho, np.zeros(2), heap, x[i])


@njit
def _project_topk_rows(b, k, radius, rho, x):
    m = b.shape[1]
    z = np.empty(m, b.dtype)
    heap = np.empty(m, b.dtype)
    for i in range(b.shape[0]):
        top = shift_to_maximum(b[i], z)
        # Without a bound the sum cannot exceed the sum of the positive entries.
        bound = radius
        if bound == np.inf:
            bound = 1e-300
            for j in range(m):
                bound += k * max(0.0, np.float64(b[i, j]))
        ref, t, c = walk_cap(z, top, k, bound, rho, heap)
        fill_capped(z, ref, t, c, k, bound, x[i])


def project_topk_simplex(
    a: ArrayLike, k: int, radius: float = 1.0, rho: float = 0.0, variant: str = "alpha"
) -> NDArray:
    """Solve  min |x - a|^2 + rho <1,x>^2  over the top-k simplex.

    ``variant="alpha"``:  0 <= x_j <= <1,x>/k,  <1,x> <= radius
    ``variant="beta"``:   0 <= x_j <= radius/k, <1,x> <= radius
    ``variant="printed"``:  0 <= x_j <= min(radius/k, <1,x>/(k-1)),  <1,x> <= radius

    ``a`` is a vector or a matrix of row vectors with at least k entries each.
    """
    variant = check_variant(variant, HINGE_VARIANTS)
    radius = check_positive("radius", radius)
    rho = check_nonnegative("rho", rho)
    k = check_k(k, np.shape(a)[-1] if np.ndim(a) else 1, "the number of entries")
    if k == 1 or variant == "beta":
        return each_row(a, lambda b, x: project_rows(b, radius / k, radius, rho, False, x))
    rows = _project_topk_rows if variant == "alpha" else _project_printed_rows
    return each_row(a, lambda b, x: rows(b, k, radius, rho, x))


def project_topk_cone(a: ArrayLike, k: int, rho: float = 0.0) -> NDArray:
    """Solve  min |x - a|^2 + rho <1,x>^2  subject to  0 <= x_j <= <1,x>/k.

    ``a`` is a vector or a matrix of row vectors with at least k entries each.
    """
    rho = check_nonnegative("rho", rho)
    k = check_k(k, np.shape(a)[-1] if np.ndim(a) else 1, "the number of entries")
    return each_row(a, lambda b, x: _project_topk_rows(b, k, np.inf, rho, x))
