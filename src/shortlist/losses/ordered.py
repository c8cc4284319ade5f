"""Hinges with a weight for each rank: ordered weighted pairwise classification (OWPC).

With weights w_1 >= w_2 >= ... > 0 that sum to 1, and the margins 1 + u_j, j != y, in descending
order,

    beta:   sum_r w_r max(0, 1 + u_[r])        alpha:  max(0, sum_r w_r (1 + u_[r]))

beta is the loss of Usunier, Buffoni and Gallinari ("Ranking with Ordered Weighted Pairwise
Classification", ICML 2009). With k weights 1/k these are the top-k hinges beta and alpha. As those,

    L(f) = max over x in the set of <1 + u, x> - gamma/2 |x|^2
    L*(v) = -s + gamma/2 |x|^2   on the set, v_y = -s

with the sets of ``shortlist.projections.ordered``, W_r the sum of the first r weights:

    beta:   the r largest entries of x sum to at most W_r, for every r
    alpha:  they sum to at most s W_r, and s <= 1

A mixture of top-k hinges beta, sum_k mu_k beta_k, is the beta loss with w_r = sum over k >= r of
mu_k / k: beta_k is the mean of the k largest positive parts. Conversely every beta loss is the
mixture with mu_k = k (w_k - w_{k+1}).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import njit
from shortlist.losses.differences import close_at_label, shifted_differences, sum_of_wrong
from shortlist.losses.domains import OrderedDomain
from shortlist.losses.hinge import conjugate_of_hinge, smooth_hinge_value
from shortlist.losses.hinge_projection import MIN_SCALE_TO_DIVIDE_BY
from shortlist.losses.kernels import Kernels, hash_of_parameters, register, same_parameters
from shortlist.projections.ordered import ordered_violation, solve_ordered
from shortlist.projections.selection import largest


class OrderedHinge(NamedTuple):
    """OWPC hinge; ``joint`` takes the positive part after the weighted sum (alpha)."""

    weights: NDArray
    joint: bool
    gamma: float

    def __eq__(self, other: object) -> bool:
        return same_parameters(self, other)

    def __hash__(self) -> int:
        return hash_of_parameters(self)


@njit
def _subgradient(loss, f, y, v, work):
    """Value and subgradient without smoothing. On a few classes only the first weights count."""
    z, values = work[0], work[1]
    top = shifted_differences(f, y, 1.0, z)
    ranks = min(loss.weights.shape[0], f.shape[0] - 1)
    places = np.empty(ranks, np.int32)
    largest(z, ranks, values, places)
    value = 0.0
    count = 0
    while count < ranks:
        margin = 1.0 + top + np.float64(values[count])
        if not loss.joint and not margin > 0.0:
            break
        value += loss.weights[count] * margin
        count += 1
    if not value > 0.0:
        count = 0
    v[:] = 0
    s = 0.0
    for i in range(count):
        v[places[i]] = v.dtype.type(loss.weights[i])
        s += np.float64(v[places[i]])
    close_at_label(v, y, s)
    return max(value, 0.0)


@njit
def _project(loss, f, y, eta, v, work):
    """Shared by gradient and dual step: v from the projection; returns what values need."""
    z = work[0]
    scale = eta + loss.gamma
    top = shifted_differences(f, y, scale, z) + 1.0 / scale
    s = solve_ordered(z, top, loss.weights, loss.joint, eta / scale, work[1], v)
    close_at_label(v, y, s)
    return top, s


@njit
def _value_gradient(loss, f, y, v, work):
    if loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        return _subgradient(loss, f, y, v, work)
    top, s = _project(loss, f, y, 0.0, v, work)
    return smooth_hinge_value(work[0], top, v, s, loss.gamma, y)


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        _subgradient(loss, q, y, v, work)
    else:
        _project(loss, q, y, eta, v, work)


@njit
def _violation(loss, v, y):
    s = sum_of_wrong(v, y)
    if not abs(s) < np.inf:
        return np.inf
    x = np.empty(v.shape[0] - 1, v.dtype)
    for j in range(x.shape[0]):
        x[j] = v[j] if j < y else v[j + 1]
    worst = max(abs(np.float64(v[y]) + s), ordered_violation(x, loss.weights, loss.joint))
    for entry in x:
        worst = max(worst, -np.float64(entry))
    return worst


register(
    OrderedHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation,
        _dual_step,
        domain=lambda spec: OrderedDomain(spec.weights, spec.joint, linear=True),
    ),
)
