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

With features there are only those of duals; ``last`` and ``step`` hold W and its change.
"""

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.kernels import conjugate, on_classes, violation
from shortlist.solvers.kernels.dual_rows import gather, is_right, put, taken_from
from shortlist.solvers.kernels.rows import add_to_class, squared_norm
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
    _add_conjugates(
        loss, linear, numbers, y, cost, begin, classes, now[0], change[0], past[DUAL_STEP], terms
    )
    return _solve_for_two(terms)


@njit
def _solve_for_two(terms):
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
def _add_conjugates(loss, linear, numbers, y, cost, begin, classes, duals, change, step, terms):
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


@overloaded(apart=True)
def _rise_of_conjugates(loss, m, numbers, y, cost, begin, classes, duals, step, outside):
    """By how much -sum_i C_i L* rises from ``duals`` to ``step``, margins counted.

    Lists the examples that would leave their domain and do not take part. Also returns how many
    there are: too many if more than a share of all.
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
            if count > MAX_SHARE_OUTSIDE * numbers.shape[0]:
                break
            continue
        rise -= cost[i] * (conjugate(here, new, place) - conjugate(here, v, place))
        for a in range(last - first):
            rise += cost[i] * (new[a] - v[a]) * offsets[a]
    return rise, count


@njit
def _go(loss, rows, w, y, cost, duals, begin, classes, now, step):
    """Take the step, but for examples that would leave their domain; returns the rise.

    Duals and scores stay as they are if it is rounding.
    """
    n = cost.shape[0]
    outside = np.empty(n, np.int64)
    rise, count = _rise_of_conjugates(
        loss, w.shape[0], np.arange(n), y, cost, begin, classes, now[0], step[0], outside
    )
    if count > MAX_SHARE_OUTSIDE * n:
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


@njit
def list_support(duals, numbers, y, v):
    """Returns ``begin``, ``classes``, where their duals are kept, and ``past``: no step so far.

    ``v`` has room for the duals of an example.
    """
    m = v.shape[0]
    count = numbers.shape[0]
    begin = np.zeros(count + 1, np.int64)
    own, places = np.empty(m, np.int64), np.empty(m, np.int64)
    for r in range(count):
        begin[r + 1] = begin[r] + gather(duals, numbers[r], y[numbers[r]], own, places, v)
    classes = np.empty(begin[count], np.int64)
    slots = np.empty(begin[count], np.int64)
    past = np.zeros((2, begin[count]), v.dtype)
    for r in range(count):
        found = gather(duals, numbers[r], y[numbers[r]], own, places, v)
        for a in range(found):
            e = begin[r] + a
            classes[e], slots[e], past[LAST_DUAL, e] = own[a], places[a], v[a]
    return begin, classes, slots, past


