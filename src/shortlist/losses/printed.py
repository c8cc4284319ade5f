"""The top-k hinge alpha as the paper prints it, with the label's own zero among the margins.

    L(f) = max(0, mean of the k largest among 0 and all 1 + u_j, j != y)
         = max(0, S_{k-1}, S_k) / k,    S_r the sum of the r largest 1 + u_j

It lies between alpha and beta. The maximum over weights for all m numbers, each at most t/k with
sum t <= 1, leaves s = t - t_y for the wrong labels, t_y <= t/k that of the zero. So t is at most
min(1, s k/(k-1)), and, smoothed like the others,

    L(f) = max over x in the set of <1 + u, x> - gamma/2 |x|^2
    L*(v) = -s + gamma/2 |x|^2   on the set  0 <= x_j <= min(1/k, s/(k-1)), s <= 1,  v_y = -s

The paper's own dual set, x_j <= s/k, belongs to alpha over j != y. Here k >= 2; at k = 1 this is
the multiclass hinge.
"""

from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.differences import close_at_label, shifted_differences, simplex_violation
from shortlist.losses.domains import BothDomains, capped
from shortlist.losses.hinge import conjugate_of_hinge, smooth_hinge_value
from shortlist.losses.hinge_projection import MIN_SCALE_TO_DIVIDE_BY
from shortlist.losses.kernels import Kernels, register
from shortlist.projections.selection import largest
from shortlist.projections.topk import solve_printed


class PrintedHinge(NamedTuple):
    """Top-k hinge alpha as printed, for k >= 2."""

    k: int
    gamma: float


@njit
def _subgradient(loss, f, y, v, work):
    z, values = work[0], work[1]
    top = shifted_differences(f, y, 1.0, z)
    places = np.empty(loss.k, np.int32)
    largest(z, loss.k, values, places)
    count = loss.k
    if not 1.0 + top + np.float64(values[loss.k - 1]) > 0.0:
        count -= 1
    value = 0.0
    for i in range(count):
        value += (1.0 + top + np.float64(values[i])) / loss.k
    if not value > 0.0:
        count = 0
    v[:] = 0
    share = v.dtype.type(1.0 / loss.k)
    for i in range(count):
        v[places[i]] = share
    close_at_label(v, y, count * np.float64(share))
    return max(value, 0.0)


@njit
def _project(loss, f, y, eta, start, v, work):
    """Shared by gradient and dual step: v from the projection; returns what values need."""
    z = work[0]
    scale = eta + loss.gamma
    top = shifted_differences(f, y, scale, z) + 1.0 / scale
    s = solve_printed(z, top, loss.k, 1.0, eta / scale, start, work[1], v)
    close_at_label(v, y, s)
    return top, s


@njit
def _value_gradient(loss, f, y, v, work):
    if loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        return _subgradient(loss, f, y, v, work)
    top, s = _project(loss, f, y, 0.0, np.zeros(2), v, work)
    return smooth_hinge_value(work[0], top, v, s, loss.gamma, y)


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        _subgradient(loss, q, y, v, work)
    else:
        _project(loss, q, y, eta, start, v, work)


@njit
def _violation(loss, v, y):
    by_sum = simplex_violation(v, y, 1.0 / (loss.k - 1), 0.0)
    return max(by_sum, simplex_violation(v, y, 0.0, 1.0 / loss.k))


register(
    PrintedHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation,
        _dual_step,
        domain=lambda spec: BothDomains(
            capped(spec.k - 1, joint=True, linear=True), capped(spec.k, joint=False, linear=True)
        ),
    ),
)
