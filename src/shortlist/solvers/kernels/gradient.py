"""Values, gradients and certificates over a range of examples, a chunk at a time.

Each kernel takes the examples ``begin`` to ``end``, so that threads can share them. A chunk's
scores stay in the cache between the two matrix products.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from shortlist._blas import add_both_transposed, multiply_transposed
from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.solvers.kernels.dual_rows import is_right, open_row
from shortlist.solvers.kernels.rows import add_rows, score_rows, squared_norm

# Numbers of a chunk's scores: half of a second-level cache in single precision.
CHUNK_SCORES = 1 << 16
# Rows of a chunk at most.
MAX_CHUNK_ROWS = 512
# Rows, and columns, of the squares that are transposed at a time.
SIDE_OF_TILE = 16


@njit
def chunk_rows(m):
    """Examples of a chunk: a multiple of the widest SIMD, unless classes are very many."""
    return max(16, min(MAX_CHUNK_ROWS, CHUNK_SCORES // m // 16 * 16))


@njit
def longest_sum(n, m):
    """Additions, one after the other, that an entry of a gradient over n examples takes at most."""
    size = chunk_rows(m)
    return min(size, n) + n // size + 1


@njit
def _add_lengths_by_rows(g, kappa, first, lengths):
    for b in range(g.shape[0]):
        _add_lengths(kappa[first + b], squared_norm(g[b]), _absolute_sum(g[b]), lengths)


@njit
def _add_lengths_by_lanes(lanes, kappa, scratch, lengths):
    squares, sums = scratch[0], scratch[1]
    _lane_lengths(lanes, squares, sums)
    for b in range(lanes.shape[1]):
        _add_lengths(kappa[b], np.float64(squares[b]), np.float64(sums[b]), lengths)


@njit(sums=True)
def _lane_lengths(lanes, squares, sums):
    for b in range(lanes.shape[1]):
        squares[b] = 0
        sums[b] = 0
    for j in range(lanes.shape[0]):
        for b in range(lanes.shape[1]):
            squares[b] += lanes[j, b] * lanes[j, b]
            sums[b] += abs(lanes[j, b])


@njit
def _add_lengths(kappa, square, absolute, lengths):
    """What one example's gradient adds to the sums of ``storage.base.Lengths``."""
    lengths[0] += np.sqrt(kappa * square)
    lengths[1] += kappa * square
    lengths[2] += kappa * kappa * square
    lengths[3] += kappa * absolute * absolute


@njit
def _copy(a, out):
    """By loops: assigning one array to a slice of another takes a third of a second to compile."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


@njit
def _add_by_rows(loss, rows, blas, begin, end, w, y, cost, gradient, kappa, lengths, kept):
    m = w.shape[1]
    size = chunk_rows(m)
    scores = np.empty((size, m), w.dtype)
    g = np.empty((size, m), w.dtype)
    work = np.empty((2, m), w.dtype)
    total = 0.0
    for first in range(begin, end, size):
        last = min(first + size, end)
        score_rows(rows, blas, first, last, w, scores[: last - first])
        if kept.shape[0] > 0:
            _copy(scores[: last - first], kept[first:last])
        for i in range(first, last):
            v = g[i - first]
            if cost[i] == 0.0:
                v[:] = 0
                continue
            total += cost[i] * kernels.value_gradient(loss, scores[i - first], y[i], v, work)
            c = w.dtype.type(cost[i])
            for j in range(m):
                v[j] *= c
        if lengths.shape[0] > 0:
            _add_lengths_by_rows(g[: last - first], kappa, first, lengths)
        add_rows(rows, blas, first, last, g[: last - first], gradient)
    return total


@njit
def _score_lanes(rows, blas, first, w, lanes):
    """lanes = W'x_i, an example a column, from the example ``first`` on."""
    d = rows.x.shape[1]
    multiply_transposed(blas, w[:d], rows.x[first : first + lanes.shape[1]], lanes)
    if rows.bias != 0.0:
        constant = w.dtype.type(rows.bias)
        for j in range(lanes.shape[0]):
            shift = constant * w[d, j]
            for b in range(lanes.shape[1]):
                lanes[j, b] += shift


@njit
def _write_transposed(lanes, out):
    """out = lanes', in tiles that stay in the first-level cache."""
    m, size = lanes.shape
    for first_lane in range(0, size, SIDE_OF_TILE):
        last_lane = min(first_lane + SIDE_OF_TILE, size)
        for first in range(0, m, SIDE_OF_TILE):
            last = min(first + SIDE_OF_TILE, m)
            for b in range(first_lane, last_lane):
                for j in range(first, last):
                    out[b, j] = lanes[j, b]


@njit
def _add_lanes(rows, blas, first, lanes, gradient):
    """gradient += sum_i x_i g_i', g_i the columns of ``lanes``."""
    d = rows.x.shape[1]
    add_both_transposed(blas, rows.x[first : first + lanes.shape[1]], lanes, gradient[:d])
    if rows.bias != 0.0:
        constant = gradient.dtype.type(rows.bias)
        for j in range(lanes.shape[0]):
            gradient[d, j] += constant * _sum(lanes[j])


@njit
def _add_by_lanes(loss, rows, blas, begin, end, w, y, cost, gradient, kappa, lengths, kept):
    m = w.shape[1]
    size = chunk_rows(m)
    lanes = np.empty((m, size), w.dtype)
    scratch = np.empty((8, size), w.dtype)
    total = 0.0
    for first in range(begin, end, size):
        last = min(first + size, end)
        if last - first < size:
            lanes = np.empty((m, last - first), w.dtype)
            scratch = np.empty((8, last - first), w.dtype)
        _score_lanes(rows, blas, first, w, lanes)
        if kept.shape[0] > 0:
            _write_transposed(lanes, kept[first:last])
        total += kernels.lanes(loss, lanes, y[first:last], cost[first:last], scratch)
        if lengths.shape[0] > 0:
            _add_lengths_by_lanes(lanes, kappa[first:last], scratch, lengths)
        _add_lanes(rows, blas, first, lanes, gradient)
    return total


