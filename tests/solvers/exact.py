"""Objectives with 50 digits, as the formulas read: slow, for small data."""

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from tests.instances import Instance

DIGITS = 50
#: What 50 digits leave of an equality, with room.
_TINY = mpf(10) ** -40


def exactly(array: NDArray) -> list[list[mpf]]:
    """The rows of a matrix; every float is a number of so many digits."""
    return [[mpf(float(x)) for x in row] for row in np.asarray(array)]


def _entropy_of(p: mpf) -> mpf:
    return p * mpmath.log(p) if p > 0 else mpf(0)


def _capped_square(short: mpf, gamma: float) -> mpf:
    """max over p in [0, 1] of p short - gamma/2 p^2."""
    p = min(max(short / mpf(gamma), mpf(0)), mpf(1))
    return p * short - mpf(gamma) / 2 * p * p


def _largest(margins: Sequence[mpf], k: int) -> mpf:
    return sum(sorted(margins)[-k:], mpf(0)) / k


def _smooth_hinge(margins: Sequence[mpf], k: int, gamma: float, joint: bool) -> mpf:
    """max of <margins, x> - gamma/2 |x|^2 over 0 <= x_j <= cap, s = <1,x> <= 1.

    The cap is s/k (``joint``: alpha) or 1/k (beta). Shares are in the order of the margins. So the
    largest are at the cap, then some are free, the rest zero: all numbers of each are tried, with
    s free or 1. With s given the free ones share a threshold; the best s is that of a parabola.
    """
    g, best, n = mpf(gamma), mpf(0), len(margins)
    ordered = sorted(margins, reverse=True)
    for at_cap, positive in [(c, f) for c in range(min(k, n) + 1) for f in range(c, n + 1)]:
        capped, free = ordered[:at_cap], ordered[at_cap:positive]

        def at(s: mpf, free=free, capped=capped) -> tuple[mpf, bool]:
            """The largest value with this s, and whether it is attained in the set."""
            cap = s / k if joint else mpf(1) / k
            rest = s - cap * len(capped)
            theta = (sum(free, mpf(0)) - g * rest) / len(free) if free else mpf(0)
            x = [(z - theta) / g for z in free] + [cap] * len(capped)
            gain = sum((z * w - g / 2 * w * w for z, w in zip(free + capped, x, strict=True)))
            inside = all(0 <= w <= cap + _TINY for w in x) and 0 <= s <= 1 + _TINY
            return mpf(gain), inside and (bool(free) or abs(rest) <= _TINY)

        # The gain is a quadratic function of s: three values give its maximum.
        low, middle, high = (at(mpf(s))[0] for s in (0, mpf(1) / 2, 1))
        bend = 2 * (low - 2 * middle + high)
        candidates = [mpf(1), mpf(len(capped)) / k]
        if bend < 0:
            candidates.append(-(high - low - bend) / (2 * bend))
        for s in candidates:
            gain, attained = at(s)
            best = max(best, gain) if attained else best
    return best


def _capped_exponentials(u: Sequence[mpf], k: int, joint: bool) -> list[mpf]:
    """Where the top-k entropy attains its maximum over x.

    Some c of the largest are at the cap, the others proportional to exp(u).
    """
    order = sorted(range(len(u)), key=lambda j: -u[j])
    for c in range(k + 1):
        rest = sum((mpmath.exp(u[j]) for j in order[c:]), mpf(0))
        if joint:  # x = s z; z sums to 1, and log(1 + exp A) is the maximum over s
            share = 1 - mpf(c) / k
            z = [mpf(1) / k] * c + [share * mpmath.exp(u[j]) / rest for j in order[c:]]
            A = sum((w * u[j] - _entropy_of(w) for w, j in zip(z, order, strict=True)), mpf(0))
            x = [w / (1 + mpmath.exp(-A)) for w in z]
            cap = sum(x, mpf(0)) / k
        else:  # x_j = (1 - s) exp(u_j) unless that exceeds the cap
            s = (mpf(c) / k + rest) / (1 + rest)
            cap = mpf(1) / k
            x = [cap] * c + [(1 - s) * mpmath.exp(u[j]) for j in order[c:]]
        if all(w <= cap + _TINY for w in x):
            break
    shares = [mpf(0)] * len(u)
    for j, w in zip(order, x, strict=True):
        shares[j] = w
    return shares


