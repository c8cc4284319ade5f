"""Entropic steps: the dual steps of softmax and of the top-k entropies.

    min  <x, log x> + (1-s) log(1-s) - <a,x> + eta/2 (|x|^2 + s^2)   over x in the set, s = <1,x>

The set is the simplex (k = 1), the top-k simplex alpha (x_j <= s/k) or beta (x_j <= 1/k), all
with s <= 1, whose bound the logarithm keeps. With multipliers for the caps, p their sum, the
free entries satisfy  eta x_j + log x_j = a_j - sigma,  that is

    x_j = V(a_j + log eta - sigma) / eta      (eta = 0:  x_j = exp(a_j - sigma)),
    sigma = eta s - log(1-s) - p/k   (alpha),     sigma = eta s - log(1-s)   (simplex, beta).

With u entries at the alpha cap, B their sum in a and psi = eta s/k + log(s/k), eliminating p gives

    sigma (1 - u/k) = eta s - log(1-s) - B/k + (u/k) psi.

So sigma is a function of s alone and one scalar equation is left: the sum of the free entries
equals s less the capped ones. Its unknown is omega = log(s / (1-s)), in which s, 1-s and
log(1-s) all keep their digits. With M the largest free entry of a and n the number of free ones,

    omega = base + delta,   base = (1 - u/k) (M - log(1 - u/k)) + B/k + (u/k) log k,
    sigma = M - log(1 - u/k) - log s + (eta s (1 + u/k^2) + delta) / (1 - u/k),

so that delta is a matter of eta and n only, however large a is; bounding the largest free entry
by (1 - u/k) s from above and by its n-th part from below,

    -eta (1 + u/k^2 + (1 - u/k)^2) <= delta <= (1 - u/k) log n.

For eta = 0 without caps at 1/k, delta = (1 - u/k) log sum exp(a_j - M) over the free entries.
Otherwise Newton's method, kept inside these bounds, takes 2 or 3 sweeps from a warm start. All
scalars are double; only sweeps over entries run in the precision of the input.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import njit
from shortlist._parameters import check_k
from shortlist.projections.checks import check_nonnegative, check_variant, each_row
from shortlist.projections.selection import largest
from shortlist.projections.threshold import (
    MAX_NEWTON_TRIALS,
    MAX_TRIALS,
    less,
    shift_to_maximum,
    split,
)
from shortlist.special import V, exp

SIMPLEX, ALPHA, BETA = 0, 1, 2
# By how much the bounds of a root are widened, for rounding in the sweeps.
ROOM_FOR_ROUNDING = 0.1
# The last step of Newton's method is made to first order, without a sweep, if it is at most this.
MAX_STEP_OF_FIRST_ORDER = 1e-3
# Relative changes of a number in double below this are rounding.
ROUNDING_OF_ROOT = 4e-16


@njit(inline=True)
def softplus(t):
    """log(1 + exp t)."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@njit(inline=True)
def sigmoid(t):
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@njit(sums=True)
def sweep(z, first, second, cap, w):
    """w = min(V(z - first - second), cap); returns the sum of w and its slope, both positive."""
    one = z.dtype.type(1)
    most = z.dtype.type(cap)
    total = z.dtype.type(0)
    slope = z.dtype.type(0)
    for j in range(z.shape[0]):
        v = V(less(z[j], first, second))
        d = v / (one + v)
        d = d if v < most else z.dtype.type(0)
        v = min(v, most)
        w[j] = v
        total += v
        slope += d
    return np.float64(total), np.float64(slope)


@njit(sums=True)
def sweep_exp(z, first, second, cap, w):
    """The same for eta = 0, where exp takes the place of V."""
    most = z.dtype.type(cap)
    total = z.dtype.type(0)
    slope = z.dtype.type(0)
    for j in range(z.shape[0]):
        v = exp(less(z[j], first, second))
        d = v if v < most else z.dtype.type(0)
        v = min(v, most)
        w[j] = v
        total += v
        slope += d
    return np.float64(total), np.float64(slope)


@njit
def balance(target, weight):
    """Solve  omega + weight sigmoid(omega) = target."""
    low = target - weight
    high = target
    omega = target if target < 0.0 else max(low, 0.0)
    for _ in range(MAX_TRIALS):
        s = sigmoid(omega)
        excess = target - omega - weight * s
        if excess > 0.0:
            low = omega
        else:
            high = omega
        new = omega + excess / (1.0 + weight * s * sigmoid(-omega))
        if not (low <= new <= high):
            new = low + 0.5 * (high - low)
        if abs(new - omega) <= ROUNDING_OF_ROOT * abs(new) or new in (low, high):
            return new
        omega = new
    return omega


