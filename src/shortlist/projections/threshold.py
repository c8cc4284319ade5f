"""Projections that one scalar solves: the simplex, and the box with a bound on the sum.

The problem of every kernel here, with 0 <= rho and 0 < cap:

    min  1/2 |x - b|^2 + rho/2 <1,x>^2    subject to  0 <= x_j <= cap,  <1,x> <= radius

The solution is x_j = clip(b_j - theta, 0, cap), where theta >= 0 is the root of the decreasing
function  h(theta) - min(theta / rho, radius),  h(theta) = sum_j clip(b_j - theta, 0, cap).
It is piecewise linear, so Newton's method ends after a few sweeps, each of them SIMD.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import njit
from shortlist.projections.checks import check_nonnegative, check_positive, each_row

# Rounds of a search for a number, at most. Newton's steps converge in a few. After so many of them
# bisection takes over, which ends in less than a hundred.
MAX_TRIALS, MAX_NEWTON_TRIALS = 200, 30


@njit(inline=True)
def split(z, ref, t):
    """ref + t as the sum of two numbers in the precision of z."""
    first = z.dtype.type(ref + t)
    return first, z.dtype.type((ref - np.float64(first)) + t)


@njit(inline=True)
def less(z, first, second):
    """z - (first + second), without rounding in z - first where the two are close."""
    # Sweeps may reorder their sums, which would lose the small part to the large one; a kernel
    # of its own may not.
    return (z - first) - second


@njit(sums=True)
def clipped_sum(z, first, second, cap):
    """h(tau) at tau = first + second, and how many entries are strictly between 0 and the cap."""
    zero = z.dtype.type(0)
    c = z.dtype.type(cap)
    total = zero
    inside = np.int32(0)
    for j in range(z.shape[0]):
        d = less(z[j], first, second)
        total += min(max(d, zero), c)
        inside += np.int32(d > zero) & np.int32(d < c)
    return np.float64(total), inside


@njit
def _newton(z, ref, top, cap, radius, rho, equality, low, high, t):
    """The root tau = ref + t, with t between ``low`` and ``high``; returns t."""
    precision = 4.0 * np.finfo(z.dtype).eps
    for trial in range(MAX_TRIALS):
        first, second = split(z, ref, t)
        total, inside = clipped_sum(z, first, second, cap)
        slope = np.float64(inside)
        target = radius
        theta = t + (ref + top)
        if not equality and theta < rho * radius:
            target = theta / rho
            slope += 1.0 / rho
        excess = total - target
        if excess > 0.0:
            low = t
        elif excess < 0.0:
            high = t
        if abs(excess) <= precision * target:
            break
        new = t + excess / slope if slope > 0.0 else np.nan
        if not (low < new < high) or trial > MAX_NEWTON_TRIALS:
            new = low + 0.5 * (high - low)
            if new in (low, high):
                break
        t = new
    return t


@njit
def solve_threshold(z, top, cap, radius, rho, equality, start):
    """Find tau = theta - top for b = z + top, where z has maximum 0 (excluded entries: -inf).

    Shifting by the maximum keeps the digits of b - theta when b is huge. ``equality`` asks for
    <1,x> = radius instead (rho is then immaterial). ``start`` is a guess; any value will do.
    Returns (ref, t) with tau = ref + t: where tau is far below the maximum, ref is an entry
    close to it, for the same reason.
    """
    if equality:
        low = 0.0
        for j in range(z.shape[0]):
            if z[j] > -np.inf:
                low = min(low, np.float64(z[j]))
        low -= 2.0 * cap - 1e-12 * low  # at this point all entries are at the cap
    else:
        if not top > 0.0:
            return 0.0, 0.0
        low = -top  # theta >= 0
        if rho == 0.0:
            first, second = split(z, 0.0, low)
            if clipped_sum(z, first, second, cap)[0] <= radius:
                return 0.0, low  # the bound on the sum is slack
    tau = max(start if start < 0.0 else -radius, low)
    tau = _newton(z, 0.0, top, cap, radius, rho, equality, low, 0.0, tau)
    if tau > -8.0 * radius:
        return 0.0, tau
    ref = 0.0
    for j in range(z.shape[0]):
        x = np.float64(z[j])
        if abs(x - tau) < abs(ref - tau):
            ref = x
    return ref, _newton(z, ref, top, cap, radius, rho, equality, low - ref, -ref, tau - ref)


@njit
def shift_to_maximum(b, z):
    """z = b - max b; returns max b. All of b at -inf is returned as it is, with z = -inf."""
    top = b[0]
    for j in range(b.shape[0]):
        top = max(top, b[j])
    for j in range(b.shape[0]):
        z[j] = b[j] - top if top > -np.inf else b[j]
    return np.float64(top)


@njit(sums=True)
def clip_into(z, ref, t, cap, radius, x):
    """x = clip(z - ref - t, 0, cap), its sum at most ``radius`` even after rounding."""
    zero = z.dtype.type(0)
    first, second = split(z, ref, t)
    c = z.dtype.type(cap)
    total = 0.0
    for j in range(z.shape[0]):
        x[j] = min(max(less(z[j], first, second), zero), c)
        total += np.float64(x[j])
    if total > radius:
        factor = z.dtype.type(radius / total)
        for j in range(z.shape[0]):
            x[j] *= factor
        total = radius
    return total


@njit
def project_rows(b, cap, radius, rho, equality, x):
    z = np.empty(b.shape[1], b.dtype)
    for i in range(b.shape[0]):
        top = shift_to_maximum(b[i], z)
        if not equality and not top > 0.0:
            x[i, :] = 0
            continue
        ref, t = solve_threshold(z, top, cap, radius, rho, equality, 1.0)
        total = clip_into(z, ref, t, cap, radius, x[i])
        if equality and total > 0.0:
            factor = b.dtype.type(radius / total)
            for j in range(b.shape[1]):
                x[i, j] = min(x[i, j] * factor, b.dtype.type(cap))


def project_simplex(
    a: ArrayLike, radius: float = 1.0, *, rho: float = 0.0, equality: bool = True
) -> NDArray:
    """Solve  min |x - a|^2 + rho <1,x>^2  subject to  x >= 0, <1,x> = radius.

    With ``equality=False`` the constraint is <1,x> <= radius. ``a`` is a vector or a matrix of
    row vectors.
    """
    radius = check_positive("radius", radius)
    rho = check_nonnegative("rho", rho)
    return each_row(a, lambda b, x: project_rows(b, radius, radius, rho, bool(equality), x))


def project_knapsack(
    a: ArrayLike,
    radius: float = 1.0,
    upper: float = 1.0,
    *,
    rho: float = 0.0,
    equality: bool = False,
) -> NDArray:
    """Solve  min |x - a|^2 + rho <1,x>^2  subject to  0 <= x <= upper, <1,x> <= radius.

    With ``equality=True`` the constraint is <1,x> = radius, which needs
    ``radius <= upper * a.shape[-1]``. ``a`` is a vector or a matrix of row vectors.
    """
    radius = check_positive("radius", radius)
    upper = check_positive("upper", upper)
    rho = check_nonnegative("rho", rho)
    size = np.shape(a)[-1] if np.ndim(a) else 0
    if equality and radius > upper * size * (1 + 1e-12):
        raise ValueError(
            f"radius must be at most upper * {size} = {upper * size:g} for an equality "
            f"constraint; got {radius:g}"
        )
    return each_row(a, lambda b, x: project_rows(b, upper, radius, rho, bool(equality), x))
