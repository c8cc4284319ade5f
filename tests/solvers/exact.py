"""Objectives with 50 digits, as the formulas read: slow, for small data."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.typing import NDArray

from shortlist.solvers.duals import as_array
from shortlist.solvers.records.run import MIXED_ULPS
from shortlist.solvers.strategy.train import Solution
from tests import references
from tests.instances import Instance

Result = TypeVar("Result")

DIGITS = 50
#: What 50 digits leave of an equality, with room.
_TINY = mpf(10) ** -40


def exactly(array: NDArray) -> list[list[mpf]]:
    """The rows of a matrix; every float is a number of so many digits."""
    return [[x if isinstance(x, mpf) else mpf(float(x)) for x in row] for row in np.asarray(array)]


def _entropy_of(p: mpf) -> mpf:
    return p * mpmath.log(p) if p > 0 else mpf(0)


def _capped_square(short: mpf, gamma: float) -> mpf:
    """max over p in [0, 1] of p short - gamma/2 p^2."""
    p = min(max(short / mpf(gamma), mpf(0)), mpf(1))
    return p * short - mpf(gamma) / 2 * p * p


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


def _asked(row: Instance, y: int) -> list[mpf]:
    """The margins c_yj, j != y."""
    return [mpf(float(c)) for c in references.asked_margins(row, y)]


def _rank_weights(row: Instance) -> list[mpf]:
    if row.rank_weights is None:
        return [mpf(1) / row.k] * row.k
    return [mpf(w) for w in row.rank_weights]


def _largest_shares(row: Instance, s: mpf, count: int) -> list[mpf]:
    """The shares of the ranks where each rank in turn has as much as it may have, all of them s."""
    ranks = _rank_weights(row)
    if row.variant == "printed":
        ranks = [min(mpf(1) / row.k, s / (row.k - 1))] * row.k
    elif row.variant == "alpha":
        ranks = [s * w for w in ranks]
    shares, left = [], s
    for w in ranks:
        shares.append(min(w, left))
        left -= shares[-1]
    return shares + [mpf(0)] * (count - len(shares))


def _gain_with_sum(row: Instance, ordered: Sequence[mpf], s: mpf) -> mpf:
    """max of <z, x> - gamma/2 |x|^2 over the x of sum s that the largest shares majorise.

    ``ordered`` are the z in descending order. The best x is z/gamma less an isotonic regression,
    here by its formula as a minimum of maxima of means.
    """
    g, n = mpf(row.smoothing), len(ordered)
    over = [z / g - w for z, w in zip(ordered, _largest_shares(row, s, n), strict=True)]
    sums = [sum(over[:i], mpf(0)) for i in range(n + 1)]
    x = []
    for here in range(n):
        level = min(
            max((sums[j + 1] - sums[i]) / (j - i + 1) for j in range(here, n))
            for i in range(here + 1)
        )
        x.append(ordered[here] / g - level)
    return sum((z * w - g / 2 * w * w for z, w in zip(ordered, x, strict=True)), mpf(0))


def _smooth_hinge_of_shares(row: Instance, margins: Sequence[mpf]) -> mpf:
    """The smooth hinge of any set that is the shares majorised by the largest, for sums up to 1.

    The gain is concave in the sum: golden sections of an interval, until it is shorter than 1e-21.
    """
    ordered = sorted(margins, reverse=True)
    low, high = mpf(0), mpf(1)
    golden = (mpmath.sqrt(5) - 1) / 2
    left, right = high - golden, low + golden
    at_left, at_right = (_gain_with_sum(row, ordered, s) for s in (left, right))
    for _ in range(101):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _gain_with_sum(row, ordered, right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _gain_with_sum(row, ordered, left)
    return max(mpf(0), _gain_with_sum(row, ordered, low), _gain_with_sum(row, ordered, high))


def _plain_hinge(row: Instance, margins: Sequence[mpf]) -> mpf:
    """The weighted sum of the largest margins, or of their positive parts (beta)."""
    if row.variant == "printed":
        margins = [mpf(0), *margins]
    if row.variant == "beta":
        margins = [max(z, mpf(0)) for z in margins]
    largest = sorted(margins, reverse=True)
    return max(mpf(0), sum((z * w for z, w in zip(largest, _rank_weights(row), strict=False))))


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


def _value_of_several(row: Instance, f: Sequence[mpf], right: NDArray) -> mpf:
    wanted = [s for s, is_right in zip(f, right, strict=True) if is_right]
    if row.name == "entropy":
        highest = max(f)
        total = sum((mpmath.exp(s - highest) for s in f), mpf(0))
        return highest + mpmath.log(total) - sum(wanted, mpf(0)) / len(wanted)
    least = min(wanted)
    margins = [1 + s - least for s, is_right in zip(f, right, strict=True) if not is_right]
    return _plain_hinge(row, margins)


def value(row: Instance, f: Sequence[mpf], y: int | NDArray) -> mpf:
    """L(y, f) of the entropies, the hinges and the one-vs-all losses.

    Of plain hinges and softmax, ``y`` may be an indicator of several right labels.
    """
    if np.ndim(y):
        return _value_of_several(row, f, y)
    if row.mixed:
        return sum((mpf(share) * value(part, f, y) for share, part in row.parts), mpf(0))
    if row.one_vs_all:
        short = [1 + (-s if j == y else s) for j, s in enumerate(f)]
        if row.name == "ova_logistic":
            return sum((mpmath.log1p(mpmath.exp(z - 1)) for z in short), mpf(0))
        if row.name == "ova_hinge":
            return sum((max(z, mpf(0)) for z in short), mpf(0))
        return sum((_capped_square(z, row.smoothing) for z in short), mpf(0))
    u = [s - f[y] for j, s in enumerate(f) if j != y]
    joint = row.variant == "alpha"
    if row.name == "entropy" and row.k == 1:
        return mpmath.log1p(sum((mpmath.exp(z) for z in u), mpf(0)))
    if row.name == "entropy":
        x = _capped_exponentials(u, row.k, joint)
        of_label = _entropy_of(1 - sum(x, mpf(0)))
        return sum((z * w - _entropy_of(w) for z, w in zip(u, x, strict=True)), -of_label)
    margins = [c + z for c, z in zip(_asked(row, y), u, strict=True)]
    if row.name == "hinge":
        return _plain_hinge(row, margins)
    if row.variant == "printed" or row.rank_weights is not None:
        return _smooth_hinge_of_shares(row, margins)
    return _smooth_hinge(margins, row.k, row.smoothing, joint)


def _conjugate_of_several(row: Instance, v: Sequence[mpf], right: NDArray) -> mpf:
    if row.name == "entropy":
        share = mpf(1) / int(np.sum(right))
        return sum((_entropy_of(x + share * int(r)) for x, r in zip(v, right, strict=True)), mpf(0))
    return -sum((x for x, is_right in zip(v, right, strict=True) if not is_right), mpf(0))


def conjugate(row: Instance, v: Sequence[mpf], y: int | NDArray) -> mpf:
    """L*(y, v), for v in the domain but for rounding."""
    if np.ndim(y):
        return _conjugate_of_several(row, v, y)
    if row.one_vs_all:
        p = [-x if j == y else x for j, x in enumerate(v)]
        if row.name == "ova_logistic":
            return sum((_entropy_of(x) + _entropy_of(1 - x) for x in p), mpf(0))
        return sum((mpf(row.smoothing) / 2 * x * x - x for x in p), mpf(0))
    x = [z for j, z in enumerate(v) if j != y]
    s = sum(x, mpf(0))
    if row.name == "entropy":
        return sum(map(_entropy_of, x), mpf(0)) + _entropy_of(1 - s)
    squares = sum((z * z for z in x), mpf(0))
    return mpf(row.smoothing) / 2 * squares - mpmath.fdot(_asked(row, y), x)


def _with_bias(X: NDArray, bias: float) -> list[list[mpf]]:
    return [[*row, mpf(bias)] for row in exactly(X)]


def _in_digits(compute: Callable[[], Result]) -> Result:
    with mpmath.workdps(DIGITS):
        return compute()


def kernel_weights(A: NDArray, X: NDArray, bias: float) -> NDArray:
    """W = X'A, where a solver holds A, with the row of the constant feature."""

    def compute() -> NDArray:
        return np.array(_with_bias(X, bias), dtype=object).T @ np.array(exactly(A), dtype=object)

    return _in_digits(compute)


