"""Kernels shared by the losses of the differences u_j = f_j - f_y over the wrong labels j != y.

Their conjugates are finite only where v_y = -s, s the sum of the other entries x of v.
"""

import numpy as np

from shortlist._jit import njit


@njit(maxima=True)
def largest_wrong(f, y):
    """max of f_j over j != y."""
    top = f.dtype.type(-np.inf)
    for j in range(y):
        top = max(top, f[j])
    for j in range(y + 1, f.shape[0]):
        top = max(top, f[j])
    return top


@njit
def shifted_differences(f, y, scale, z):
    """z_j = (f_j - max) / scale over j != y with the maximum over j != y; z_y = -inf.

    Returns (max - f_y) / scale, so that z plus it is u / scale, without losing the digits
    that tell large scores apart. No other z_j is infinite: what the precision cannot hold
    becomes its lowest number.
    """
    top = largest_wrong(f, y)
    inverse = f.dtype.type(1.0 / scale)
    lowest = np.finfo(f.dtype).min
    for j in range(f.shape[0]):
        z[j] = max((f[j] - top) * inverse, lowest)
    z[y] = -np.inf
    return (np.float64(top) - np.float64(f[y])) / scale


@njit
def close_at_label(v, y, s):
    """Put v_y = -s."""
    v[y] = v.dtype.type(-s)


@njit(sums=True)
def sum_of_wrong(v, y):
    s = 0.0
    for j in range(y):
        s += np.float64(v[j])
    for j in range(y + 1, v.shape[0]):
        s += np.float64(v[j])
    return s


@njit
def simplex_violation(v, y, share_of_sum, cap):
    """By how much v misses 0 <= x_j <= max(share_of_sum * s, cap), s <= 1, v_y = -s."""
    s = sum_of_wrong(v, y)
    if not abs(s) < np.inf:
        return np.inf
    most = share_of_sum * s if share_of_sum > 0.0 else cap
    worst = max(s - 1.0, abs(np.float64(v[y]) + s))
    for j in range(v.shape[0]):
        if j != y:
            x = np.float64(v[j])
            worst = max(worst, max(-x, x - most))
            if x != x:
                return np.inf
    return worst
