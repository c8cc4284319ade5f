"""Several right labels for one example: how kernels hold them, and what their losses share.

The labels of n examples are an int64 array (n, p_max), each row sorted and filled up with -1. The
kernels of the losses for several labels take such a row in place of one label, with at least one
right label and at least k wrong ones in it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shortlist._jit import njit


def check_indicator(indicator: Any) -> None:
    """Raise unless an array, or a sparse matrix, holds only zeros and ones."""
    values = indicator.data if sparse.issparse(indicator) else indicator
    if values.dtype.kind not in "biuf":
        raise TypeError(f"an indicator of labels holds 0 and 1; got dtype {values.dtype}")
    if not ((values == 0) | (values == 1)).all():
        raise ValueError(
            f"an indicator of labels holds 0 and 1 only; got values from {values.min()} to "
            f"{values.max()}"
        )


def label_rows(indicator: Any) -> NDArray:
    """The rows above from an indicator matrix of zeros and ones, dense or sparse."""
    if sparse.issparse(indicator):
        entries = indicator.tocoo()
        there = entries.data != 0
        rows, labels = entries.coords[0][there], entries.coords[1][there]
        order = np.lexsort((labels, rows))
        rows, labels = rows[order], labels[order]
    else:
        rows, labels = np.nonzero(indicator)
    counts = np.bincount(rows, minlength=indicator.shape[0])
    out = np.full((indicator.shape[0], max(1, counts.max(initial=0))), -1, np.int64)
    first = np.cumsum(counts) - counts
    out[rows, np.arange(rows.size) - first[rows]] = labels
    return out


@njit
def right_labels(y):
    """A row without what fills it up."""
    p = 0
    while p < y.shape[0] and y[p] >= 0:
        p += 1
    return y[:p]


@njit(maxima=True)
def _maximum(z):
    top = z[0]
    for j in range(z.shape[0]):
        top = max(top, z[j])
    return top


@njit
def shift_wrong(f, labels, scale, z):
    """z_j = (f_j - max) / scale over the wrong labels with their maximum; -inf at the right ones.

    Returns the maximum. As in :mod:`shortlist.losses.differences`, no other z_j is infinite.
    """
    for j in range(f.shape[0]):
        z[j] = f[j]
    for y in labels:
        z[y] = -np.inf
    top = _maximum(z)
    inverse = f.dtype.type(1.0 / scale)
    lowest = np.finfo(f.dtype).min
    for j in range(f.shape[0]):
        z[j] = max((z[j] - top) * inverse, lowest)
    for y in labels:
        z[y] = -np.inf
    return np.float64(top)


@njit(sums=True)
def total(v):
    """The sum of all entries, in double."""
    s = 0.0
    for j in range(v.shape[0]):
        s += np.float64(v[j])
    return s


@njit
def sum_of_right(v, labels):
    s = 0.0
    for y in labels:
        s += np.float64(v[y])
    return s


@njit
def wrong_range(v, labels):
    """The smallest and the largest entry among the wrong labels; (-inf, inf) if one is NaN."""
    low, high = np.inf, -np.inf
    place = 0
    for j in range(v.shape[0]):
        if place < labels.shape[0] and labels[place] == j:
            place += 1
            continue
        x = np.float64(v[j])
        if x != x:
            return -np.inf, np.inf
        low, high = min(low, x), max(high, x)
    return low, high
