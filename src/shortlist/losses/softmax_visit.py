"""Visits of SDCA for softmax, at a small part of the exact step's price.

With p = v but p_y = 1 + v_y, and eta = C_i kappa_i, the exact step maximises

    Phi(p) = <s, p> - <p, log p> - eta/2 |p - p_old|^2   over the simplex,

that is,  eta p_j + log p_j = eta p_old_j + s_j - t  for some t. A visit needs any p whose Phi is
not below that of p_old. Two steps come close to the best with one transcendental function a class:

- from the last dual, which is a good start once an example has been visited;
- from the scores, for a first visit: without eta/2 |p - p_old|^2 the best p is softmax of s.

Both bound the gain of Phi from below. Where the bound is negative the exact step is taken.
"""

import math

import numpy as np

from shortlist._jit import njit, overloaded
from shortlist.losses.differences import close_at_label, largest_wrong
from shortlist.losses.kernels import ascend_exactly, ascend_exactly_apart
from shortlist.projections.entropic import balance, sigmoid, softplus
from shortlist.special import exp, log

# The series below is trusted for residuals between these bounds. Beyond, a step moves as far as
# they allow, and the next visit goes on.
_MIN_RESIDUAL, _MAX_RESIDUAL = -2.3, 1.8
# The step of fourth order by d leaves at most 0.027 d^4 of its equation, whatever eta: a test looks
# at all d and eta. Scaled by at most _MAX_SCALE, that is at most this.
_STEP_ERROR, _MAX_SCALE = 0.03, 1.1
# Above this mean of the squared residuals a visit takes another step: it gains more than it costs.
_MAX_SPREAD = 0.25
# The same for first visits, which start from the scores. Above it they take the exact step, which
# costs ten times as much.
_MAX_SPREAD_FROM_SCORES = 1.0
# A class whose residual is beyond the bounds is left to the other steps if its new share exceeds
# this. From next to nothing it would take many visits.
_NEGLIGIBLE = 0.02
# A label with a smaller share is left to the other steps: 1 + v_y has lost its digits.
_MIN_LABEL_SHARE = 1e-3
# The correction of t on a first visit, at most: it is of first order only.
_MAX_CORRECTION = 0.5


@njit(sums=True)
def _residuals(s, p, eta, r, damping):
    """r_j = s_j - log p_j and damping_j = 1 / (1 + eta p_j); a_j = p_j damping_j.

    Returns the sums of a_j and of a_j r_j.
    """
    tiny = np.finfo(s.dtype).tiny
    one = s.dtype.type(1)
    e = s.dtype.type(eta)
    weights = s.dtype.type(0)
    weighted = s.dtype.type(0)
    for j in range(s.shape[0]):
        x = max(p[j], tiny)
        r[j] = s[j] - log(x)
        u = one / (one + e * x)
        damping[j] = u
        weights += x * u
        weighted += x * u * r[j]
    return np.float64(weights), np.float64(weighted)


@njit(inline=True)
def _moved(x, r, eta, one, half, two_thirds):
    """p with  eta p + log p = eta x + log x + r,  by one step of fourth order from x."""
    o = one + eta * x
    c = o * (o + two_thirds * r)
    return x + x * (r / o) * ((c - half * r) / (c - r))


@njit(inline=True)
def _moved_with_gain(x, d, u, half_eta, one, half, two_thirds, error):
    """x moved by d as in :func:`_moved`, u = 1 / (1 + eta x), and its part of the gain below."""
    step = d * u
    more = half * step * u / (one + two_thirds * step - step * u)
    h = step + step * more
    z = x + x * h
    square = d * d
    return z, x * (d * more + half_eta * x * (h * h)) - error * z * (square * square)


