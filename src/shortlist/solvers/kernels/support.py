"""Cheap visits on the support: SDCA restricted to the entries of the duals that are not zero.

Hinge losses have sparse duals: most examples end with v_i = 0, the others involve their label and
a class or two. A visit that keeps the zero entries at zero is the dual step of the same loss on the
few classes left, and needs only their columns of W: |A| d operations instead of m d. Many such
epochs cost less than one full one, which then brings in whatever entries are missing.

W is held by classes here, shape (m, d + 1), so that a class's weights lie together.
"""

import numpy as np

from shortlist._jit import is_array, njit, overloaded
from shortlist._native import borrowed, keep, meet
from shortlist.losses.kernels import ascend, on_classes
from shortlist.solvers.kernels.dual_rows import fetch_place, fetch_row, gather, open_row, put
from shortlist.solvers.kernels.rows import (
    add_to_class,
    class_score,
    fetch_features,
    squared_norm,
)
from shortlist.solvers.kernels.visit import ROWS_AHEAD, rounding_of_visit

# The share of the gap is measured at one visit in so many: measuring costs more than a visit.
MEASURE_EVERY = 8


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
def place_among(classes, count, y):
    """The label's place among the classes listed, or the row of places of all right labels.

    Also returns how many of them are wrong.
    """
    return _place_labels if is_array(y) else _place_label


@njit
def visit_support(
    loss,
    blas,
    rows,
    order,
    bounds,
    w,
    y,
    cost,
    kappa,
    duals,
    fewest,
    least_change,
    signals,
    threads,
    thread,
    found,
):
    """Visit examples on their support, but those with fewer than ``fewest`` classes.

    List number p is ``order[bounds[p]:bounds[p + 1]]``. Lists 0 and 1 share no class, and neither
    do 2 and 3, and so on. Two threads visit such a pair at the same time, and meet after it; the
    last list, which has no other, is the first thread's. This is the part of number ``thread`` of
    ``threads``, one or two.

    A visit that changes W by less than ``least_change``, the squared length of x_i delta', is left
    for later: the dual objective gains half of that length, or more where a bound stops the step.

    Row p of ``found`` takes what was found in a list: an estimate of the sum of gap shares, the sum
    of rounding shares, the number of entries visited, how many examples change, also of those left
    for later, and the sum of their squared changes. These examples are put first in their list.
    """
    last = bounds.shape[0] - 2
    for p in range(last + 1):
        if threads == 1 or p % 2 == thread:
            here = order[bounds[p] : bounds[p + 1]]
            _visit_list(loss, rows, here, w, y, cost, kappa, duals, fewest, least_change, found[p])
        if threads > 1 and p < last and p % 2 == 1:
            meet(blas, signals, thread, threads, p)


@njit
def _visit_list(loss, rows, order, w, y, cost, kappa, duals, fewest, least_change, found):
    m = w.shape[0]
    rows, w, duals = borrowed(rows), borrowed(w), borrowed(duals)
    classes = np.empty(m, np.int64)
    slots = np.empty(m, np.int64)
    room = np.empty((5, m), w.dtype)
    buffers, scratch = borrowed(room[:3]), borrowed(room[3:]).reshape(2 * m)
    start = np.zeros(2)
    gap = 0.0
    rounding = 0.0
    entries = 0
    moved = 0
    changes = 0.0
    for visit, i in enumerate(order):
        if visit + 2 * ROWS_AHEAD < order.shape[0]:
            fetch_place(duals, order[visit + 2 * ROWS_AHEAD])
            following = order[visit + ROWS_AHEAD]
            fetch_row(duals, following)
            fetch_features(rows, following)
        count = gather(duals, i, y[i], classes, slots, buffers[1])
        place, wrong = place_among(classes, count, y[i])
        if wrong + 1 < fewest:
            continue
        s, v, delta = buffers[0, :count], buffers[1, :count], buffers[2, :count]
        for a in range(count):
            s[a] = class_score(rows, i, w, classes[a])
        work = scratch[: 2 * count].reshape((2, count))
        stands_for = MEASURE_EVERY if visit % MEASURE_EVERY == 0 else 0
        start[0] = start[1] = 0.0
        here = on_classes(loss, s, y[i], classes)
        gap += ascend(here, s, place, cost[i], kappa[i], start, stands_for, v, delta, work)
        entries += count
        change = kappa[i] * squared_norm(delta)
        if change == 0.0:
            continue
        order[moved] = i
        moved += 1
        changes += change
        if change < least_change:
            continue
        for a in range(count):
            if delta[a] != 0:
                put(duals, i, slots[a], v[a])
                add_to_class(rows, i, delta[a], w, classes[a])
        rounding += rounding_of_visit(cost[i], kappa[i], squared_norm(delta), 1.0)
    keep(room)
    found[0], found[1], found[2], found[3], found[4] = gap, rounding, entries, moved, changes
