"""Joint steps (see ``kernels.joint``) of examples with explicit features, shared by threads.

Weights lie by classes, shape (m, d + 1).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import njit
from shortlist._native import meet
from shortlist.solvers.kernels.dual_rows import gather, put, taken_from
from shortlist.solvers.kernels.joint import (
    DUAL_STEP,
    LAST_DUAL,
    MIN_RISE_ULPS,
    STEP_LENGTHS,
    add_conjugates,
    rise_of_conjugates,
    solve_for_two,
    too_many,
)
from shortlist.solvers.kernels.rows import add_to_class, squared_norm


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


class JointStep(NamedTuple):
    """What the threads that share a joint step hand over, or keep for the next step.

    Entry by entry: the rows of ``past`` (see ``kernels.joint``), the duals ``now``, their
    ``change`` since the last step and the ``target`` of this one. Weights by classes: those of the
    ``last`` step, the ``step`` to them, and those ``moved`` by this one. ``outside`` lists examples
    that stay. ``terms`` has a row a thread; ``answer`` is what the first of them decides.
    """

    past: NDArray
    now: NDArray
    change: NDArray
    target: NDArray
    last: NDArray
    step: NDArray
    moved: NDArray
    outside: NDArray
    terms: NDArray
    answer: NDArray


# What a row of ``terms`` holds: two slopes and three bends, or how many examples are outside their
# domain and by how much the part of the conjugates rises.
COUNT, RISE = 0, 1


@njit
def joint_step_of_features(
    loss,
    linear,
    blas,
    rows,
    numbers,
    w,
    y,
    cost,
    duals,
    begin,
    classes,
    slots,
    joint,
    by_example,
    by_class,
    signals,
    thread,
):
    """Maximise the dual objective over  v + t_1 (v - last v) + t_2 step,  and go there.

    As ``joint.joint_step``, for weights by classes (m, d + 1) instead of scores. Thread t has the
    examples ``by_example[t]`` to ``by_example[t + 1]`` and the classes from ``by_class[t]`` on.

    Returns by how much the objective rises.
    """
    threads = by_example.shape[0] - 1
    first, end = by_example[thread], by_example[thread + 1]
    own, here = numbers[first:end], begin[first : end + 1]
    some = slice(by_class[thread], by_class[thread + 1])
    weights, last, step = w[some], joint.last[some], joint.step[some]
    moved = joint.moved[some]
    terms = joint.terms[thread]
    terms[:] = 0.0
    _add_directions(
        loss, linear, own, here, weights, last, step, y, cost, duals, classes, slots, joint, terms
    )
    meet(blas, signals, thread, threads, 1)
    t1, t2 = solve_for_two(_sum_of_rows(joint.terms))
    rise = 0.0
    least = 0.0
    turn = 2
    for length in STEP_LENGTHS:
        if t1 == 0.0 and t2 == 0.0:
            break
        # All have read the terms.
        meet(blas, signals, thread, threads, turn)
        a, b = joint.now.dtype.type(length * t1), joint.now.dtype.type(length * t2)
        for e in range(here[0], here[own.shape[0]]):
            joint.target[e] = joint.now[e] + (a * joint.change[e] + b * joint.past[DUAL_STEP, e])
        _combine(weights, last, step, a, b, moved)
        outside = joint.outside[first:end]
        terms[RISE], terms[COUNT] = rise_of_conjugates(
            loss, w.shape[0], own, y, cost, here, classes, joint.now, joint.target, outside
        )
        meet(blas, signals, thread, threads, turn + 1)
        if thread == 0:
            least, rise = _judge(rows, numbers, w, cost, begin, classes, joint, by_example)
            joint.answer[0], joint.answer[1] = least, rise
        meet(blas, signals, thread, threads, turn + 2)
        least, rise = joint.answer[0], joint.answer[1]
        if rise > least:
            break
        turn += 3
    taken = rise > least
    _take_or_leave(taken, own, here, weights, last, step, moved, duals, slots, joint)
    return rise if taken else 0.0


@njit
def _sum_of_rows(terms):
    total = np.zeros(terms.shape[1])
    for row in terms:
        total += row
    return total


@njit
def _add_directions(
    loss, linear, numbers, begin, w, last, step, y, cost, duals, classes, slots, joint, terms
):
    """Add slopes and bends of the dual objective along v - last v and along the last step."""
    now, change, past = joint.now, joint.change, joint.past
    for r in range(numbers.shape[0]):
        for e in range(begin[r], begin[r + 1]):
            now[e] = taken_from(duals, numbers[r], slots[e])
            change[e] = now[e] - past[LAST_DUAL, e]
    for c in range(w.shape[0]):
        _add_norms(w[c], last[c], step[c], terms)
    add_conjugates(
        loss, linear, numbers, y, cost, begin, classes, now, change, past[DUAL_STEP], terms
    )


@njit
def _add_norms(w, last, step, terms):
    """Add what -1/2 |w|^2 has to slopes and bends along w - last and step."""
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
def _judge(rows, numbers, w, cost, begin, classes, joint, by_example):
    """The least rise of the dual objective that is not rounding, and the rise of this step.

    Examples that would leave their domain stay where they are; if they are too many, the rise is 0.
    """
    now, target, moved = joint.now, joint.target, joint.moved
    before = 0.5 * _square(w)
    least = MIN_RISE_ULPS * np.finfo(w.dtype).eps * before
    rise = 0.0
    for thread in range(by_example.shape[0] - 1):
        first = by_example[thread]
        count = np.int64(joint.terms[thread, COUNT])
        if too_many(count, by_example[thread + 1] - first):
            return least, 0.0
        rise += joint.terms[thread, RISE]
        for r in joint.outside[first : first + count]:
            i = numbers[first + r]
            for e in range(begin[first + r], begin[first + r + 1]):
                if target[e] != now[e]:
                    delta = w.dtype.type(cost[i]) * (target[e] - now[e])
                    add_to_class(rows, i, delta, moved, classes[e])
                    target[e] = now[e]
    return least, rise - (0.5 * _square(moved) - before)


@njit
def _take_or_leave(taken, numbers, begin, w, last, step, moved, duals, slots, joint):
    """Take the step, or stay if it is not ``taken``, and note what has changed since the last."""
    past, now, target = joint.past, joint.now, joint.target
    for r in range(numbers.shape[0]):
        for e in range(begin[r], begin[r + 1]):
            v = target[e] if taken else now[e]
            if v != now[e]:
                put(duals, numbers[r], slots[e], v)
            past[DUAL_STEP, e] = v - past[LAST_DUAL, e]
            past[LAST_DUAL, e] = v
    for c in range(w.shape[0]):
        for j in range(w.shape[1]):
            x = moved[c, j] if taken else w[c, j]
            step[c, j] = x - last[c, j]
            last[c, j] = x
            w[c, j] = x


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
