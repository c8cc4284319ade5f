"""A joint step of all duals that visits on the support have changed, along their last changes.

Visits one by one converge slowly where examples are alike: they undo part of each other's changes,
round after round. The best combination of the last round's change and of the step before it, as in
the method of conjugate gradients, takes less than half of the rounds (digits with the rbf kernel,
C = 1 and 10). With inner products it costs little: the scores of a combination are the combination
of the scores, which are known.

Visits on the support leave zero entries at zero, so that only the others are listed, and those of
right labels: example i has the entries ``begin[i]`` to ``begin[i + 1]`` of ``classes``. The rows of
``past`` are, entry by entry: what duals and scores were at the last joint step, and how much they
had changed since the one before.
"""

import numpy as np

from shortlist._jit import njit
from shortlist.losses.kernels import conjugate, on_classes, violation
from shortlist.solvers.duals import is_right
from shortlist.solvers.kernels.rows import add_to_class
from shortlist.solvers.kernels.support import place_among

# A step that would take more than this share of the examples out of their domain is not taken: to
# leave one where it is costs as much as a visit.
MOST_OUTSIDE = 0.25
# Duals may miss their domain by rounding, and by no more than this: an ulp in single precision.
MOST_VIOLATION = 1.2e-7
# Two directions are parallel if less than this share of one is left without the other.
PARALLEL = 1e-9
# Steps that are tried, one after the other, until the objective rises.
LENGTHS = (1.0, 0.25)
# The rows of ``past``.
LAST_DUAL, LAST_SCORE, DUAL_STEP, SCORE_STEP = 0, 1, 2, 3


@njit
def list_entries(w, y, duals):
    """Returns ``begin``, ``classes`` and ``past``: there was no step so far."""
    n, m = duals.shape
    begin = np.zeros(n + 1, np.int64)
    for i in range(n):
        count = 0
        for j in range(m):
            count += duals[i, j] != 0 or is_right(y[i], j)
        begin[i + 1] = begin[i] + count
    classes = np.empty(begin[n], np.int64)
    past = np.zeros((4, begin[n]), duals.dtype)
    for i in range(n):
        e = begin[i]
        for j in range(m):
            if duals[i, j] != 0 or is_right(y[i], j):
                classes[e] = j
                past[LAST_DUAL, e], past[LAST_SCORE, e] = duals[i, j], w[j, i]
                e += 1
    return begin, classes, past


@njit
def joint_step(loss, linear, rows, w, y, cost, duals, begin, classes, past):
    """Maximise the dual objective over  v + t_1 (v - last v) + t_2 step,  and go there.

    Scores w (m, n) belong to the duals (n, m); those of entries that are not listed are not kept
    up to date. The conjugate of the loss is taken to be linear, or else quadratic, as those of
    hinges are. Examples whose dual would leave its domain stay where they are. Nothing changes
    unless the objective rises.

    Returns by how much it rises.
    """
    n = duals.shape[0]
    now = np.empty((2, classes.shape[0]), duals.dtype)
    change = np.empty_like(now)  # of duals and scores, since the last step
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            now[0, e], now[1, e] = duals[i, classes[e]], w[classes[e], i]
    for e in range(classes.shape[0]):
        change[0, e] = now[0, e] - past[LAST_DUAL, e]
        change[1, e] = now[1, e] - past[LAST_SCORE, e]
    t1, t2 = _best_combination(loss, linear, y, cost, begin, classes, now, change, past)
    rise = 0.0
    step = np.empty_like(now)  # where it leads to: duals, and by how much scores change
    for length in LENGTHS:
        a, b = step.dtype.type(length * t1), step.dtype.type(length * t2)
        if rise == 0.0 and (a != 0 or b != 0):
            for e in range(classes.shape[0]):
                step[0, e] = now[0, e] + (a * change[0, e] + b * past[DUAL_STEP, e])
                step[1, e] = a * change[1, e] + b * past[SCORE_STEP, e]
            rise = _go(loss, rows, w, y, cost, duals, begin, classes, now, step)
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            v, s = duals[i, classes[e]], w[classes[e], i]
            past[DUAL_STEP, e] = v - past[LAST_DUAL, e]
            past[SCORE_STEP, e] = s - past[LAST_SCORE, e]
            past[LAST_DUAL, e], past[LAST_SCORE, e] = v, s
    return rise


