"""Projections on the sets whose largest entries are bounded rank by rank.

With weights w_1 >= w_2 >= ... >= 0, W_r the sum of the first r and W that of all,

    min  1/2 |x - b|^2 + rho/2 s^2,   s = <1,x>,  x >= 0,  subject to, for every r,
    beta:   the r largest entries of x sum to at most W_r
    alpha:  they sum to at most s W_r / W, and s <= W

With k weights 1/k these are the top-k simplices. The slice of the alpha set at s = t W holds the
vectors that t w majorises. The point of it nearest to b, b in descending order, is b - y(t), where
y(t) is the nonincreasing sequence closest to b - t w: entries that are out of order are pooled and
replaced by their mean. A pool's shares sum to t times its weights.

alpha: the derivative of the objective in t is rho W^2 t - sum over pools of W_B (b_B - t W_B/n_B),
W_B a pool's weight, n_B its size and b_B its mean of b. As t grows pools only merge, which lowers
the slope: the derivative is concave, and Newton's method from t = 1 ends after a few rounds.

beta: rho s is a shift theta of b, which leaves the pools of y(1) as they are. So
x_j = clip(b_j - theta, 0, b_j - y_j(1)), and theta is the root of the decreasing piecewise linear
function sum_j x_j - theta / rho. Walking down from the largest entry, entries become positive one
by one and pools reach their caps one by one.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import njit
from shortlist.projections.checks import (
    check_nonnegative,
    check_rank_weights,
    check_variant,
    each_row,
)
from shortlist.projections.selection import heapify, pop_largest
from shortlist.projections.threshold import MAX_TRIALS, shift_to_maximum


@njit
def _mean(pools, i, t):
    """The mean of b - t w over a pool, less the pool's first entry of b."""
    return (pools[2, i] - t * pools[3, i]) / pools[1, i]


@njit
def _append(pools, count, entry, weight, t):
    """Add an entry, the next in descending order, and pool what is out of order.

    Columns of ``pools``: a pool's first entry, its size, the sum of its entries less the first,
    and its weight. Returns the number of pools.
    """
    pools[0, count] = entry
    pools[1, count] = 1.0
    pools[2, count] = 0.0
    pools[3, count] = weight
    while count > 0:
        drop = pools[0, count] - pools[0, count - 1]
        if drop + (_mean(pools, count, t) - _mean(pools, count - 1, t)) < 0.0:
            break
        pools[2, count - 1] += pools[2, count] + pools[1, count] * drop
        pools[1, count - 1] += pools[1, count]
        pools[3, count - 1] += pools[3, count]
        count -= 1
    return count + 1


@njit
def _pool_heads(z, weights, floor, heap, heads, pools):
    """Sort and pool at t = 1 the entries above ``floor``, as far as they can have a share.

    Behind the last weight an entry below the last pool's mean starts a pool without weight, and
    so do all that follow. Returns how many entries were sorted and how many pools there are.
    """
    left = 0
    for j in range(z.shape[0]):
        if z[j] > floor:
            heap[left] = z[j]
            left += 1
    heapify(heap, left)
    n_heads = 0
    n_pools = 0
    while left > 0:
        entry = np.float64(heap[0])
        last = n_pools - 1
        if n_heads >= weights.shape[0] and entry - pools[0, last] <= _mean(pools, last, 1.0):
            break
        pop_largest(heap, left)
        left -= 1
        weight = weights[n_heads] if n_heads < weights.shape[0] else 0.0
        heads[n_heads] = entry
        n_heads += 1
        n_pools = _append(pools, n_pools, entry, weight, 1.0)
    return n_heads, n_pools


@njit
def _share_of_slice(heads, n_heads, n_pools, weights, top, rho, pools):
    """The t of the alpha solution for b = z + top; leaves the pools of this t, and their number."""
    t = 1.0
    total = weights.sum()
    for _ in range(MAX_TRIALS):
        pull = 0.0
        slope = rho * total * total
        for i in range(n_pools):
            pull += pools[3, i] * (top + pools[0, i] + pools[2, i] / pools[1, i])
            slope += pools[3, i] * pools[3, i] / pools[1, i]
        new = min(max(pull / slope, 0.0), 1.0)
        # From the second round on t only grows, but for rounding.
        if new == t or (new < t < 1.0):
            break
        t = new
        n_pools = 0
        for i in range(n_heads):
            weight = weights[i] if i < weights.shape[0] else 0.0
            n_pools = _append(pools, n_pools, heads[i], weight, t)
    return t, n_pools


