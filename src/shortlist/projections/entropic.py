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
log(1-s) all keep their digits; for eta = 0 the logarithm of the equation is linear in omega.
Newton's method, kept inside a bracket, takes 2 or 3 sweeps from a warm start. All scalars are
double; only sweeps over entries run in the precision of the input.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import njit
from shortlist.projections.rows import check_k, check_nonnegative, check_variant, each_row
from shortlist.projections.selection import largest
from shortlist.projections.threshold import shift_to_maximum
from shortlist.special import V, exp

SIMPLEX, ALPHA, BETA = 0, 1, 2


@njit(inline=True)
def softplus(t):
    """log(1 + exp t)."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@njit(inline=True)
def sigmoid(t):
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@njit(sums=True)
def _sweep(z, g, cap, w):
    """w = min(V(z + g), cap); returns sum w, and minus the derivative of the sum in g's stead."""
    one = z.dtype.type(1)
    shift = z.dtype.type(g)
    most = z.dtype.type(cap)
    total = z.dtype.type(0)
    slope = z.dtype.type(0)
    for j in range(z.shape[0]):
        v = V(z[j] + shift)
        d = v / (one + v)
        d = d if v < most else z.dtype.type(0)
        v = min(v, most)
        w[j] = v
        total += v
        slope += d
    return np.float64(total), np.float64(slope)


@njit(sums=True)
def _sweep_exp(z, g, cap, w):
    """The same for eta = 0, where exp takes the place of V."""
    shift = z.dtype.type(g)
    most = z.dtype.type(cap)
    total = z.dtype.type(0)
    slope = z.dtype.type(0)
    for j in range(z.shape[0]):
        v = exp(z[j] + shift)
        d = v if v < most else z.dtype.type(0)
        v = min(v, most)
        w[j] = v
        total += v
        slope += d
    return np.float64(total), np.float64(slope)


@njit
def _solve_omega(z, top, eta, k, u, capped, cap, omega, w):
    """Solve for omega with the ``u`` entries of sum ``capped`` (less top each) held at s/k.

    ``z`` is a - top with the held entries at -inf. Leaves eta x (x if eta = 0) of the free
    entries in ``w`` and returns omega, sigma - top.
    """
    share = u / k
    free_share = 1.0 - share
    log_eta = math.log(eta) if eta > 0.0 else 0.0
    scale = eta if eta > 0.0 else 1.0
    # Once a Newton step is this short, the correction to first order below ends the search.
    short = math.sqrt(np.finfo(z.dtype).eps)
    low = -np.inf
    high = max(0.0, (top + capped / k) / free_share + math.log(z.shape[0]) + math.log(k)) + 2.0
    omega = min(omega, high)
    sigma = 0.0
    for trial in range(200):
        s = sigmoid(omega)
        rest = sigmoid(-omega)
        log_s = -softplus(-omega)
        sigma = eta * s + softplus(omega) - capped / k - share * top
        d_sigma = eta * s * rest + s
        if u > 0:
            sigma += share * (eta * s / k + log_s - math.log(k))
            d_sigma += share * (eta * s / k + 1.0) * rest
        sigma = sigma / free_share - top
        d_sigma /= free_share
        if eta > 0.0:
            total, slope = _sweep(z, log_eta - sigma, cap * scale, w)
        else:
            total, slope = _sweep_exp(z, -sigma, cap, w)
        if total > 0.0:
            excess = math.log(total / scale) - math.log(free_share) - log_s
            step = excess / (slope / total * d_sigma + rest)
        else:
            excess = -np.inf
            step = -np.inf
        if excess > 0.0:
            low = omega
        else:
            high = omega
        change = step * d_sigma
        if abs(change) <= short and abs(step) <= 1.0:
            # First order in sigma: V' = V / (1 + V), exp' = exp.
            sigma += change
            omega += step
            one = z.dtype.type(1)
            c = z.dtype.type(change)
            most = z.dtype.type(cap * scale)
            if eta > 0.0:
                for j in range(z.shape[0]):
                    w[j] = min(w[j] * (one - c / (one + w[j])) if w[j] < most else most, most)
            else:
                for j in range(z.shape[0]):
                    w[j] = min(w[j] * (one - c) if w[j] < most else most, most)
            break
        new = omega + step
        if not (low < new < high) or trial > 30:
            new = low + 0.5 * (high - low) if low > -np.inf else min(2.0 * omega, omega - 1.0)
            if new in (low, high):
                break
        omega = new
    return omega, sigma