@njit
def _solve_omega(z, ref, top, eta, k, u, capped, count, cap, omega, w):
    """Solve for omega with the ``u`` entries of sum ``capped`` (less top each) held at s/k.

    ``z`` is a - top with the held entries at -inf, ``ref`` the largest of the ``count`` others,
    ``omega`` a guess. Writes x of the free entries to ``w`` and returns omega, sigma - top.
    """
    share = u / k
    free_share = 1.0 - share
    log_free = math.log(free_share)
    base = top + free_share * (ref - log_free) + capped / k + share * math.log(k)
    high = free_share * math.log(count)
    precision = np.finfo(z.dtype).eps
    # The quadratic term adds eta x_j and eta s to logarithms: below this it is lost in rounding.
    if eta * sigmoid(base + high) < 0.25 * precision:
        eta = 0.0

    if eta == 0.0 and cap == np.inf:
        total, _ = sweep_exp(z, z.dtype.type(ref), z.dtype.type(0), cap, w)
        delta = free_share * math.log(total)
        omega = base + delta
        factor = z.dtype.type(free_share * sigmoid(omega) / total)
        for j in range(z.shape[0]):
            w[j] *= factor
        return omega, ref - log_free + softplus(-omega) + delta / free_share

    log_eta = math.log(eta) if eta > 0.0 else 0.0
    scale = eta if eta > 0.0 else 1.0
    pull = eta * (1.0 + share / k)
    weight = pull + eta * free_share * free_share
    low = -weight
    if cap < np.inf:
        low = min(low, math.log(cap) - base)  # the largest may be capped: then s >= cap
    # The unknown is delta or omega, whichever is the smaller where it matters: the other is
    # their difference from base.
    from_base = base if 2.0 * weight < abs(base) else 0.0
    low += base - from_base - ROOM_FOR_ROUNDING
    high += base - from_base + ROOM_FOR_ROUNDING
    unknown = min(max(omega - from_base, low), high)
    sigma = 0.0
    step = 0.0
    change = 0.0
    for trial in range(MAX_TRIALS):
        omega = from_base + unknown
        delta = unknown - (base - from_base)
        s = sigmoid(omega)
        rest = sigmoid(-omega)
        minus_log_s = softplus(-omega)
        # Relative to ref; M = top + ref.
        sigma = minus_log_s - log_free + (pull * s + delta) / free_share
        d_sigma = (pull * s * rest + 1.0) / free_share - rest
        first, second = split(z, ref, sigma - log_eta)
        if eta > 0.0:
            total, slope = sweep(z, first, second, cap * scale, w)
        else:
            total, slope = sweep_exp(z, first, second, cap, w)
        if 0.0 < total < np.inf:
            excess = math.log(total / scale) - log_free + minus_log_s
            bend = slope / total * d_sigma + rest
            step = excess / bend if bend > 0.0 else np.nan
            change = step * d_sigma
            far = max(abs(change), abs(step))
            if cap == np.inf and abs(change) * far <= precision and far <= 1.0:
                break  # the correction to first order below does the rest; caps would be kinks
            if abs(excess) <= 4.0 * precision or abs(step) <= ROUNDING_OF_ROOT * abs(unknown):
                break  # as good as rounding allows: caps make the equation flat, large eta coarse
            new = unknown + step
        else:
            # Too large an omega by far; this one is a lower bound, and within reach of Newton.
            excess = -1.0 if total == 0.0 else 1.0
            new = balance(base, weight) - from_base if total == 0.0 else np.nan
        if excess > 0.0:
            low = unknown
        else:
            high = unknown
        if not (low < new < high) or trial > MAX_NEWTON_TRIALS:
            new = low + 0.5 * (high - low)
            if new in (low, high):
                break
        unknown = new
    if not (abs(change) <= MAX_STEP_OF_FIRST_ORDER and abs(step) <= 1.0):
        step = 0.0
        change = 0.0
    # First order in sigma: V' = V / (1 + V), exp' = exp.
    one = z.dtype.type(1)
    c = z.dtype.type(change)
    inverse = z.dtype.type(1.0 / scale)
    most = z.dtype.type(cap)
    edge = z.dtype.type(cap * scale)
    if eta > 0.0:
        for j in range(z.shape[0]):
            v = w[j] * (one - c / (one + w[j])) if w[j] < edge else edge
            w[j] = min(v * inverse, most)
    else:
        for j in range(z.shape[0]):
            w[j] = min(w[j] * (one - c) if w[j] < most else most, most)
    return omega + step, ref + sigma + change


