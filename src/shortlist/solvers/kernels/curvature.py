"""Second derivatives of the loss in the scores, for models of the primal's Hessian."""

import numpy as np

from shortlist._jit import njit
from shortlist.losses import kernels


@njit
def pack_curvatures(loss, scores, y, cost, step, out):
    """C_i times the Hessian of L at each row of scores, its upper triangle as a row of ``out``.

    By finite differences of the gradient over ``step`` where the loss has no kernel for it.
    """
    m = scores.shape[1]
    hessian = np.empty((m, m), scores.dtype)
    work = np.empty((3, m), scores.dtype)
    for i in range(scores.shape[0]):
        kernels.curvature(loss, scores[i], y[i], step, hessian, work)
        c = scores.dtype.type(cost[i])
        pair = 0
        for a in range(m):
            for b in range(a, m):
                out[i, pair] = c * hessian[a, b]
                pair += 1


@njit
def add_sparse_curvature(loss, x, scores, y, cost, step, least, hessian):
    """hessian += sum_i C_i H_i (x) x_i x_i' for a loss whose gradients have few nonzero entries.

    H_i is zero but for the classes whose derivative is not. It is found by finite differences
    over ``step`` of the loss on these classes alone, at least ``least`` of them. Only blocks on
    and above the diagonal are filled. ``hessian`` has weights in the order of W'.
    """
    m, d = scores.shape[1], x.shape[1]
    v = np.empty(m)
    full_work = np.empty((2, m))
    classes = np.empty(m, np.int64)
    few = np.empty(m)
    for i in range(x.shape[0]):
        if cost[i] == 0.0:
            continue
        kernels.value_gradient(loss, scores[i], y[i], v, full_work)
        count, sharp = _list_classes(v, y[i], classes)
        if sharp or count < 2 or count < least:
            continue
        place = 0
        f = few[:count]
        for a in range(count):
            f[a] = scores[i, classes[a]]
            if classes[a] == y[i]:
                place = a
        here = kernels.on_classes(loss, f, y[i], classes)
        block = np.empty((count, count))
        kernels.curvature(here, f, place, step, block, np.empty((3, count)))
        for a in range(count):
            for b in range(a, count):
                h = cost[i] * block[a, b]
                if h != 0.0:
                    _add_outer(x[i], h, hessian, classes[a] * d, classes[b] * d)


@njit
def _list_classes(v, y, classes):
    """The classes with nonzero derivative; whether all these are one, which leaves no curvature."""
    count = 0
    inner = False
    for j in range(v.shape[0]):
        if v[j] != 0.0 or j == y:
            classes[count] = j
            count += 1
            inner |= 0.0 < abs(v[j]) < 1.0
    return count, not inner


@njit
def _add_outer(x, h, hessian, row, column):
    d = x.shape[0]
    for i in range(d):
        scaled = h * x[i]
        target = hessian[row + i]
        for j in range(d):
            target[column + j] += scaled * x[j]


@njit
def pack_products(x, out):
    """The upper triangle of x_i x_i' as row i of ``out``."""
    d = x.shape[1]
    for i in range(x.shape[0]):
        pair = 0
        for a in range(d):
            xa = x[i, a]
            for b in range(a, d):
                out[i, pair] = xa * x[i, b]
                pair += 1
