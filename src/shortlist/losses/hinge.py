"""The hinge family: multiclass SVM, top-k hinge alpha and beta, and their smoothed versions.

    L(f) = max over x in the set of <1 + u, x> - gamma/2 |x|^2,    u_j = f_j - f_y, j != y
    L*(v) = -s + gamma/2 |x|^2   on the set, v_y = -s

    alpha:  0 <= x_j <= s/k, s <= 1        beta:  0 <= x_j <= 1/k, s <= 1

gamma = 0 gives the hinges themselves: alpha max(0, mean of the k largest 1 + u_j), beta the mean
over the k largest of max(0, 1 + u_j). Both are the multiclass hinge at k = 1.

The dual step is a biased projection: with b_j = (1 + q_j - q_y) / (eta + gamma) and
rho = eta / (eta + gamma), it minimises |x - b|^2 + rho s^2 over the set.
"""

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.differences import (
    close_at_label,
    largest_wrong,
    shifted_differences,
    simplex_violation,
    sum_of_wrong,
)
from shortlist.losses.domains import capped
from shortlist.losses.hinge_projection import (
    MIN_SCALE_TO_DIVIDE_BY,
    AlphaHinge,
    BetaHinge,
    is_joint,
    listed_places,
    solve_listed,
    solve_listed_apart,
    solve_on_simplex,
    write_listed,
)
from shortlist.losses.kernels import (
    Kernels,
    ascend_exactly_apart,
    gap_share,
    register,
    share_of_value,
)
from shortlist.projections.selection import largest

# Duals and sums within this distance of a bound are taken to be at it. They are computed in double,
# where rounding is a millionth of this.
_NEAR_A_BOUND = 1e-9


@njit
def _subgradient(loss, f, y, v, work):
    """Value and subgradient of the nonsmooth hinges."""
    k = loss.k
    z = work[0]
    top = shifted_differences(f, y, 1.0, z)
    values = work[1]
    places = np.empty(k, np.int32)
    largest(z, k, values, places)
    v[:] = 0
    share = v.dtype.type(1.0 / k)
    value = 0.0
    s = 0.0
    if is_joint(loss):
        for i in range(k):
            value += (1.0 + top + np.float64(values[i])) / k
        if value > 0.0:
            for i in range(k):
                v[places[i]] = share
                s += np.float64(share)
    else:
        for i in range(k):
            margin = 1.0 + top + np.float64(values[i])
            if margin > 0.0:
                value += margin / k
                v[places[i]] = share
                s += np.float64(share)
    close_at_label(v, y, s)
    return max(value, 0.0)


@njit
def smooth_hinge_value(z, top, x, s, gamma, y):
    # 1 + u = gamma (z + top)
    value = top * s
    for j in range(z.shape[0]):
        if j != y and x[j] > 0:
            value += np.float64(x[j]) * (np.float64(z[j]) - 0.5 * np.float64(x[j]))
    return max(gamma * value, 0.0)


@njit
def _value_gradient(loss, f, y, v, work):
    if loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        return _subgradient(loss, f, y, v, work)
    return _value_from(loss, f, y, np.zeros(2), v, work)


@njit
def _value_from(loss, f, y, start, v, work):
    """Value and gradient of a smoothed hinge, from the last theta and cap if there are some."""
    count = solve_listed(loss, f, y, 0.0, start, work)
    places, x = listed_places(work), work[1]
    s = write_listed(work, count, y, v)
    if s == 0.0:
        return 0.0
    # <1 + u, x> - gamma/2 |x|^2, relative to one of the listed classes: scores may be huge.
    base = np.float64(f[places[0]])
    value = s * (1.0 + (base - np.float64(f[y])))
    for t in range(count):
        share = np.float64(x[t])
        value += share * ((np.float64(f[places[t]]) - base) - 0.5 * loss.gamma * share)
    return max(value, 0.0)


