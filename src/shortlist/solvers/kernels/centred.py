"""Duals near given ones: the maximisers of  <s, v> - L*(v) - gamma/2 |v - c|^2,  and their slopes.

See ``strategy.multipliers``. All arrays are in double.
"""

import numpy as np

from shortlist._jit import njit
from shortlist._native import borrowed, keep
from shortlist.losses import kernels
from shortlist.solvers.kernels.curvature import number_of_pair


@njit
def step_near(loss, scores, y, cost, gamma, centre, starts, v, weighted):
    """Put the maximisers for all examples into ``v``, and C_i times them into ``weighted``.

    ``centre`` are the c_i. ``starts`` are those of dual steps, kept between calls. Returns the sums
    of C_i times the maximum and of C_i L*(v_i).
    """
    n, m = scores.shape
    scores, centre, starts = borrowed(scores), borrowed(centre), borrowed(starts)
    v, weighted = borrowed(v), borrowed(weighted)
    room = np.empty((3, m))
    q, work = borrowed(room)[0], borrowed(room)[1:]
    maxima = 0.0
    conjugates = 0.0
    for i in range(n):
        s, c, own, out = scores[i], centre[i], v[i], weighted[i]
        for j in range(m):
            q[j] = s[j] + gamma * c[j]
        kernels.dual_step(loss, q, y[i], gamma, starts[i], own, work)
        product, distance = _product_and_distance(s, own, c)
        for j in range(m):
            out[j] = cost[i] * own[j]
        conjugate = kernels.conjugate(loss, own, y[i])
        maxima += cost[i] * (product - conjugate - 0.5 * gamma * distance)
        conjugates += cost[i] * conjugate
    keep(room)
    return maxima, conjugates


@njit(sums=True)
def _product_and_distance(s, v, c):
    """<s, v> and |v - c|^2."""
    product = 0.0
    distance = 0.0
    for j in range(s.shape[0]):
        product += s[j] * v[j]
        distance += (v[j] - c[j]) * (v[j] - c[j])
    return product, distance


@njit
def add_slopes(loss, x, scores, y, cost, gamma, centre, v, step, fewest, packed):
    """packed += sum_i C_i J_i (x) x_i x_i', J_i the derivative of the maximiser in the scores.

    J_i is zero but for classes with nonzero duals. It is that of the loss on these classes, at
    least ``fewest`` of them; by finite differences over ``step`` where the loss has no kernel
    for it. Entries are kept once: ``packed`` has a row for each pair of classes a <= b, and a
    column for each pair of features.
    """
    n, m = scores.shape
    d = x.shape[1]
    v, packed = borrowed(v), borrowed(packed)
    classes = np.empty(m, np.int64)
    room = np.empty((4, m))
    q, few, work = borrowed(room)[0], borrowed(room)[1], borrowed(room)[2:].reshape(2 * m)
    slopes = np.empty(m * m)
    products = np.empty(packed.shape[1])
    for i in range(n):
        if cost[i] == 0.0:
            continue
        count, place = _list_classes(v[i], y[i], fewest, classes)
        if count == 0:
            continue
        f, own, here = q[:count], few[:count], classes[:count]
        for a in range(count):
            f[a] = scores[i, here[a]] + gamma * centre[i, here[a]]
            own[a] = v[i, here[a]]
        on_few = kernels.on_classes(loss, f, y[i], here)
        block = borrowed(slopes)[: count * count].reshape((count, count))
        scratch = work[: 2 * count].reshape((2, count))
        kernels.slope(on_few, f, place, gamma, own, step, block, scratch)
        number = 0
        for a in range(d):
            for b in range(a, d):
                products[number] = x[i, a] * x[i, b]
                number += 1
        for a in range(count):
            for b in range(a, count):
                h = 0.5 * cost[i] * (block[a, b] + block[b, a])
                if h != 0.0:
                    row = packed[number_of_pair(here[a], here[b], m)]
                    for j in range(number):
                        row[j] += h * products[j]
    keep(room)
    keep(slopes)


@njit
def _list_classes(v, y, fewest, classes):
    """List the label, the classes with nonzero duals, and others until there are ``fewest``.

    Returns how many, and which of them is the label. None if no dual is between its bounds.
    """
    nonzero = 0
    between = False
    for j in range(v.shape[0]):
        nonzero += v[j] != 0.0 or j == y
        between |= 0.0 < abs(v[j]) < 1.0
    if not between:
        return 0, 0
    others = fewest - nonzero
    count = 0
    place = 0
    for j in range(v.shape[0]):
        listed = v[j] != 0.0 or j == y
        if listed or others > 0:
            others -= not listed
            if j == y:
                place = count
            classes[count] = j
            count += 1
    return count, place
