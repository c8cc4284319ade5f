"""What the visits of a block change: delta_i of each example, and lists of what is not zero.

Most changes of the hinges are zero. Lists of the others spare most of the work that follows: an
example sees the changes of those before it, and W is changed by them all, class by class.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import njit
from shortlist.projections.selection import ENTRIES_OF_STRIDE, any_nonzero
from shortlist.solvers.kernels.rows import add_four, add_scaled, squared_norm

# Of m classes, one in so many may change for an example to be listed.
CLASSES_PER_ENTRY = 8


class Changes(NamedTuple):
    """Room for the changes of a block of B examples and m classes.

    Row b of ``deltas`` (B, m) is the change of example b. Entry e changes class ``classes[e]`` of
    example ``owners[e]`` by ``values[e]``. The first b examples own the entries below
    ``listed[b]``. ``full[b]`` of them have too many nonzeros; their numbers are
    ``numbers[:full[b]]``.
    """

    deltas: NDArray
    owners: NDArray
    classes: NDArray
    values: NDArray
    listed: NDArray
    full: NDArray
    numbers: NDArray


def room_for_changes(size: int, m: int, dtype: Any, listed: bool) -> Changes:
    """For a block of ``size`` examples; ``listed`` tells whether many changes will be zero."""
    # A stride is written before it is known how many of it count.
    entries = size * max(1, m // CLASSES_PER_ENTRY) + ENTRIES_OF_STRIDE if listed else 0
    return Changes(
        np.empty((size, m), dtype),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, dtype),
        np.zeros(size + 1, np.int64),
        np.zeros(size + 1, np.int64),
        np.empty(size, np.int64),
    )


@njit
def note_change(changes, b):
    """List the nonzeros of delta_b, if they are few; returns |delta_b|^2."""
    delta = changes.deltas[b]
    begin, full = changes.listed[b], changes.full[b]
    end = np.int64(-1)
    if changes.values.shape[0] > 0:
        end = _list_nonzeros(delta, b, changes.owners, changes.classes, changes.values, begin)
    if end < begin:
        changes.numbers[full] = b
        changes.listed[b + 1] = begin
        changes.full[b + 1] = full + 1
        return squared_norm(delta)
    changes.listed[b + 1] = end
    changes.full[b + 1] = full
    square = 0.0
    for e in range(begin, end):
        square += np.float64(changes.values[e]) * np.float64(changes.values[e])
    return square


@njit
def _list_nonzeros(delta, b, owners, classes, values, begin):
    """List where delta is not zero, from place ``begin`` on; returns the end, or -1 if too many."""
    m = delta.shape[0]
    most = begin + max(1, m // CLASSES_PER_ENTRY)
    end = begin
    first = 0
    while first < m:
        last = min(first + ENTRIES_OF_STRIDE, m)
        # A stride of zeros is passed over at once.
        if last - first < ENTRIES_OF_STRIDE or any_nonzero(delta, first):
            for j in range(first, last):
                owners[end] = b
                classes[end] = j
                values[end] = delta[j]
                end += delta[j] != 0
            if end > most:
                return np.int64(-1)
        first = last
    return end


@njit
def add_earlier(s, g, changes, begin, end):
    """s += sum over the block's examples c from ``begin`` to ``end`` of g[c] deltas[c]."""
    owners, classes, values = changes.owners, changes.classes, changes.values
    for e in range(changes.listed[begin], changes.listed[end]):
        s[classes[e]] += g[owners[e]] * values[e]
    numbers, deltas = changes.numbers, changes.deltas
    t, last = changes.full[begin], changes.full[end]
    while t + 3 < last:
        c0, c1, c2, c3 = numbers[t], numbers[t + 1], numbers[t + 2], numbers[t + 3]
        g0, g1, g2, g3 = g[c0], g[c1], g[c2], g[c3]
        add_four(g0, g1, g2, g3, deltas[c0], deltas[c1], deltas[c2], deltas[c3], s)
        t += 4
    while t < last:
        add_scaled(g[numbers[t]], deltas[numbers[t]], s)
        t += 1


@njit
def add_to_weights(changes, count, rows, first, last, w):
    """W += X_B' delta for the features ``first`` to ``last``; w by classes, all changes listed.

    ``rows`` are the features of the block's ``count`` examples. The changes of a class are added up
    before they are added to its weights, which are rounded once for the block, as by a product.
    """
    owners, classes, values = changes.owners, changes.classes, changes.values
    begin = np.full(w.shape[0], -1, np.int64)
    following = np.empty(changes.listed[count], np.int64)
    for e in range(following.shape[0] - 1, -1, -1):
        following[e] = begin[classes[e]]
        begin[classes[e]] = e
    total = np.empty(last - first, w.dtype)
    for j in range(w.shape[0]):
        e = begin[j]
        if e < 0:
            continue
        column = w[j, first:last]
        if following[e] < 0:
            add_scaled(values[e], rows[owners[e], first:last], column)
            continue
        total[:] = 0
        while e >= 0:
            add_scaled(values[e], rows[owners[e], first:last], total)
            e = following[e]
        add_scaled(w.dtype.type(1), total, column)