@njit
def _solve_all_capped(mean, eta, k):
    """x_j = s/k for all k entries: omega + eta (1 + 1/k) s = mean + log k."""
    target = mean + math.log(k)
    weight = eta * (1.0 + 1.0 / k)
    low = target - weight
    high = target
    omega = target if target < 0.0 else max(low, 0.0)
    for _ in range(200):
        s = sigmoid(omega)
        excess = target - omega - weight * s
        if excess > 0.0:
            low = omega
        else:
            high = omega
        new = omega + excess / (1.0 + weight * s * sigmoid(-omega))
        if not (low <= new <= high):
            new = low + 0.5 * (high - low)
        if abs(new - omega) <= 4e-16 * abs(new) or new in (low, high):
            return new
        omega = new
    return omega


@njit
def entropic_step(z, top, eta, k, kind, count, start, x):
    """Solve the problem above for a = z + top, where z has maximum 0 (excluded entries: -inf).

    ``count`` is the number of entries that are not excluded. ``start`` holds a guess of omega
    and of u and receives the solution's. Writes x and returns (value, s), where value is
    <a,x> - <x, log x> - (1-s) log(1-s), the loss itself if eta = 0. Destroys z.
    """
    m = z.shape[0]
    # Below this the quadratic term is lost in rounding, and V(. + log eta)/eta with it.
    if eta < 0.25 * np.finfo(z.dtype).eps:
        eta = 0.0
    scale = eta if eta > 0.0 else 1.0
    omega = start[0]

    if kind == ALPHA and count == k:
        total = 0.0
        for j in range(m):
            if z[j] > -np.inf:
                total += np.float64(z[j])
        omega = _solve_all_capped(top + total / k, eta, k)
        start[0] = omega
        s = sigmoid(omega)
        each = z.dtype.type(s / k)
        for j in range(m):
            x[j] = each if z[j] > -np.inf else z.dtype.type(0)
        log_each = -softplus(-omega) - math.log(k)
        return s * (top + total / k - log_each) + sigmoid(-omega) * softplus(omega), s

    if kind != ALPHA or k == 1:
        cap = 1.0 / k if kind == BETA and k > 1 else np.inf
        omega, sigma = _solve_omega(z, top, eta, 1, 0, 0.0, cap, omega, x)
        start[0] = omega
        inverse = z.dtype.type(1.0 / scale)
        most = z.dtype.type(cap)
        s = 0.0
        value = 0.0
        for j in range(m):
            x[j] = min(x[j] * inverse, most)
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
    for _ in range(4 * k + 4):
        omega, sigma = _solve_omega(z, top, eta, k, u, capped, np.inf, omega, x)
        # What an entry at the cap would have in z: free entries above it must be capped,
        # capped entries below it set free.
        s = sigmoid(omega)
        edge = eta * s / k - softplus(-omega) - math.log(k) + sigma
        slack = 8.0 * np.finfo(z.dtype).eps * (1.0 + abs(edge))
        if u < k - 1 and np.float64(values[u]) > edge + slack:
            capped += np.float64(values[u])
            z[places[u]] = -np.inf
            u += 1
        elif u > 0 and np.float64(values[u - 1]) < edge - slack:
            u -= 1
            capped -= np.float64(values[u])
            z[places[u]] = values[u]
        else:
            break
    start[0] = omega
    start[1] = u
    inverse = z.dtype.type(1.0 / scale)
    s = sigmoid(omega)
    each = s / k
    total = 0.0
    for j in range(m):
        x[j] = x[j] * inverse
        total += np.float64(x[j])
    for i in range(u):
        x[places[i]] = z.dtype.type(each)
    free = total
    total += u * each
    value = free * (sigma + top) + sigmoid(-omega) * softplus(omega)
    if u > 0:
        value += each * (capped + u * (top - math.log(each)))
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
