"""Cheap visits on the support: SDCA restricted to the entries of the duals that are not zero.

Hinge losses have sparse duals: most examples end with v_i = 0, the others involve their label and
a class or two. A visit that keeps the zero entries at zero is the dual step of the same loss on the
few classes left, and needs only their columns of W: |A| d operations instead of m d. Many such
epochs cost less than one full one, which then brings in whatever entries are missing.

W is held by classes here, shape (m, d + 1), so that a class's weights lie together.
"""

import numpy as np

from shortlist._jit import is_array, njit, overloaded
from shortlist.solvers.duals import gather, open_row, put
from shortlist.solvers.visit import visit_example

# Asking for an example's share of the gap costs more than its visit: a sample will do.
ASK_EVERY = 8


@njit
def support_rows(duals, cost, scratch):
    """Indices of the examples whose dual is not zero; ``scratch`` has room for one of them."""
    rows = np.empty(cost.shape[0], np.int64)
    count = 0
    for i in range(cost.shape[0]):
        if cost[i] == 0.0:
            continue
        v = open_row(duals, i, scratch)
        for j in range(v.shape[0]):
            if v[j] != 0:
                rows[count] = i
                count += 1
                break
    return rows[:count].copy()


@njit
def _place_label(classes, count, y):
    place = 0
    for a in range(count):
        if classes[a] == y:
            place = a
    return place, count - 1


@njit
def _place_labels(classes, count, y):
    right = 0
    places = np.full(y.shape[0], -1, np.int64)
    for a in range(count):
        if right < y.shape[0] and y[right] == classes[a]:  # both are sorted
            places[right] = a
            right += 1
    return places, count - right


@overloaded
def _place(classes, count, y):
    """The label's place among the classes listed, or the row of places of all right labels.

    Also returns how many of them are wrong.
    """
    return _place_labels if is_array(y) else _place_label


@njit(sums=True)
def _dot(a, b):
    total = a.dtype.type(0)
    for c in range(b.shape[0]):
        total += a[c] * b[c]
    return total


@njit(sums=True)
def _dot_sparse(a, values, columns):
    total = a.dtype.type(0)
    for t in range(values.shape[0]):
        total += values[t] * a[columns[t]]
    return total


@njit
def visit_support_dense(loss, x, order, w, bias, y, cost, kappa, duals, least):
    """Visit the examples ``order`` on their support, but those with fewer classes than ``least``.

    Returns an estimate of the sum of gap shares, the number of entries visited and how many
    examples changed; these are put first in ``order``.
    """
    m, d = w.shape[0], w.shape[1] - 1
    classes = np.empty(m, np.int64)
    slots = np.empty(m, np.int64)
    buffers = np.empty((3, m), w.dtype)
    scratch = np.empty(2 * m, w.dtype)
    start = np.zeros(2)
    constant = w.dtype.type(bias)
    total = 0.0
    entries = 0
    moved = 0
    for visit, i in enumerate(order):
        count = gather(duals, i, y[i], classes, slots, buffers[1])
        place, wrong = _place(classes, count, y[i])
        if wrong + 1 < least:
            continue
        s, v, delta = buffers[0, :count], buffers[1, :count], buffers[2, :count]
        row = x[i]
        for a in range(count):
            s[a] = _dot(w[classes[a]], row) + constant * w[classes[a], d]
        work = scratch[: 2 * count].reshape((2, count))
        measure = visit % ASK_EVERY == 0
        start[:] = 0.0
        total += visit_example(loss, s, place, cost[i], kappa[i], v, start, measure, delta, work)
        entries += count
        changed = False
        for a in range(count):
            change = delta[a]
            if change != 0:
                changed = True
                j = classes[a]
                put(duals, i, slots[a], v[a])
                for c in range(d):
                    w[j, c] += change * row[c]
                w[j, d] += change * constant
        if changed:
            order[moved] = i
            moved += 1
    return ASK_EVERY * total, entries, moved


@njit
def visit_support_sparse(
    loss, values, columns, pointers, order, w, bias, y, cost, kappa, duals, least
):
    """The same over CSR rows."""
    m, d = w.shape[0], w.shape[1] - 1
    classes = np.empty(m, np.int64)
    slots = np.empty(m, np.int64)
    buffers = np.empty((3, m), w.dtype)
    scratch = np.empty(2 * m, w.dtype)
    start = np.zeros(2)
    constant = w.dtype.type(bias)
    total = 0.0
    entries = 0
    moved = 0
    for visit, i in enumerate(order):
        count = gather(duals, i, y[i], classes, slots, buffers[1])
        place, wrong = _place(classes, count, y[i])
        if wrong + 1 < least:
            continue
        s, v, delta = buffers[0, :count], buffers[1, :count], buffers[2, :count]
        x = values[pointers[i] : pointers[i + 1]]
        where = columns[pointers[i] : pointers[i + 1]]
        for a in range(count):
            s[a] = _dot_sparse(w[classes[a]], x, where) + constant * w[classes[a], d]
        work = scratch[: 2 * count].reshape((2, count))
        measure = visit % ASK_EVERY == 0
        start[:] = 0.0
        total += visit_example(loss, s, place, cost[i], kappa[i], v, start, measure, delta, work)
        entries += count
        changed = False
        for a in range(count):
            change = delta[a]
            if change != 0:
                changed = True
                j = classes[a]
                put(duals, i, slots[a], v[a])
                for t in range(x.shape[0]):
                    w[j, where[t]] += change * x[t]
                w[j, d] += change * constant
        if changed:
            order[moved] = i
            moved += 1
    return ASK_EVERY * total, entries, moved