@njit
def _curvature_beta(loss, f, y, step, hessian, work):
    """(D - e e' / |F|) / gamma on the entries F strictly inside their bounds, e = 1 on F.

    The second term is there if the bound on the sum holds with equality. Otherwise the label's
    row and column make all rows add up to zero.
    """
    x = work[2]
    start = np.zeros(2)
    count = solve_listed(loss, f, y, 0.0, start, work[:2])
    write_listed(work[:2], count, y, x)
    bound = start[0] > 0.0  # theta
    cap = x.dtype.type(1.0 / loss.k)
    inside = 0
    for j in range(f.shape[0]):
        if j != y and 0 < x[j] < cap:
            inside += 1
    hessian[:] = 0
    inverse = 1.0 / loss.gamma
    shared = inverse / inside if bound and inside > 0 else 0.0
    for a in range(f.shape[0]):
        if a == y or not 0 < x[a] < cap:
            continue
        for b in range(f.shape[0]):
            if b != y and 0 < x[b] < cap:
                hessian[a, b] = -shared
        hessian[a, a] += inverse
        if not bound:
            hessian[a, y] = -inverse
            hessian[y, a] = -inverse
            hessian[y, y] += inverse


@njit(sums=True)
def sum_of_squares(v):
    squares = 0.0
    for j in range(v.shape[0]):
        squares += np.float64(v[j]) * np.float64(v[j])
    return squares


@njit
def conjugate_of_hinge(loss, v, y):
    squares = sum_of_squares(v) - np.float64(v[y]) * np.float64(v[y])
    return 0.5 * loss.gamma * squares - sum_of_wrong(v, y)


@njit
def _step_of_two(loss, q, y, eta, v):
    """The dual step with one wrong label, where x is a number: visits on the support ask often."""
    margin = 1.0 + (np.float64(q[1 - y]) - np.float64(q[y]))
    x = v.dtype.type(min(max(margin / (2.0 * eta + loss.gamma), 0.0), 1.0 / loss.k))
    v[1 - y] = x
    v[y] = -x


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        _subgradient(loss, q, y, v, work)
    else:
        write_listed(work, solve_listed(loss, q, y, eta, start, work), y, v)


@njit
def _dual_step_beta(loss, q, y, eta, start, v, work):
    if loss.k > 1 or eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        _dual_step(loss, q, y, eta, start, v, work)
    elif q.shape[0] == 2:
        _step_of_two(loss, q, y, eta, v)
    else:
        write_listed(work, solve_on_simplex(q, y, eta, loss.gamma, start, work), y, v)


@njit
def _slope(loss, q, y, eta, v, step, slopes, work):
    """The derivative of x and -s by that of the margins b = q - q_y, on the face that x lies on.

    Entries F strictly inside their bounds move freely, and alpha's entries U at their cap s/k with
    s. With a = eta + gamma, dx and ds minimise

        a/2 |dx|^2 + eta/2 ds^2 - <db, dx>    over  sum over F of dx = c ds,  c = 1 - |U|/k

    and ds = 0 if the sum is at its bound. lambda is the multiplier of the condition. For beta, U
    stays and c = 1.
    """
    joint = is_joint(loss)
    s = -np.float64(v[y])
    cap = (s if joint else 1.0) / loss.k - _NEAR_A_BOUND
    inside, capped = 0, 0
    for j in range(v.shape[0]):
        if j != y and v[j] > 0:
            inside += v[j] < cap
            capped += joint and v[j] >= cap
    a = eta + loss.gamma
    bound = s >= 1.0 - _NEAR_A_BOUND
    c = 1.0 - capped / loss.k
    bend = max(a * capped / loss.k**2 + eta, np.finfo(np.float64).tiny)
    rest = inside / a + (0.0 if bound else c * c / bend)
    slopes[:] = 0
    for i in range(v.shape[0]):
        free = v[i] < cap
        if i == y or not v[i] > 0 or not (free or joint):
            continue
        right = 1.0 / a if free else (0.0 if bound else -c / (loss.k * bend))
        multiplier = right / rest if rest > 0.0 else 0.0
        ds = 0.0 if bound else ((0.0 if free else 1.0 / loss.k) + c * multiplier) / bend
        if inside == 0 and c > _NEAR_A_BOUND:
            ds = 0.0
        for j in range(v.shape[0]):
            if j != y and v[j] > 0:
                if v[j] < cap:
                    slopes[i, j] = ((1.0 if i == j else 0.0) - multiplier) / a
                elif joint:
                    slopes[i, j] = ds / loss.k
        slopes[i, y] = -ds
        for j in range(v.shape[0]):
            slopes[y, j] -= slopes[i, j]


@njit
def _share_near(loss, s, y, cost, eta, start, v, g, work):
    """The example's share of the gap; its gradient is looked for near the last dual.

    If the scores were those of the last visit's end, x would be the gradient too: for entries
    between the bounds  1 + s_j - s_y = (eta + gamma) (x_j + theta) - eta (x_j - v_y).
    """
    if loss.gamma < MIN_SCALE_TO_DIVIDE_BY:
        return gap_share(loss, s, y, cost, v, g, work)
    near = np.empty(2)
    near[0] = ((eta + loss.gamma) * start[0] + eta * np.float64(v[y])) / loss.gamma
    near[1] = start[1]
    return share_of_value(loss, _value_from(loss, s, y, near, g, work), s, y, cost, v)


