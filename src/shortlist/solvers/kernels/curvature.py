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


@njit
def unpack_hessian(packed, m, d, hessian):
    """Spread sums over pairs of classes and of features to a symmetric (m d, m d) matrix."""
    pair = 0
    for a in range(m):
        for b in range(a, m):
            entry = 0
            for i in range(d):
                for j in range(i, d):
                    value = packed[pair, entry]
                    entry += 1
                    hessian[a * d + i, b * d + j] = value
                    hessian[a * d + j, b * d + i] = value
                    hessian[b * d + i, a * d + j] = value
                    hessian[b * d + j, a * d + i] = value
            pair += 1
