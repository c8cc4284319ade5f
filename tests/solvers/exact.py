"""Objectives with 50 digits, as the formulas read: slow, for small data."""

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from tests.instances import Instance

DIGITS = 50


def exactly(array: NDArray) -> list[list[mpf]]:
    """The rows of a matrix; every float is a number of so many digits."""
    return [[mpf(float(x)) for x in row] for row in np.asarray(array)]


def _entropy_of(p: mpf) -> mpf:
    return p * mpmath.log(p) if p > 0 else mpf(0)


def _capped_square(short: mpf, gamma: float) -> mpf:
    """max over p in [0, 1] of p short - gamma/2 p^2."""
    p = min(max(short / mpf(gamma), mpf(0)), mpf(1))
    return p * short - mpf(gamma) / 2 * p * p


def _smooth_hinge(margins: Sequence[mpf], gamma: float) -> mpf:
    """max of <margins, x> - gamma/2 |x|^2 over x >= 0, <1,x> <= 1: the simplex, by sorting."""
    b = sorted((z / mpf(gamma) for z in margins), reverse=True)
    x = [max(z, mpf(0)) for z in b]
    if sum(x) > 1:
        total = mpf(0)
        for count, z in enumerate(b, start=1):
            total += z
            if z > (total - 1) / count:
                theta = (total - 1) / count
        x = [max(z - theta, mpf(0)) for z in b]
    return mpf(gamma) * sum((z * p - p * p / 2 for z, p in zip(b, x, strict=True)), mpf(0))


def value(row: Instance, f: Sequence[mpf], y: int) -> mpf:
    """L(y, f) of softmax, the hinges at k = 1 and the one-vs-all losses."""
    assert row.k == 1
    if row.one_vs_all:
        short = [1 + (-s if j == y else s) for j, s in enumerate(f)]
        if row.name == "ova_logistic":
            return sum((mpmath.log1p(mpmath.exp(z - 1)) for z in short), mpf(0))
        return sum((_capped_square(z, row.smoothing) for z in short), mpf(0))
    u = [s - f[y] for j, s in enumerate(f) if j != y]
    if row.name == "entropy":
        return mpmath.log1p(sum((mpmath.exp(z) for z in u), mpf(0)))
    if row.name == "hinge":
        return max(mpf(0), 1 + max(u))
    return _smooth_hinge([1 + z for z in u], row.smoothing)


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