@njit
def _best_combination(loss, linear, y, cost, begin, classes, now, change, past):
    """t_1 and t_2; zeros if the objective does not bend along the first direction."""
    slope1, slope2 = 0.0, 0.0
    bend11, bend12, bend22 = 0.0, 0.0, 0.0
    buffers = np.empty((2, _most_entries(begin)), now.dtype)
    duals, first_step, second_step = now[0], change[0], past[DUAL_STEP]
    for i in range(cost.shape[0]):
        first, last = begin[i], begin[i + 1]
        moved = False
        for e in range(first, last):
            moved |= change[0, e] != 0 or past[DUAL_STEP, e] != 0
        if not moved:
            continue
        own = classes[first:last]
        place, _ = place_among(own, last - first, y[i])
        v, d1, d2 = duals[first:last], first_step[first:last], second_step[first:last]
        s, row = buffers[0, : last - first], buffers[1, : last - first]
        for a in range(last - first):
            s[a] = now[1, first + a]
        here = on_classes(loss, s, y[i], own)
        c = cost[i]
        for a in range(last - first):
            # W changes by -C_i x_i d', d the change of v_i.
            bend11 -= c * d1[a] * change[1, first + a]
            bend12 -= c * d1[a] * past[SCORE_STEP, first + a]
            bend22 -= c * d2[a] * past[SCORE_STEP, first + a]
            slope1 += c * d1[a] * s[a]
            slope2 += c * d2[a] * s[a]
        if linear:
            slope1 -= c * conjugate(here, d1, place)
            slope2 -= c * conjugate(here, d2, place)
            continue
        at = conjugate(here, v, place)
        ahead1 = _conjugate_at(here, v, d1, 1, d2, 0, place, row)
        behind1 = _conjugate_at(here, v, d1, -1, d2, 0, place, row)
        ahead2 = _conjugate_at(here, v, d1, 0, d2, 1, place, row)
        behind2 = _conjugate_at(here, v, d1, 0, d2, -1, place, row)
        both = _conjugate_at(here, v, d1, 1, d2, 1, place, row)
        slope1 -= 0.5 * c * (ahead1 - behind1)
        slope2 -= 0.5 * c * (ahead2 - behind2)
        bend11 += c * (ahead1 + behind1 - 2.0 * at)
        bend12 += c * (both - ahead1 - ahead2 + at)
        bend22 += c * (ahead2 + behind2 - 2.0 * at)
    if not bend11 > 0.0:
        return 0.0, 0.0
    t2 = 0.0
    rest = bend22 - bend12 * bend12 / bend11
    if rest > PARALLEL * bend22:
        t2 = (slope2 - slope1 * bend12 / bend11) / rest
    return (slope1 - bend12 * t2) / bend11, t2


@njit
def _conjugate_at(loss, v, d1, t1, d2, t2, y, row):
    """The conjugate's formula, also outside its domain."""
    for j in range(row.shape[0]):
        row[j] = v[j] + (t1 * d1[j] + t2 * d2[j])
    return conjugate(loss, row, y)


@njit
def _most_entries(begin):
    most = 0
    for i in range(begin.shape[0] - 1):
        most = max(most, begin[i + 1] - begin[i])
    return most


@njit
def _go(loss, rows, w, y, cost, duals, begin, classes, now, step):
    """Take the step, but for examples that would leave their domain; returns the rise.

    Duals and scores stay as they are if it is not positive.
    """
    n = cost.shape[0]
    outside = np.empty(n, np.int64)
    count = 0
    tolerance = min(4.0 * np.finfo(duals.dtype).eps * duals.shape[1], MOST_VIOLATION)
    s = np.empty(_most_entries(begin), now.dtype)
    old_duals, new_duals = now[0], step[0]
    rise = 0.0
    for i in range(n):
        first, last = begin[i], begin[i + 1]
        moved = False
        for e in range(first, last):
            moved |= step[0, e] != now[0, e]
        if not moved:
            continue
        own = classes[first:last]
        place, _ = place_among(own, last - first, y[i])
        v, new = old_duals[first:last], new_duals[first:last]
        scores = s[: last - first]
        for a in range(last - first):
            scores[a] = now[1, first + a]
        here = on_classes(loss, scores, y[i], own)
        if violation(here, new, place) > tolerance:
            outside[count] = i
            count += 1
            if count > MOST_OUTSIDE * n:
                return 0.0
            continue
        rise -= cost[i] * (conjugate(here, new, place) - conjugate(here, v, place))
        for a in range(last - first):
            rise += cost[i] * (new[a] - v[a]) * scores[a]
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            w[classes[e], i] += step[1, e]
    for i in outside[:count]:
        for e in range(begin[i], begin[i + 1]):
            back = step[0, e] - now[0, e]
            if back != 0:
                add_to_class(rows, i, w.dtype.type(cost[i]) * back, w, classes[e])
                step[0, e] = now[0, e]
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            # Half the change of W times itself: what the rise so far leaves out.
            moved_by = np.float64(w[classes[e], i]) - np.float64(now[1, e])
            rise += 0.5 * cost[i] * (step[0, e] - now[0, e]) * moved_by
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            if rise > 0.0:
                duals[i, classes[e]] = step[0, e]
            else:
                w[classes[e], i] = now[1, e]
    return max(rise, 0.0)
