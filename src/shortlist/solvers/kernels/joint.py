"""A joint step of all duals that visits on the support have changed, along their last changes.

Visits one by one converge slowly where examples are alike: they undo part of each other's changes,
round after round. The best combination of the last round's change and of the step before it, as in
the method of conjugate gradients, takes less than half of the rounds (digits with the rbf kernel,
C = 1 and 10; CLINC150's hinges at C = 100). It costs little: with inner products the scores of a
combination are the combination of the scores, which are known, and with features its weights are
the combination of the weights.

Visits on the support leave zero entries at zero, so that only the others are listed, and those of
right labels: the r-th example has the entries ``begin[r]`` to ``begin[r + 1]`` of ``classes``.

The rows of ``past`` tell of each entry at the last joint step:

    LAST_DUAL, LAST_SCORE   its dual and score
    DUAL_STEP, SCORE_STEP   their changes since the joint step before

``kernels.joint_features`` has the same step for weights instead of scores.
"""

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.kernels import conjugate, on_classes, violation
from shortlist.solvers.kernels.dual_rows import is_right
from shortlist.solvers.kernels.rows import add_to_class
from shortlist.solvers.kernels.support import place_among

# Take no step that moves more than this share of the examples out of their domain. To leave one of
# them where it is costs as much as a visit.
MAX_SHARE_OUTSIDE = 0.25
# Duals may miss their domain by rounding, and by no more than this: an ulp in single precision.
MAX_VIOLATION = 1.2e-7
# Two directions are parallel if less than this share of one is orthogonal to the other.
MIN_SHARE_APART = 1e-9
# Steps that are tried, one after the other, until the objective rises.
STEP_LENGTHS = (1.0, 0.25)
# A step must raise the objective by so many units in the last place of 1/2 |W|^2: less is rounding.
# Without this the hinge on CLINC150 at C = 100 (single precision) comes no closer than a gap of
# 5e-3. With inner products the rise is summed in double, and these are double's units. Without this
# the top-2 hinge on 40 examples comes no closer than 1e-8.
MIN_RISE_ULPS = 64.0
# The conjugate is computed at these multiples of both directions: they tell slopes and bends.
POINTS_OF_CONJUGATE = ((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 1.0))
LAST_DUAL, DUAL_STEP, LAST_SCORE, SCORE_STEP = 0, 1, 2, 3


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
    for length in STEP_LENGTHS:
        a, b = step.dtype.type(length * t1), step.dtype.type(length * t2)
        if rise == 0.0 and (a != 0 or b != 0):
            for e in range(classes.shape[0]):
                step[0, e] = now[0, e] + (a * change[0, e] + b * past[DUAL_STEP, e])
                step[1, e] = a * change[1, e] + b * past[SCORE_STEP, e]
            rise = _take_step(loss, rows, w, y, cost, duals, begin, classes, now, step)
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            v, s = duals[i, classes[e]], w[classes[e], i]
            past[DUAL_STEP, e] = v - past[LAST_DUAL, e]
            past[SCORE_STEP, e] = s - past[LAST_SCORE, e]
            past[LAST_DUAL, e], past[LAST_SCORE, e] = v, s
    return rise


@njit
def _best_combination(loss, linear, y, cost, begin, classes, now, change, past):
    """t_1 and t_2 from the scores; zeros if the objective does not bend along the first direction.

    W changes by -C_i x_i d', d the change of v_i.
    """
    terms = np.zeros(5)
    for i in range(cost.shape[0]):
        for e in range(begin[i], begin[i + 1]):
            d1, d2 = cost[i] * change[0, e], cost[i] * past[DUAL_STEP, e]
            terms[0] += d1 * now[1, e]
            terms[1] += d2 * now[1, e]
            terms[2] -= d1 * change[1, e]
            terms[3] -= d1 * past[SCORE_STEP, e]
            terms[4] -= d2 * past[SCORE_STEP, e]
    numbers = np.arange(cost.shape[0])
    add_conjugates(
        loss, linear, numbers, y, cost, begin, classes, now[0], change[0], past[DUAL_STEP], terms
    )
    return solve_for_two(terms)


@njit
def solve_for_two(terms):
    """Maximise  slope_1 t_1 + slope_2 t_2 - (bend_11 t_1^2 + 2 bend_12 t_1 t_2 + bend_22 t_2^2)/2.

    The terms are in this order. The second direction is left out if it is nearly the first.
    """
    slope1, slope2, bend11, bend12, bend22 = terms
    if not bend11 > 0.0:
        return 0.0, 0.0
    t2 = 0.0
    rest = bend22 - bend12 * bend12 / bend11
    if rest > MIN_SHARE_APART * bend22:
        t2 = (slope2 - slope1 * bend12 / bend11) / rest
    return (slope1 - bend12 * t2) / bend11, t2


@overloaded(apart=True)
def add_conjugates(loss, linear, numbers, y, cost, begin, classes, duals, change, step, terms):
    """Add what -sum_i C_i L* has to slopes and bends along both directions."""
    return _add_terms