@overloaded(apart=True)
def _gap_share(loss, s, y, cost, eta, start, v, g, work):
    """Compiled separately: few visits measure their gap, and this is a fifth of the code."""
    return _share_near


@njit
def _ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """The exact visit; only listed classes and those with duals so far take part."""
    eta = cost * kappa
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY or s.shape[0] == 2:
        return ascend_exactly_apart(loss, s, y, cost, kappa, start, stands_for, v, delta, work)
    share = 0.0
    if stands_for > 0:
        share = _gap_share(loss, s, y, cost, eta, start, v, delta, work) * stands_for
    _take_out(s, eta, cost, v, delta)
    _put_in(work, solve_listed_apart(loss, s, y, eta, start, work), y, cost, v, delta)
    return share


@njit
def _take_out(s, eta, cost, v, delta):
    """The residual scores, and the change if the new dual were zero."""
    e, c = s.dtype.type(eta), s.dtype.type(cost)
    for j in range(s.shape[0]):
        s[j] += e * v[j]
        delta[j] = c * v[j]


@njit
def _put_in(work, count, y, cost, v, delta):
    """Fill v from the listed classes; the change is a multiple of old v less new v there."""
    places, c = listed_places(work), delta.dtype.type(cost)
    delta[y] = v[y]
    for t in range(count):
        delta[places[t]] = v[places[t]]
    write_listed(work, count, y, v)
    delta[y] = c * (delta[y] - v[y])
    for t in range(count):
        delta[places[t]] = c * (delta[places[t]] - v[places[t]])


@njit
def _ascend_beta(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """The exact visit, at k = 1 in as few passes as there can be: rows are short, or many."""
    eta = cost * kappa
    if eta + loss.gamma < MIN_SCALE_TO_DIVIDE_BY or (loss.k > 1 and s.shape[0] == 2):
        return ascend_exactly_apart(loss, s, y, cost, kappa, start, stands_for, v, delta, work)
    share = 0.0
    if stands_for > 0:
        if loss.k == 1 and loss.gamma == 0.0:
            share = _gap_share_on_simplex(s, y, cost, v) * stands_for
        else:
            share = _gap_share(loss, s, y, cost, eta, start, v, delta, work) * stands_for
    _take_out(s, eta, cost, v, delta)
    if loss.k == 1:
        count = solve_on_simplex(s, y, eta, loss.gamma, start, work)
    else:
        count = solve_listed_apart(loss, s, y, eta, start, work)
    _put_in(work, count, y, cost, v, delta)
    return share


@njit
def _gap_share_on_simplex(s, y, cost, v):
    """C [L(s) - sum x - <s, v>] of the multiclass hinge; <s, v> relative to the label's score."""
    own = np.float64(s[y])
    value = max(1.0 + (np.float64(largest_wrong(s, y)) - own), 0.0)
    return max(cost * (value - _sum_of_margins(s, v, own)), 0.0)


@njit(sums=True)
def _sum_of_margins(s, v, own):
    """The sum of v_j (1 + s_j - own) over the wrong labels, the label's own term being left out."""
    total = 0.0
    for j in range(s.shape[0]):
        # The label's margin would be one, and its dual is not positive.
        total += max(np.float64(v[j]), 0.0) * (1.0 + (np.float64(s[j]) - own))
    return total


@njit
def _violation_beta(loss, v, y):
    return simplex_violation(v, y, 0.0, 1.0 / loss.k)


@njit
def _violation_alpha(loss, v, y):
    return simplex_violation(v, y, 1.0 / loss.k, 0.0)


register(
    BetaHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation_beta,
        _dual_step_beta,
        ascend=_ascend_beta,
        curvature=_curvature_beta,
        slope=_slope,
        domain=lambda spec: capped(spec.k, joint=False, linear=True),
    ),
)
register(
    AlphaHinge,
    Kernels(
        _value_gradient,
        conjugate_of_hinge,
        _violation_alpha,
        _dual_step,
        ascend=_ascend,
        slope=_slope,
        domain=lambda spec: capped(spec.k, joint=True, linear=True),
    ),
)