@njit
def joint_step_of_features(
    loss, linear, rows, numbers, w, last, step, y, cost, duals, begin, classes, slots, past
):
    """Maximise the dual objective over  v + t_1 (v - last v) + t_2 step,  and go there.

    As :func:`joint_step`, for weights by classes (m, d + 1) instead of scores. ``last`` and
    ``step`` are the weights at the last joint step, and by how much they had changed.

    Returns by how much the objective rises.
    """
    now = np.empty(classes.shape[0], past.dtype)
    change = np.empty_like(now)
    for r in range(numbers.shape[0]):
        for e in range(begin[r], begin[r + 1]):
            now[e] = taken_from(duals, numbers[r], slots[e])
            change[e] = now[e] - past[LAST_DUAL, e]
    terms = np.zeros(5)
    _add_norms(w, last, step, terms)
    _add_conjugates(
        loss, linear, numbers, y, cost, begin, classes, now, change, past[DUAL_STEP], terms
    )
    t1, t2 = _solve_for_two(terms)
    rise = 0.0
    before = 0.5 * _square(w)
    least = MIN_RISE_ULPS * np.finfo(w.dtype).eps * before
    target, moved = np.empty_like(now), np.empty_like(w)
    outside = np.empty(numbers.shape[0], np.int64)
    for length in STEP_LENGTHS:
        a, b = now.dtype.type(length * t1), now.dtype.type(length * t2)
        if a == 0 and b == 0:
            break
        for e in range(classes.shape[0]):
            target[e] = now[e] + (a * change[e] + b * past[DUAL_STEP, e])
        rise, count = _rise_of_conjugates(
            loss, w.shape[0], numbers, y, cost, begin, classes, now, target, outside
        )
        if count > MAX_SHARE_OUTSIDE * numbers.shape[0]:
            rise = 0.0
            continue
        _combine(w, last, step, a, b, moved)
        for r in outside[:count]:
            i = numbers[r]
            for e in range(begin[r], begin[r + 1]):
                if target[e] != now[e]:
                    delta = w.dtype.type(cost[i]) * (target[e] - now[e])
                    add_to_class(rows, i, delta, moved, classes[e])
                    target[e] = now[e]
        rise -= 0.5 * _square(moved) - before
        if rise > least:
            break
    if rise > least:
        for r in range(numbers.shape[0]):
            for e in range(begin[r], begin[r + 1]):
                if target[e] != now[e]:
                    put(duals, numbers[r], slots[e], target[e])
    else:
        for e in range(classes.shape[0]):
            target[e] = now[e]
        _combine(w, last, step, w.dtype.type(0), w.dtype.type(0), moved)
    _note_step(w, last, step, moved)
    for e in range(classes.shape[0]):
        past[DUAL_STEP, e] = target[e] - past[LAST_DUAL, e]
        past[LAST_DUAL, e] = target[e]
    return rise if rise > least else 0.0


@njit
def _add_norms(w, last, step, terms):
    """Add what -1/2 |W|^2 has to slopes and bends along W - last and step."""
    for c in range(w.shape[0]):
        _add_norms_of_class(w[c], last[c], step[c], terms)


@njit
def _add_norms_of_class(w, last, step, terms):
    slope1, slope2, bend11, bend12, bend22 = _inner_products(w, last, step)
    terms[0] -= slope1
    terms[1] -= slope2
    terms[2] += bend11
    terms[3] += bend12
    terms[4] += bend22


@njit(sums=True)
def _inner_products(w, last, step):
    """<w, d>, <w, step>, |d|^2, <d, step>, |step|^2, d = w - last."""
    a1, a2, a11, a12, a22 = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        x, b = np.float64(w[j]), np.float64(step[j])
        d = x - np.float64(last[j])
        a1 += x * d
        a2 += x * b
        a11 += d * d
        a12 += d * b
        a22 += b * b
    return a1, a2, a11, a12, a22


@njit
def _combine(w, last, step, a, b, out):
    """out = w + a (w - last) + b step."""
    for c in range(w.shape[0]):
        for j in range(w.shape[1]):
            out[c, j] = w[c, j] + (a * (w[c, j] - last[c, j]) + b * step[c, j])


@njit
def _note_step(w, last, step, moved):
    """The weights move: step = moved - last, last = w = moved."""
    for c in range(w.shape[0]):
        for j in range(w.shape[1]):
            step[c, j] = moved[c, j] - last[c, j]
            last[c, j] = moved[c, j]
            w[c, j] = moved[c, j]


@njit
def _square(w):
    total = 0.0
    for c in range(w.shape[0]):
        total += squared_norm(w[c])
    return total


@njit
def subtract_dual_changes(rows, numbers, cost, duals, begin, classes, slots, before, w):
    """W -= sum_i C_i x_i (v_i - before)' over the entries listed; w by classes, in double."""
    for r in range(numbers.shape[0]):
        i = numbers[r]
        for e in range(begin[r], begin[r + 1]):
            v = taken_from(duals, i, slots[e])
            if v != before[e]:
                change = cost[i] * (np.float64(before[e]) - np.float64(v))
                add_to_class(rows, i, change, w, classes[e])
