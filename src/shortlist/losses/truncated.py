"""The truncated top-k entropy: softmax without the k-1 highest wrong labels. Not convex.

    L(f) = log(1 + sum of exp(f_j - f_y) over the m - k smallest f_j, j != y)

It has value and gradient only: without convexity there is no dual to step in (at k = 1 it is
softmax, and handled there). At ties for the
cut, the gradient is that of the pieces kept when lower indices are dropped first.
"""

import math
from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.differences import close_at_label, sum_of_wrong
from shortlist.losses.entropy import _exponentials
from shortlist.losses.kernels import Kernels, register
from shortlist.projections.entropic import sigmoid, softplus
from shortlist.projections.selection import largest


class TruncatedEntropy(NamedTuple):
    """Truncated top-k entropy."""

    k: int


@njit
def _value_gradient(loss, f, y, v, work):
    z = work[0]
    z[:] = f
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
    total = _exponentials(z, v)
    omega = np.float64(top) - np.float64(f[y]) + math.log(total)
    factor = v.dtype.type(sigmoid(omega) / total)
    for j in range(v.shape[0]):
        v[j] *= factor
    close_at_label(v, y, sum_of_wrong(v, y))
    return softplus(omega)


register(TruncatedEntropy, Kernels(_value_gradient))