@njit
def _threshold(heads, n_heads, n_pools, top, rho, pools):
    """(ref, t) with ref + t = theta - top of the beta solution for b = z + top."""
    if rho == 0.0:
        return 0.0, -top
    capped = 0  # entries at their caps, which are those of the first pools
    full_pools = 0
    weight = 0.0  # of these pools
    entered = 0  # entries above theta
    free_sum = 0.0
    while True:
        tau = (rho * (weight + free_sum) - top) / (1.0 + rho * (entered - capped))
        enters = heads[entered] if entered < n_heads else -np.inf
        fills = -np.inf
        if full_pools < n_pools:
            fills = pools[0, full_pools] + _mean(pools, full_pools, 1.0)
        if tau >= max(enters, fills):
            break
        if enters >= fills:
            free_sum += heads[entered]
            entered += 1
        else:
            size = int(pools[1, full_pools])
            free_sum -= size * pools[0, full_pools] + pools[2, full_pools]
            weight += pools[3, full_pools]
            capped += size
            full_pools += 1
    if entered == capped:
        return 0.0, tau
    # Compute them again, relative to an entry close to theta: so they keep their digits.
    ref = heads[capped]
    free_sum = 0.0
    for i in range(capped, entered):
        free_sum += heads[i] - ref
    t = (rho * (weight + free_sum) - (ref + top)) / (1.0 + rho * (entered - capped))
    return ref, t


@njit
def _pool_of(pools, n_pools, entry):
    """The last pool whose first entry is at least this one."""
    low, high = 0, n_pools
    while high - low > 1:
        middle = (low + high) // 2
        if pools[0, middle] >= entry:
            low = middle
        else:
            high = middle
    return low


@njit
def solve_ordered(z, top, weights, joint, rho, heap, x):
    """Write the solution for b = z + top, where z has maximum 0 (excluded entries: -inf).

    ``joint``: over the alpha set, which needs as many finite entries as weights. ``heap`` is
    scratch of the size of z. Returns the sum of x.
    """
    x[:] = 0
    # A share of the beta set is positive only where b is.
    floor = -np.inf if joint else max(-top, np.finfo(z.dtype).min)
    heads = np.empty(z.shape[0])
    pools = np.empty((4, z.shape[0]))
    n_heads, n_pools = _pool_heads(z, weights, z.dtype.type(floor), heap, heads, pools)
    if n_heads == 0:
        return 0.0
    if joint:
        share, n_pools = _share_of_slice(heads, n_heads, n_pools, weights, top, rho, pools)
        if not share > 0.0:
            return 0.0
        ref, t = 0.0, -np.inf
    else:
        share = 1.0
        ref, t = _threshold(heads, n_heads, n_pools, top, rho, pools)
    lowest = heads[n_heads - 1]
    total = 0.0
    for j in range(z.shape[0]):
        entry = np.float64(z[j])
        if entry >= lowest and entry - ref > t:
            i = _pool_of(pools, n_pools, entry)
            cap = (entry - pools[0, i]) - _mean(pools, i, share)
            x[j] = x.dtype.type(max(min(cap, (entry - ref) - t), 0.0))
            total += np.float64(x[j])
    return total


@njit
def ordered_violation(x, weights, joint):
    """By how much x >= 0 misses the set."""
    count = x.shape[0]
    heap = x.copy()
    heapify(heap, count)
    s = 0.0
    for j in range(count):
        s += np.float64(x[j])
    total = weights.sum()
    share = s / total if joint else 1.0
    worst = s - total
    head = 0.0
    bound = 0.0
    for r in range(count):
        pop_largest(heap, count - r)
        head += np.float64(heap[count - 1 - r])
        bound += weights[r] if r < weights.shape[0] else 0.0
        worst = max(worst, head - share * bound)
    return worst


@njit
def _project_rows(b, weights, joint, rho, x):
    z = np.empty(b.shape[1], b.dtype)
    heap = np.empty(b.shape[1], b.dtype)
    for i in range(b.shape[0]):
        top = shift_to_maximum(b[i], z)
        solve_ordered(z, top, weights, joint, rho, heap, x[i])


def project_ordered_simplex(
    a: ArrayLike, weights: ArrayLike, rho: float = 0.0, variant: str = "alpha"
) -> NDArray:
    """Solve  min |x - a|^2 + rho <1,x>^2  over the x >= 0 with, for every r,

    ``variant="alpha"``:  the r largest entries sum to at most <1,x> W_r / W, and <1,x> <= W
    ``variant="beta"``:   the r largest entries sum to at most W_r

    W_r is the sum of the first r ``weights``, which do not increase, and W that of all. ``a`` is a
    vector or a matrix of row vectors with at least as many entries as there are weights.
    """
    joint = check_variant(variant) == "alpha"
    rho = check_nonnegative("rho", rho)
    size = np.shape(a)[-1] if np.ndim(a) else 1
    ranks = check_rank_weights("weights", weights, size)
    return each_row(a, lambda b, x: _project_rows(b, ranks, joint, rho, x))