@njit(sums=True)
def _move(s, r, p, eta, t, new):
    """new = p moved by r - t, where ``new`` holds 1 / (1 + eta p) before. Returns seven sums.

    With d = r - t within the bounds, z = p (1 + h) the entries of new, and e <= _STEP_ERROR d^4
    what is left of the step's equation, log(1 + h) = d + e - eta p h. Then

        F(q) = <r - t, q> - <q, log(q / p)> + sum q - eta/2 |q - p|^2,

    which is Phi on the simplex but for a constant, gains from p to z

        sum of  p (d (h / (u d) - 1) + eta/2 p h^2) - z e + (r - t - d) (z - p),

    u = 1 / (1 + eta p), and from z to z / T, with T = sum z,

        1 - T + log T - eta/2 (1/T - 1)^2 |z|^2 + (1/T - 1) sum of ((r - t - d) z - z e).

    Returned are T; the sum of the gains but for the last term; the sum of p d^2; a number that is
    positive if an entry held back at the bound should become more than negligible, its equation
    being  eta z + log z = eta p + s - t;  |z|^2; the sums of (r - t - d)(z - p) and (r - t - d) z.
    """
    number = r.dtype.type
    tiny = np.finfo(r.dtype).tiny
    one, half, two_thirds = number(1), number(0.5), number(2 / 3)
    e, half_eta, shift = number(eta), number(0.5 * eta), number(t)
    least, most = number(_MIN_RESIDUAL), number(_MAX_RESIDUAL)
    negligible = number(eta * _NEGLIGIBLE + math.log(_NEGLIGIBLE))
    error = number(_STEP_ERROR)
    zero = number(0)
    total, gain, spread, held, square, beyond, beyond_new = zero, zero, zero, zero, zero, zero, zero
    for j in range(r.shape[0]):
        x = max(p[j], tiny)
        full = r[j] - shift
        excess = min(max(s[j] - shift + e * x - negligible, zero), one)
        held += excess if full > most else zero
        d = min(max(full, least), most)
        z, part = _moved_with_gain(x, d, new[j], half_eta, one, half, two_thirds, error)
        new[j] = z
        total += z
        gain += part
        spread += x * d * d
        square += z * z
        beyond += (full - d) * (z - x)
        beyond_new += (full - d) * z
    sums = np.float64(total), np.float64(gain), np.float64(spread), held
    return *sums, np.float64(square), np.float64(beyond), np.float64(beyond_new)


@njit(sums=True)
def _shift_level(new, eta, dt):
    """new -= dt new / (1 + eta new); returns the sum."""
    one = new.dtype.type(1)
    e, d = new.dtype.type(eta), new.dtype.type(dt)
    total = new.dtype.type(0)
    for j in range(new.shape[0]):
        x = new[j]
        x -= x / (one + e * x) * d
        new[j] = x
        total += x
    return np.float64(total)


@njit(inline=True)
def _divergence_of(d, x, one, half, third):
    """An upper bound of  (x + d) log((x + d) / x) - d  for d >= -x.

    With h = d / x it is x times  (1 + h) log(1 + h) - h = h^2/2 (1 - h/3 + h^2/6 - h^3/10 + ...).
    The series is at most  (1 + h/6) / (1 + h/2)  for h >= 0, which has the same first three terms,
    and at most  1 - h/3 + 2 h^2/3  for -1 <= h <= 0, where all its terms are positive and sum to 2.
    """
    zero = one - one
    h = d / x
    more, less = max(h, zero), max(-h, zero)
    series = (one + half * third * more) / (one + half * more) + less * third * (one + less + less)
    return half * (d * h) * series


@njit
def _take(new, scale, wrong, y, last, cost, v, delta):
    """Set v to scale * new, with the sum ``wrong``, and delta to the change of the weights."""
    factor = v.dtype.type(scale)
    c = v.dtype.type(cost)
    for j in range(v.shape[0]):
        x = new[j] * factor
        delta[j] = c * (v[j] - x)
        v[j] = x
    close_at_label(v, y, wrong)
    delta[y] = v.dtype.type(cost * (last - np.float64(v[y])))


