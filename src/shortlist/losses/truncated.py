"""The truncated top-k entropy: softmax without the k-1 highest wrong labels. Not convex.

    L(f) = log(1 + sum of exp(f_j - f_y) over the m - k smallest f_j, j != y)

It has value and gradient only: without convexity there is no dual to step in. At k = 1 it is
softmax, and made as such. Where wrong labels tie for the last of the k-1 places, those with the
lower indices are dropped.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.entropy import log_loss
from shortlist.losses.kernels import Kernels, register
from shortlist.projections.selection import largest


class TruncatedEntropy(NamedTuple):
    """Truncated top-k entropy."""

    k: int


@njit
def _value_gradient(loss, f, y, v, work):
    z = work[0]
    for j in range(f.shape[0]):
        z[j] = f[j]
    z[y] = -np.inf
    k = loss.k
    places = np.empty(k, np.int32)
    values = work[1]
    largest(z, k, values, places)
    # The largest that stays is the reference of the exponentials, however high the dropped ones.
    top = values[k - 1]
    for i in range(k - 1):
        z[places[i]] = -np.inf
    for j in range(z.shape[0]):
        z[j] -= top
    return log_loss(z, np.float64(top) - np.float64(f[y]), y, v)


register(TruncatedEntropy, Kernels(_value_gradient))