def primal(
    row: Instance,
    W: NDArray,
    X: NDArray,
    y: NDArray,
    cost: NDArray,
    bias: float,
    free_intercept: bool = False,
) -> mpf:
    """1/2 |W|^2 + sum_i C_i L(y_i, W'x_i), with ``bias`` the value of the constant feature.

    With a ``free_intercept`` the weights of the constant feature do not count in |W|^2.
    """

    def compute() -> mpf:
        columns = exactly(np.asarray(W).T)
        penalised = [column[:-1] if free_intercept else column for column in columns]
        total = sum((w * w for column in penalised for w in column), mpf(0)) / 2
        for x, label, c in zip(_with_bias(X, bias), y, cost, strict=True):
            if c > 0:
                total += mpf(float(c)) * value(row, [mpmath.fdot(x, w) for w in columns], label)
        return total

    return _in_digits(compute)


def dual(row: Instance, duals: NDArray, X: NDArray, y: NDArray, cost: NDArray, bias: float) -> mpf:
    """-1/2 |W|^2 - sum_i C_i L*(y_i, v_i) with W = -sum_i C_i x_i v_i'.

    The entry of a single label is set to minus the sum of the others, as the domain has it.
    """

    def compute() -> mpf:
        v = exactly(duals)
        if not row.one_vs_all and np.ndim(y) == 1:
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


def check_result(
    row: Instance,
    solution: Solution,
    X: NDArray,
    y: NDArray,
    cost: NDArray,
    bias: float,
    reference: mpf | float,
    W: NDArray | None = None,
    free_intercept: bool = False,
) -> None:
    """What a result claims, against exact objectives at its weights and at better ones.

    Values and duals are right to the last places of their precision, and so are objectives. The
    scores of top-2 hinges leave more in single precision, which their gaps allow for. ``W`` are the
    weights where the solver holds others, ``reference`` is the primal of better ones.
    """
    result = solution.result
    at = solution.weights if W is None else W
    objective = primal(row, at, X, y, cost, bias, free_intercept)
    least = min(objective, reference)
    eps = float(np.finfo(solution.weights.dtype).eps)
    slack = MIXED_ULPS * eps * float(objective)
    assert result.dual <= float(least) + slack
    assert result.gap >= float(objective - least) - slack
    simple = row.k == 1 and not row.rank_weights
    of_gap = 1e-3 if simple or solution.weights.dtype == np.float64 else 0.05
    assert abs(result.primal - float(objective)) <= slack + of_gap * result.gap
    if result.dual == 0:
        # The bound is exact, so the primal must be. It may be 1e-11 of P(0); a margin is known to
        # units in the last place of 1, and P(0) is the sum of the examples' weights on these.
        of_margins = 4 * float(np.finfo(np.float64).eps) * result.history[0].at_zero
        assert result.primal == pytest.approx(float(objective), rel=1e-10, abs=of_margins)
    if result.solver == "sdca" and not free_intercept:
        bound = dual(row, as_array(solution.state.duals), X, y, cost, bias)
        assert result.gap >= float(objective - bound) - slack
