"""The kernels of SDCA: visits to examples one after the other, singly and in blocks.

With scores s = W'x_i, cost C_i and the dual v_i, a visit (``losses.kernels.ascend``) changes v_i
so that the dual objective does not fall, and W by x_i delta', delta = C_i (old v_i - new v_i).

Kernels add up two numbers: the examples' shares of the duality gap (a sample of them, one in
``every``, where they cost extra), an estimate that only decides when to compute the gap itself;
and what the bound on rounding in W needs (see ``solvers.records.certificate``).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import (
    add_transposed,
    lower_gram,
    multiply,
    multiply_add,
    multiply_by_transposed,
)
from shortlist._jit import njit, overloaded
from shortlist._native import (
    SIGNAL_STRIDE,
    announce,
    borrowed,
    keep,
    prefetch,
    publish,
    wait_for,
)
from shortlist.losses.kernels import ascend
from shortlist.solvers.kernels.changes import add_earlier, add_to_weights, note_change
from shortlist.solvers.kernels.dual_rows import close_row, fetch_place, fetch_row, open_row
from shortlist.solvers.kernels.rows import (
    SQUARED_ROUNDING,
    add_row,
    fetch_features,
    fetch_weights,
    gather_rows,
    score_row,
    squared_norm,
)

# Examples of a block that see each other's changes one by one. The changes of a whole group are
# added to the scores of its panel by a matrix product, those of a panel to the rest of the block.
ROWS_OF_GROUP = 16
ROWS_OF_PANEL = 64
# The duals of the example so many visits ahead are being fetched.
ROWS_AHEAD = 2
# Places of the signals between threads, a cache line apart.
READY, GATHERED, DONE = 0, 8, 16
# Announced as READY when there is nothing more to do.
ALL_DONE = 1 << 62


@njit
def rounding_of_visit(cost, kappa, square, block):
    """The visit's share of the squared rounding errors in W, in squared units of roundoff.

    ``square`` is |delta|^2.
    """
    return kappa * (SQUARED_ROUNDING * cost * cost + block * square)


@njit
def visit_in_turn(loss, rows, order, w, y, cost, kappa, duals, starts, every):
    """Visit the examples ``order``, W (d + 1, m) being small or the rows sparse.

    Returns the sums of gap shares and of rounding shares, and how many examples change: these are
    put first in ``order``.
    """
    m = w.shape[1]
    rows, w, duals, starts = borrowed(rows), borrowed(w), borrowed(duals), borrowed(starts)
    room = np.empty((5, m), w.dtype)
    held = borrowed(room)
    s, delta, scratch, work = held[0], held[1], held[2], held[3:]
    gap = 0.0
    rounding = 0.0
    moved = 0
    for visit, i in enumerate(order):
        if visit + ROWS_AHEAD < order.shape[0]:
            fetch_features(rows, order[visit + ROWS_AHEAD])
            fetch_weights(rows, order[visit + 1], w)
        score_row(rows, i, w, s)
        v = open_row(duals, i, scratch)
        stands_for = every if visit % every == 0 else 0
        gap += ascend(loss, s, y[i], cost[i], kappa[i], starts[i], stands_for, v, delta, work)
        close_row(duals, i, y[i], v)
        changed = False
        for j in range(m):
            changed |= delta[j] != 0
        if changed:
            add_row(rows, i, delta, w)
            rounding += rounding_of_visit(cost[i], kappa[i], squared_norm(delta), 1.0)
            order[moved] = i
            moved += 1
    keep(room)
    return gap, rounding, moved


@njit
def _fetch_examples(order, y, cost, kappa, duals, starts):
    """Let the processor fetch what visits read of each example, all at the same time.

    Each would be waited for otherwise: they lie anywhere in memory.
    """
    for i in order:
        prefetch(y, i, 1)
        prefetch(cost, i, 1)
        prefetch(kappa, i, 1)
        prefetch(starts, i, 1)
        fetch_place(duals, i)


@njit
def _visit_rows(
    loss, blas, order, scores, gram, y, cost, kappa, duals, starts, every, changes, work
):
    size, m = order.shape[0], scores.shape[1]
    scores, gram, changes = borrowed(scores), borrowed(gram), borrowed(changes)
    duals, starts, work = borrowed(duals), borrowed(starts), borrowed(work)
    deltas = changes.deltas
    room = np.empty(m, scores.dtype)
    scratch = borrowed(room)
    gap = 0.0
    rounding = 0.0
    # The changes of examples before ``panel`` are in the scores of all later ones, those before
    # ``group`` in the scores of the current panel.
    panel = group = 0
    _fetch_examples(order, y, cost, kappa, duals, starts)
    for b in range(size):
        i = order[b]
        if b + ROWS_AHEAD < size:
            fetch_row(duals, order[b + ROWS_AHEAD])
        s = scores[b]
        add_earlier(s, gram[b], changes, group, b)
        v = open_row(duals, i, scratch)
        stands_for = every if b % every == 0 else 0
        gap += ascend(loss, s, y[i], cost[i], kappa[i], starts[i], stands_for, v, deltas[b], work)
        close_row(duals, i, y[i], v)
        square = note_change(changes, b)
        if square > 0.0:
            rounding += rounding_of_visit(cost[i], kappa[i], square, float(size))
        end = b + 1
        if end % ROWS_OF_PANEL == 0 or end == size:
            if _multiply_changes(blas, gram, changes, panel, end, size, scores):
                panel = end
            group = panel
        elif end % ROWS_OF_GROUP == 0:
            rest = min(size, (b // ROWS_OF_PANEL + 1) * ROWS_OF_PANEL)
            if _multiply_changes(blas, gram, changes, group, end, rest, scores):
                group = end
    keep(room)
    return gap, rounding


@overloaded(apart=True)
def _visits(loss, blas, order, scores, gram, y, cost, kappa, duals, starts, every, changes, work):
    """The visits of :func:`visit_block`, which two kernels call."""
    return _visit_rows


@njit
def visit_block(
    loss, blas, order, scores, gram, y, cost, kappa, duals, starts, every, changes, work
):
    """Visit the examples ``order`` in turn, given scores (B, m) at the block's start.

    The lower triangle of ``gram`` (B, B) holds their inner products, through which each example
    sees the changes of those before it, which are left in ``changes``. Returns the sums of
    gap shares and of rounding shares.
    """
    return _visits(
        loss,
        blas,
        order,
        scores,
        gram,
        y,
        cost,
        kappa,
        duals,
        starts,
        every,
        changes,
        work,
    )


@njit
def _multiply_changes(blas, gram, changes, begin, end, last, scores):
    """Add the changes of the examples ``begin`` to ``end`` to the scores of those up to ``last``.

    Returns whether it did: few changes, and listed ones, are cheaper to add as they are met.
    """
    full = changes.full[end] - changes.full[begin]
    if last <= end or 4 * full < end - begin or full < 4:
        return False
    multiply_add(blas, gram[end:last, begin:end], changes.deltas[begin:end], scores[end:last])
    return True


class Exchange(NamedTuple):
    """What threads that visit blocks hand over: each part is written by one, and read by others.

    The ``rows`` (3, B, d + 1) of the last, the current and the next block, the inner products
    ``grams`` (2, B, B) of the latter two, each thread's part of the ``scores`` (threads, B, m), and
    the changes ``deltas`` (B, m).
    """

    rows: NDArray
    grams: NDArray
    scores: NDArray
    deltas: NDArray


def room_for_exchange(threads: int, size: int, width: int, m: int, dtype: Any) -> Exchange:
    """For blocks of ``size`` examples."""
    shapes = ((3, size, width), (2, size, size), (threads, size, m), (size, m))
    return Exchange(*(np.empty(shape, dtype) for shape in shapes))


@njit
def lead_blocks(
    loss,
    blas,
    x,
    bias,
    order,
    w,
    y,
    cost,
    kappa,
    duals,
    starts,
    every,
    exchange,
    changes,
    bounds,
    signals,
    by_class,
):
    """Visit the examples ``order`` of dense rows in blocks, the leading thread's part.

    A block takes two matrix products: its scores before, and the change of W after its visits.
    Thread t does both for the features ``bounds[t]`` to ``bounds[t + 1]``; the visits need them
    all and are done here, while the first assistant gathers the rows of the next block and
    their inner products. ``exchange`` and ``changes`` are scratch.

    ``by_class``: w holds W by classes, shape (m, d + 1). Then changes that are all listed cost no
    product: each is added to its class.

    Returns the sums of gap shares and of rounding shares.
    """
    scores, deltas = exchange.scores[0], changes.deltas
    size = deltas.shape[0]
    work = np.empty((2, deltas.shape[1]), w.dtype)
    n_blocks = (order.shape[0] + size - 1) // size
    gap = 0.0
    rounding = 0.0
    for b in range(n_blocks):
        here = order[b * size : (b + 1) * size]
        count = here.shape[0]
        _products(blas, b, x, bias, order, w, exchange, changes, bounds, signals, by_class)
        found = _visits(
            loss,
            blas,
            here,
            scores[:count],
            exchange.grams[b % 2],
            y,
            cost,
            kappa,
            duals,
            starts,
            every,
            changes,
            work,
        )
        gap += found[0]
        rounding += found[1]
    _products(blas, n_blocks, x, bias, order, w, exchange, changes, bounds, signals, by_class)
    return gap, rounding


@overloaded(apart=True)
def _products(blas, b, x, bias, order, w, exchange, changes, bounds, signals, by_class):
    """What :func:`lead_blocks` does between the visits of blocks b - 1 and b, whatever the loss."""
    return _multiply_with_assistants


@njit
def _multiply_with_assistants(
    blas, b, x, bias, order, w, exchange, changes, bounds, signals, by_class
):
    rows, grams, scores = exchange.rows, exchange.grams, exchange.scores
    size, threads = rows.shape[1], scores.shape[0]
    here = order[b * size : (b + 1) * size]  # none after the last block
    count = here.shape[0]
    if count > 0:
        if threads == 1 or b == 0:
            gather_rows(x, bias, here, rows[b % 3])
            lower_gram(blas, rows[b % 3, :count], grams[b % 2])
        else:
            wait_for(blas, signals, GATHERED, b)
    if threads > 1 and b > 0 and _takes_product(changes, order, b - 1, by_class):
        publish(changes.deltas, exchange.deltas)
    announce(signals, READY, b + 1)
    _change_slab(blas, b, order, w, rows, changes.deltas, changes, bounds, 0, by_class)
    _score_slab(blas, b, order, w, rows, scores[0], bounds, 0, by_class)
    for t in range(1, threads):
        wait_for(blas, signals, DONE + SIGNAL_STRIDE * t, b + 1)
        for c in range(count):
            for j in range(scores.shape[2]):
                scores[0, c, j] += scores[t, c, j]


@njit
def assist_blocks(blas, x, bias, order, w, exchange, changes, bounds, signals, by_class, thread):
    """The part of thread number ``thread`` in :func:`lead_blocks`."""
    rows, grams, deltas = exchange.rows, exchange.grams, exchange.deltas
    size = rows.shape[1]
    n_blocks = (order.shape[0] + size - 1) // size
    scores = np.empty(deltas.shape, w.dtype)
    gathered = np.empty((size, rows.shape[2]), w.dtype)
    gram = np.empty((size, size), w.dtype)
    for b in range(n_blocks + 1):
        if n_blocks == 0:
            break
        wait_for(blas, signals, READY, b + 1)
        if signals[READY] == ALL_DONE:
            break
        _change_slab(blas, b, order, w, rows, deltas, changes, bounds, thread, by_class)
        _score_slab(blas, b, order, w, rows, scores, bounds, thread, by_class)
        publish(scores, exchange.scores[thread])
        announce(signals, DONE + SIGNAL_STRIDE * thread, b + 1)
        if thread == 1 and b + 1 < n_blocks:
            following = order[(b + 1) * size : (b + 2) * size]
            gather_rows(x, bias, following, gathered)
            publish(gathered, rows[(b + 1) % 3])
            lower_gram(blas, gathered[: following.shape[0]], gram)
            publish(gram, grams[(b + 1) % 2])
            announce(signals, GATHERED, b + 1)


@njit
def _takes_product(changes, order, b, by_class):
    """Whether the changes of block b are added to W by a matrix product."""
    size = changes.deltas.shape[0]
    return not by_class or changes.full[min(size, order.shape[0] - b * size)] > 0


@njit
def _change_slab(blas, b, order, w, rows, deltas, changes, bounds, thread, by_class):
    """Add the changes of block b - 1 to a slab of W; ``deltas`` holds them for this thread."""
    if b == 0:
        return
    first, last = bounds[thread], bounds[thread + 1]
    size = rows.shape[1]
    count = min(size, order.shape[0] - (b - 1) * size)
    before = rows[(b - 1) % 3, :count]
    if not _takes_product(changes, order, b - 1, by_class):
        add_to_weights(changes, count, before, first, last, w)
    elif by_class:
        add_transposed(blas, deltas[:count], before[:, first:last], w[:, first:last])
    else:
        add_transposed(blas, before[:, first:last], deltas[:count], w[first:last])


@njit
def _score_slab(blas, b, order, w, rows, scores, bounds, thread, by_class):
    """A thread's part of the scores of block b."""
    first, last = bounds[thread], bounds[thread + 1]
    size = rows.shape[1]
    count = min(size, order.shape[0] - b * size)
    if count <= 0:
        return
    here = rows[b % 3, :count, first:last]
    if by_class:
        multiply_by_transposed(blas, here, w[:, first:last], scores[:count])
    else:
        multiply(blas, here, w[first:last], scores[:count])