@njit(sums=True)
def _shifted_exponentials(s, top, p, e):
    """e_j = exp(s_j - top); returns the sums of e_j, of e_j^2 and of e_j p_j."""
    zero = s.dtype.type(0)
    total, squares, before = zero, zero, zero
    for j in range(s.shape[0]):
        x = exp(s[j] - top)
        e[j] = x
        total += x
        squares += x * x
        before += x * p[j]
    return np.float64(total), np.float64(squares), np.float64(before)


@njit(sums=True)
def _move_from(e, factor, p, eta, mean, new):
    """new = x moved by r = eta (p - x - mean), x = factor e.

    Returns the sums of new, of new / (1 + eta new) and of x r^2.
    """
    number = e.dtype.type
    one, half, two_thirds = number(1), number(0.5), number(2 / 3)
    scale, by, middle = number(factor), number(eta), number(mean)
    least, most = number(_MIN_RESIDUAL), number(_MAX_RESIDUAL)
    zero = number(0)
    total, slope, spread = zero, zero, zero
    for j in range(e.shape[0]):
        x = e[j] * scale
        d = min(max(by * (p[j] - x - middle), least), most)
        z = _moved(x, d, by, one, half, two_thirds)
        new[j] = z
        total += z
        slope += z / (one + by * z)
        spread += x * d * d
    return np.float64(total), np.float64(slope), np.float64(spread)


@njit(sums=True)
def _divergence_and_distance(e, inverse_total, p, new, inverse_sum, scale):
    """An upper bound of the divergence of new from e, both as distributions; |scale new - p|^2."""
    number = e.dtype.type
    tiny = np.finfo(e.dtype).tiny
    one, half, third = number(1), number(0.5), number(1 / 3)
    of_e, of_new, factor = number(inverse_total), number(inverse_sum), number(scale)
    divergence, distance = number(0), number(0)
    for j in range(e.shape[0]):
        x = max(e[j] * of_e, tiny)
        d = new[j] * of_new - x
        divergence += _divergence_of(d, x, one, half, third)
        change = new[j] * factor - p[j]
        distance += change * change
    return np.float64(divergence), np.float64(distance)


@njit(inline=True)
def _binary_divergence(p, log_odds, other_odds):
    """Of (p, 1-p), whose log odds are given, from the distribution with other log odds."""
    return p * (log_odds - other_odds) + softplus(other_odds) - softplus(log_odds)


@njit
def _ascend_from_scores(s, y, cost, kappa, start, v, delta, work):
    """A visit that starts from softmax of the scores.

    Returns a lower bound of the example's share of the gap, or -1 if the step was not taken.

    With e_j = exp(s_j) over the wrong labels, E their sum, it takes x_j = (1 - z) e_j / E and finds
    the label's share z from one scalar equation, in which eta p_j is replaced by its mean over x.
    What is left, r_j = eta (p_old_j - x_j) less its mean, is small where eta is, or where the wrong
    labels share what is theirs. One step of fourth order for each class, one correction of t and a
    scaling do the rest.

    Phi is a constant less KL(p, softmax s) + eta/2 |p - p_old|^2. For p the divergence is split
    into the label's and that within the wrong labels, which is bounded as in the other step; for
    p_old the label's part is a lower bound (exact before the first visit, when p_old is the label).
    """
    eta = cost * kappa
    e, new = work[0], work[1]
    last = np.float64(v[y])
    p = 1.0 + last
    v[y] = 0
    score = s[y]
    top = largest_wrong(s, y)
    s[y] = -np.inf
    total, squares, before = _shifted_exponentials(s, top, v, e)
    s[y] = score
    # Means over x of p_old_j and, but for the factor 1 - z, of x_j.
    before /= total
    crowding = squares / (total * total)
    odds = np.float64(score) - np.float64(top) - math.log(total)
    found = balance(odds + eta * (p - before + crowding), eta * (1.0 + crowding))
    z, rest = sigmoid(found), sigmoid(-found)
    mean = before - rest * crowding
    moved, slope, spread = _move_from(e, rest / total, v, eta, mean, new)
    dt = (moved + z - 1.0) / (slope + z / (1.0 + eta * z))
    dt = min(max(dt, -_MAX_CORRECTION), _MAX_CORRECTION)
    moved = _shift_level(new, eta, dt)
    q = z - z / (1.0 + eta * z) * dt
    scale = 1.0 / (moved + q)
    divergence, distance = _divergence_and_distance(e, 1.0 / total, v, new, 1.0 / moved, scale)
    wrong, right = moved * scale, q * scale
    loss = wrong * divergence + _binary_divergence(right, math.log(q / moved), odds)
    loss += 0.5 * eta * (distance + (right - p) ** 2)
    if last == 0.0:
        at_start = softplus(-odds)
    else:
        at_start = _binary_divergence(p, math.log(p / -last), odds)
    v[y] = last
    if not (loss <= at_start and spread <= _MAX_SPREAD_FROM_SCORES):
        return -1.0
    start[0] = math.log(moved / q)
    _take(new, scale, wrong, y, last, cost, v, delta)
    return cost * at_start