@njit
def _add_terms(loss, linear, numbers, y, cost, begin, classes, duals, change, step, terms):
    buffers = np.zeros((2, _most_entries(begin)), duals.dtype)
    values = np.empty(len(POINTS_OF_CONJUGATE))
    for r in range(numbers.shape[0]):
        first, last = begin[r], begin[r + 1]
        v, d1, d2 = duals[first:last], change[first:last], step[first:last]
        moved = False
        for a in range(last - first):
            moved |= d1[a] != 0 or d2[a] != 0
        if not moved:
            continue
        i = numbers[r]
        c = cost[i]
        own = classes[first:last]
        place, _ = place_among(own, last - first, y[i])
        margins, row = buffers[0, : last - first], buffers[1, : last - first]
        for a in range(last - first):
            margins[a] = 0
        here = on_classes(loss, margins, y[i], own)
        for a in range(last - first):
            terms[0] += c * d1[a] * margins[a]
            terms[1] += c * d2[a] * margins[a]
        if linear:
            terms[0] -= c * conjugate(here, d1, place)
            terms[1] -= c * conjugate(here, d2, place)
            continue
        for p, (t1, t2) in enumerate(POINTS_OF_CONJUGATE):
            values[p] = _conjugate_at(here, v, d1, t1, d2, t2, place, row)
        at, ahead1, behind1, ahead2, behind2, both = values
        terms[0] -= 0.5 * c * (ahead1 - behind1)
        terms[1] -= 0.5 * c * (ahead2 - behind2)
        terms[2] += c * (ahead1 + behind1 - 2.0 * at)
        terms[3] += c * (both - ahead1 - ahead2 + at)
        terms[4] += c * (ahead2 + behind2 - 2.0 * at)


@njit
def _conjugate_at(loss, v, d1, t1, d2, t2, y, row):
    """The conjugate's formula, also outside its domain."""
    t1, t2 = row.dtype.type(t1), row.dtype.type(t2)
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
def too_many(outside, examples):
    """Whether too many of the examples would leave their domain for a step to be taken."""
    return outside > MAX_SHARE_OUTSIDE * examples


@overloaded(apart=True)
def rise_of_conjugates(loss, m, numbers, y, cost, begin, classes, duals, step, outside):
    """By how much -sum_i C_i L* rises from ``duals`` to ``step``, margins counted.

    Lists the examples that would leave their domain and do not take part. Also returns how many
    there are: too many if more than a share of all (see :func:`too_many`).
    """
    return _sum_rises


@njit
def _sum_rises(loss, m, numbers, y, cost, begin, classes, duals, step, outside):
    margins = np.zeros(_most_entries(begin), duals.dtype)
    tolerance = min(4.0 * np.finfo(duals.dtype).eps * m, MAX_VIOLATION)
    count = 0
    rise = 0.0
    for r in range(numbers.shape[0]):
        first, last = begin[r], begin[r + 1]
        v, new = duals[first:last], step[first:last]
        moved = False
        for a in range(last - first):
            moved |= new[a] != v[a]
        if not moved:
            continue
        i = numbers[r]
        own = classes[first:last]
        place, _ = place_among(own, last - first, y[i])
        offsets = margins[: last - first]
        for a in range(last - first):
            offsets[a] = 0
        here = on_classes(loss, offsets, y[i], own)
        if violation(here, new, place) > tolerance:
            outside[count] = r
            count += 1
            if too_many(count, numbers.shape[0]):
                break
            continue
        rise -= cost[i] * (conjugate(here, new, place) - conjugate(here, v, place))
        for a in range(last - first):
            rise += cost[i] * (new[a] - v[a]) * offsets[a]
    return rise, count


@njit
def _take_step(loss, rows, w, y, cost, duals, begin, classes, now, step):
    """Take the step, but for examples that would leave their domain; returns the rise.

    Duals and scores stay as they are if the rise is no more than rounding.
    """
    n = cost.shape[0]
    outside = np.empty(n, np.int64)
    rise, count = rise_of_conjugates(
        loss, w.shape[0], np.arange(n), y, cost, begin, classes, now[0], step[0], outside
    )
    if too_many(count, n):
        return 0.0
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            w[classes[e], i] += step[1, e]
    for i in outside[:count]:
        for e in range(begin[i], begin[i + 1]):
            back = step[0, e] - now[0, e]
            if back != 0:
                add_to_class(rows, i, w.dtype.type(cost[i]) * back, w, classes[e])
                step[0, e] = now[0, e]
    least = 0.0
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            # The mean of W before and after, times its change.
            mean = 0.5 * (np.float64(w[classes[e], i]) + np.float64(now[1, e]))
            rise += cost[i] * (step[0, e] - now[0, e]) * mean
            least += 0.5 * cost[i] * abs(np.float64(now[0, e]) * np.float64(now[1, e]))
    # In single precision scores round more than that. Larger least rises take more epochs there:
    # digits with the rbf kernel at C = 1 and a tolerance of 1e-5 26.5 instead of 16.7.
    least *= MIN_RISE_ULPS * np.finfo(np.float64).eps if w.itemsize == 8 else 0.0
    for i in range(n):
        for e in range(begin[i], begin[i + 1]):
            if rise > least:
                duals[i, classes[e]] = step[0, e]
            else:
                w[classes[e], i] = now[1, e]
    return rise if rise > least else 0.0