@njit
def add_gradient_of_wide_losses(
    loss, rows, blas, begin, end, w, y, cost, gradient, kappa, lengths, kept
):
    """As the kernels of :func:`gradient_kernel`, in single precision with losses in double.

    Scores and sums of gradients are computed in single precision.
    """
    m = w.shape[1]
    size = chunk_rows(m)
    total = 0.0
    for first in range(begin, end, size):
        last = min(first + size, end)
        lanes = np.empty((m, last - first), w.dtype)
        wide = np.empty((m, last - first))
        scratch = np.empty((8, last - first))
        _score_lanes(rows, blas, first, w, lanes)
        if kept.shape[0] > 0:
            _write_transposed(lanes, kept[first:last])
        _copy(lanes, wide)
        total += kernels.lanes(loss, wide, y[first:last], cost[first:last], scratch)
        _add_lengths_by_lanes(wide, kappa[first:last], scratch, lengths)
        _copy(wide, lanes)
        _add_lanes(rows, blas, first, lanes, gradient)
    return total


@njit(sums=True)
def _sum(a):
    total = a.dtype.type(0)
    for b in range(a.shape[0]):
        total += a[b]
    return total


def gradient_kernel(spec: Any) -> Callable:
    """The kernel for a loss, given by its kernels' parameters, over dense rows.

    Called with (loss, rows, blas, begin, end, w, y, cost, gradient, kappa, lengths, kept), it adds
    sum_i C_i x_i grad L(W'x_i)' over the range to ``gradient`` and returns the sum of C_i L.
    ``lengths`` takes up what bounds the gradient's rounding, and ``kept`` the scores, a row for
    each of all examples, unless they are empty.
    """
    by_lanes = kernels.kernels_of(type(spec)).lanes is not None
    return _add_by_lanes if by_lanes else _add_by_rows


@njit(sums=True)
def _distances(s, g, v, smooth):
    """<s, v>; sum_j |s_j v_j|; |g - v|_1, or |g|_1 + |v|_1 where g may jump."""
    product = 0.0
    size = 0.0
    distance = 0.0
    for j in range(s.shape[0]):
        term = np.float64(s[j]) * np.float64(v[j])
        product += term
        size += abs(term)
        if smooth:
            distance += np.float64(abs(g[j] - v[j]))
        else:
            distance += np.float64(abs(g[j])) + np.float64(abs(v[j]))
    return product, size, distance


@njit
def _longest_gradient_near(loss, s, y, shift, g, work):
    """|grad L|_1 where right labels score less by ``shift`` and the others more; changes s."""
    for j in range(s.shape[0]):
        s[j] += -shift if is_right(y, j) else shift
    kernels.value_gradient(loss, s, y, g, work)
    return _absolute_sum(g)


@njit(sums=True)
def _absolute_sum(g):
    total = 0.0
    for j in range(g.shape[0]):
        total += np.float64(abs(g[j]))
    return total


@njit
def certify_scores(loss, scores, first, y, cost, kappa, duals, smooth, blur, sums, shares):
    """Add to ``sums``, over the examples whose scores are given, the parts of a certificate.

    0: C L(s)    1: C L*(v)    2: C <s, v>    3: (C |x| |grad L - v|_1)^2
    4: C (|L| + |L*| + sum_j |s_j v_j|)

    C (L(s) + L*(v) - <s, v>) of each example is put into ``shares``, if that has room for all
    examples. It is zero if v is a gradient at s, and positive otherwise; they add up to the gap.

    The last two sums bound the effect of rounding (see ``solvers.records.certificate``). A loss
    that is not ``smooth`` may have a kink between the scores and those that rounding has moved by
    up to ``blur`` |x|: so the longest gradient near by counts. Changes the scores.
    """
    m = scores.shape[1]
    work = np.empty((2, m), scores.dtype)
    g = np.empty(m, scores.dtype)
    scratch = np.empty(m, scores.dtype)
    for b in range(scores.shape[0]):
        i = first + b
        if cost[i] == 0.0:
            continue
        value = kernels.value_gradient(loss, scores[b], y[i], g, work)
        v = open_row(duals, i, scratch)
        conjugate = kernels.conjugate(loss, v, y[i])
        product, size, distance = _distances(scores[b], g, v, smooth)
        if not smooth:
            length = _absolute_sum(g)
            shift = scores.dtype.type(blur * np.sqrt(kappa[i]))
            near = _longest_gradient_near(loss, scores[b], y[i], shift, g, work)
            distance += max(near - length, 0.0)
        sums[0] += cost[i] * value
        sums[1] += cost[i] * conjugate
        sums[2] += cost[i] * product
        sums[3] += kappa[i] * (cost[i] * distance) ** 2
        sums[4] += cost[i] * (abs(value) + abs(conjugate) + size)
        if i < shares.shape[0]:
            shares[i] = cost[i] * (value + conjugate - product)


@njit
def sum_conjugates(loss, duals, y, cost, factor, v):
    """sum_i C_i L*(factor v_i); ``v`` is scratch."""
    f = v.dtype.type(factor)
    total = 0.0
    for i in range(cost.shape[0]):
        if cost[i] > 0.0:
            row = open_row(duals, i, v)
            for j in range(v.shape[0]):
                v[j] = f * row[j]
            total += cost[i] * kernels.conjugate(loss, v, y[i])
    return total