@njit
def entropic_step(z, top, eta, k, kind, count, start, x):
    """Solve the problem above for a = z + top, where z has maximum 0 (excluded entries: -inf).

    ``count`` is the number of entries that are not excluded. ``start`` holds a guess of omega
    and of u and receives the solution's. Writes x and returns (value, s), where value is
    <a,x> - <x, log x> - (1-s) log(1-s), the loss itself if eta = 0. Destroys z.
    """
    m = z.shape[0]
    omega = start[0]

    if kind == ALPHA and count == k:
        total = 0.0
        for j in range(m):
            if z[j] > -np.inf:
                total += np.float64(z[j])
        # x_j = s/k for all k entries.
        omega = balance(top + total / k + math.log(k), eta * (1.0 + 1.0 / k))
        start[0] = omega
        s = sigmoid(omega)
        each = z.dtype.type(s / k)
        for j in range(m):
            x[j] = each if z[j] > -np.inf else z.dtype.type(0)
        log_each = -softplus(-omega) - math.log(k)
        return s * (top + total / k - log_each) + sigmoid(-omega) * softplus(omega), s

    if kind != ALPHA or k == 1:
        cap = 1.0 / k if kind == BETA and k > 1 else np.inf
        omega, sigma = _solve_omega(z, 0.0, top, eta, 1, 0, 0.0, count, cap, omega, x)
        start[0] = omega
        most = z.dtype.type(cap)
        s = 0.0
        value = 0.0
        for j in range(m):
            s += np.float64(x[j])
            if x[j] == most:
                value += cap * (np.float64(z[j]) - math.log(cap) - sigma)
        # Free entries have a_j - log x_j = sigma + eta x_j; the losses ask for eta = 0.
        value += s * (sigma + top) + sigmoid(-omega) * softplus(omega)
        return value, s

    values = np.empty(k, z.dtype)
    places = np.empty(k, np.int32)
    largest(z, k, values, places)
    u = min(max(int(start[1]), 0), k - 1)
    capped = 0.0
    for i in range(u):
        capped += np.float64(values[i])
        z[places[i]] = -np.inf
    sigma = 0.0
    direction = 0
    while True:
        omega, sigma = _solve_omega(
            z, np.float64(values[u]), top, eta, k, u, capped, count - u, np.inf, omega, x
        )
        # What an entry at the cap would have in z: free entries above it must be capped,
        # capped entries below it set free. An entry moved across stays on its new side of the
        # edge, by convexity, so that the search goes one way; only rounding could turn it back.
        s = sigmoid(omega)
        edge = eta * s / k - softplus(-omega) - math.log(k) + sigma
        slack = np.finfo(z.dtype).eps + np.finfo(np.float64).eps * (abs(edge) + eta * s)
        if direction >= 0 and u < k - 1 and np.float64(values[u]) > edge + 8.0 * slack:
            direction = 1
            capped += np.float64(values[u])
            z[places[u]] = -np.inf
            u += 1
        elif direction <= 0 and u > 0 and np.float64(values[u - 1]) < edge - 8.0 * slack:
            direction = -1
            u -= 1
            capped -= np.float64(values[u])
            z[places[u]] = values[u]
        else:
            break
    start[0] = omega
    start[1] = u
    s = sigmoid(omega)
    each = s / k
    total = 0.0
    for j in range(m):
        total += np.float64(x[j])
    for i in range(u):
        x[places[i]] = z.dtype.type(each)
    free = total
    total += u * each
    value = free * (sigma + top) + sigmoid(-omega) * softplus(omega)
    if u > 0:
        log_each = -softplus(-omega) - math.log(k)  # finite even if each is 0
        value += each * (capped + u * (top - log_each))
    # Feasible to rounding: no entry above s/k, s as summed.
    cap = z.dtype.type(total / k)
    for j in range(m):
        x[j] = min(x[j], cap)
    return value, total


@njit
def _prox_rows(b, eta, k, kind, x):
    z = np.empty(b.shape[1], b.dtype)
    start = np.zeros(2)
    for i in range(b.shape[0]):
        start[:] = 0.0
        top = shift_to_maximum(b[i], z)
        entropic_step(z, top, eta, k, kind, b.shape[1], start, x[i])


def kind_of(k: int, variant: str) -> int:
    """The kernel's code for a set; all sets coincide at k = 1."""
    if k == 1:
        return SIMPLEX
    return ALPHA if variant == "alpha" else BETA


def prox_entropy(b: ArrayLike, eta: float, k: int = 1, variant: str = "alpha") -> NDArray:
    """Solve  min <x, log x> + (1-s) log(1-s) - <b,x> + eta/2 (|x|^2 + s^2),  s = <1,x> <= 1,

    over x >= 0 (k = 1), over the top-k simplex x_j <= s/k (``variant="alpha"``) or over
    x_j <= 1/k (``variant="beta"``). ``b`` is a vector or a matrix of row vectors.
    """
    eta = check_nonnegative("eta", eta)
    variant = check_variant(variant)
    k = check_k(k, np.shape(b)[-1] if np.ndim(b) else 1, "the number of entries")
    kind = kind_of(k, variant)
    return each_row(b, lambda rows, x: _prox_rows(rows, eta, k, kind, x))