@njit
def _ascend_anew(loss, s, y, cost, kappa, start, v, delta, work):
    """A visit whose last dual is of no use."""
    share = _ascend_from_scores(s, y, cost, kappa, start, v, delta, work)
    if share >= 0.0:
        return share
    return ascend_exactly(loss, s, y, cost, kappa, start, 1, v, delta, work)


@overloaded(apart=True)
def _ascend_anew_apart(loss, s, y, cost, kappa, start, v, delta, work):
    return _ascend_anew


@njit
def ascend_softmax(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """A visit that starts from the example's last dual, or from the scores on the first.

    With r_j = s_j - log p_old_j, which are all the same at a solution, the step solves  eta p_j +
    log p_j = r_j + eta p_old_j + log p_old_j - t,  sum p = 1.  From p_old it takes t by one Newton
    step, each p_j by one step of fourth order, and scales. The share of the gap is 1/2 Var_p(r) to
    second order, and free: every visit measures it. The other steps are half of the code and are
    compiled apart: after an example's first visit few take them.
    """
    eta = cost * kappa
    last = np.float64(v[y])
    p = 1.0 + last
    if start[0] == 0.0 or last == 0.0 or p < _MIN_LABEL_SHARE:
        return _ascend_anew_apart(loss, s, y, cost, kappa, start, v, delta, work)
    r, new = work[0], work[1]
    v[y] = 0
    weights, weighted = _residuals(s, v, eta, r, new)
    score = s[y]
    own = np.float64(score) - math.log(p)
    a = p / (1.0 + eta * p)
    t = (weighted + a * own) / (weights + a)
    s[y] = -np.inf  # the label is moved below
    total, gain, spread, held, square, beyond, beyond_new = _move(s, r, v, eta, t, new)
    s[y] = score
    residual = min(max(own - t, _MIN_RESIDUAL), _MAX_RESIDUAL)
    spread += p * residual * residual
    if spread > _MAX_SPREAD or held > 0:
        v[y] = last
        return _ascend_anew_apart(loss, s, y, cost, kappa, start, v, delta, work)
    q, part = _moved_with_gain(p, residual, a / p, 0.5 * eta, 1.0, 0.5, 2 / 3, _STEP_ERROR)
    further = own - t - residual
    wrong = total - np.float64(new[y])
    new[y] = 0
    total = wrong + q
    scale = 1.0 / total
    gain += part + beyond + further * (q - p) + (scale - 1.0) * (beyond_new + further * q)
    gain += 1.0 - total + math.log(total) - 0.5 * eta * (scale - 1.0) ** 2 * (square + q * q)
    if not (gain >= 0.0 and scale <= _MAX_SCALE):
        v[y] = last
        return ascend_exactly_apart(loss, s, y, cost, kappa, start, 1, v, delta, work)
    _take(new, scale, wrong * scale, y, last, cost, v, delta)
    return 0.5 * cost * spread