def value(row: Instance, f: Sequence[mpf], y: int) -> mpf:
    """L(y, f) of the entropies, the hinges and the one-vs-all losses."""
    if row.one_vs_all:
        short = [1 + (-s if j == y else s) for j, s in enumerate(f)]
        if row.name == "ova_logistic":
            return sum((mpmath.log1p(mpmath.exp(z - 1)) for z in short), mpf(0))
        return sum((_capped_square(z, row.smoothing) for z in short), mpf(0))
    u = [s - f[y] for j, s in enumerate(f) if j != y]
    joint = row.variant == "alpha"
    if row.name == "entropy" and row.k == 1:
        return mpmath.log1p(sum((mpmath.exp(z) for z in u), mpf(0)))
    if row.name == "entropy":
        x = _capped_exponentials(u, row.k, joint)
        of_label = _entropy_of(1 - sum(x, mpf(0)))
        return sum((z * w - _entropy_of(w) for z, w in zip(u, x, strict=True)), -of_label)
    margins = [1 + z for z in u]
    if row.name == "hinge" and joint:
        return max(mpf(0), _largest(margins, row.k))
    if row.name == "hinge":
        return _largest([max(z, mpf(0)) for z in margins], row.k)
    return _smooth_hinge(margins, row.k, row.smoothing, joint)


def conjugate(row: Instance, v: Sequence[mpf], y: int) -> mpf:
    """L*(y, v), for v in the domain but for rounding."""
    if row.one_vs_all:
        p = [-x if j == y else x for j, x in enumerate(v)]
        if row.name == "ova_logistic":
            return sum((_entropy_of(x) + _entropy_of(1 - x) for x in p), mpf(0))
        return sum((mpf(row.smoothing) / 2 * x * x - x for x in p), mpf(0))
    x = [z for j, z in enumerate(v) if j != y]
    s = sum(x, mpf(0))
    if row.name == "entropy":
        return sum(map(_entropy_of, x), mpf(0)) + _entropy_of(1 - s)
    return mpf(row.smoothing) / 2 * sum((z * z for z in x), mpf(0)) - s


def _with_bias(X: NDArray, bias: float) -> list[list[mpf]]:
    return [[*row, mpf(bias)] for row in exactly(X)]


def _in_digits(compute: Callable[[], mpf]) -> mpf:
    with mpmath.workdps(DIGITS):
        return compute()


def primal(row: Instance, W: NDArray, X: NDArray, y: NDArray, cost: NDArray, bias: float) -> mpf:
    """1/2 |W|^2 + sum_i C_i L(y_i, W'x_i), with ``bias`` the value of the constant feature."""

    def compute() -> mpf:
        columns = exactly(np.asarray(W).T)
        total = sum((w * w for column in columns for w in column), mpf(0)) / 2
        for x, label, c in zip(_with_bias(X, bias), y, cost, strict=True):
            if c > 0:
                total += mpf(float(c)) * value(row, [mpmath.fdot(x, w) for w in columns], label)
        return total

    return _in_digits(compute)


def dual(row: Instance, duals: NDArray, X: NDArray, y: NDArray, cost: NDArray, bias: float) -> mpf:
    """-1/2 |W|^2 - sum_i C_i L*(y_i, v_i) with W = -sum_i C_i x_i v_i'.

    The label's entry is set to minus the sum of the others, as the domain has it.
    """

    def compute() -> mpf:
        v = exactly(duals)
        if not row.one_vs_all:
            for shares, label in zip(v, y, strict=True):
                shares[label] = mpf(0)
                shares[label] = -sum(shares, mpf(0))
        costs = [mpf(float(c)) for c in cost]
        total = mpf(0)
        for column in zip(*_with_bias(X, bias), strict=True):
            weighted = [c * x for c, x in zip(costs, column, strict=True)]
            for shares in zip(*v, strict=True):
                total -= mpmath.fdot(weighted, shares) ** 2 / 2
        for shares, label, c in zip(v, y, costs, strict=True):
            if c > 0:
                total -= c * conjugate(row, shares, label)
        return total

    return _in_digits(compute)
