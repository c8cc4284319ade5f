"""The losses as their definitions read, in plain NumPy: slow, for tests only."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tests.instances import Instance


def margins(f: NDArray, y: int) -> NDArray:
    """u_j = f_j - f_y over j != y."""
    return np.delete(f, y) - f[y]


def signed_margins(f: NDArray, y: int) -> NDArray:
    """t_j = f_j for the true label, -f_j for the others."""
    t = -np.asarray(f, dtype=float)
    t[y] = f[y]
    return t


def asked_margins(row: Instance, y: int) -> NDArray:
    """c_yj over j != y: by how much the label is to lead each of the others."""
    if "hinge" not in row.name:
        return np.zeros(row.m - 1)
    if row.margins is None:
        return np.ones(row.m - 1)
    asked = np.asarray(row.margins[y], dtype=float)
    return np.delete(asked, y) if asked.ndim else np.full(row.m - 1, asked)


def cap_of(row: Instance, s: float) -> float:
    """The largest share one wrong label may have when all have s."""
    if row.variant == "printed":
        return min(1.0 / row.k, s / (row.k - 1))
    return s / row.k if row.variant == "alpha" else 1.0 / row.k


def largest_shares(row: Instance, s: float) -> NDArray:
    """The shares of the ranks where each rank in turn has as much as it may have, all of them s."""
    if row.rank_weights is None:
        ranks = np.full(row.k, cap_of(row, s))
    elif row.variant == "alpha":
        return s * np.asarray(row.rank_weights)
    else:
        ranks = np.asarray(row.rank_weights)
    before = np.cumsum(ranks) - ranks
    return np.clip(s - before, 0.0, ranks)


def _nearest_shares(ranks: NDArray, b: NDArray) -> NDArray:
    """The point nearest to b of those that ``ranks`` majorises: b less an isotonic regression.

    That by its formula as a maximum of minima of means.
    """
    order = np.argsort(-b, kind="stable")
    d = b[order] - np.pad(ranks, (0, len(b) - len(ranks)))
    sums = np.concatenate([[0.0], np.cumsum(d)])
    first, last = np.ogrid[: len(b), : len(b)]
    means = (sums[1:][last] - sums[first]) / np.maximum(last - first + 1, 1)
    # The largest mean from i to here or beyond; of these the smallest from here or before.
    beyond = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    level = np.where(first <= last, beyond, np.inf).min(axis=0)
    x = np.empty(len(b))
    x[order] = b[order] - level
    return x


def _plogp(p: NDArray | float) -> NDArray:
    p = np.asarray(p, dtype=float)
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


def penalty(row: Instance, x: NDArray) -> float:
    """What the conjugate adds to -<c, x>: the smoothing or the entropy."""
    if row.name == "entropy" or row.name == "truncated_entropy":
        return float(_plogp(x).sum() + _plogp(max(1.0 - x.sum(), 0.0)))
    return 0.5 * row.smoothing * float(x @ x)


_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def _supremum(row: Instance, b: NDArray, inverse: Callable[[NDArray], NDArray]) -> float:
    """max of <b, x> - penalty(x) over the set: over s outside, over x with that sum inside."""

    def best_with_sum(s: float) -> float:
        if row.rank_weights is not None:
            x = _nearest_shares(largest_shares(row, s), b / row.smoothing)
            return float(b @ x) - penalty(row, x)
        low, high = b.min() - 1.0 - row.smoothing, b.max() + 100.0
        for _ in range(70):
            theta = 0.5 * (low + high)
            x = np.clip(inverse(b - theta), 0.0, cap_of(row, s))
            low, high = (theta, high) if x.sum() > s else (low, theta)
        return float(b @ x) - penalty(row, x)

    # A concave function, perhaps with kinks: golden sections, not derivatives.
    low, left, right, high = 0.0, 1.0 - _GOLDEN, _GOLDEN, 1.0
    at_left, at_right = best_with_sum(left), best_with_sum(right)
    for _ in range(52):
        if at_left < at_right:
            low, left, right = left, right, left + _GOLDEN * (high - left)
            at_left, at_right = at_right, best_with_sum(right)
        else:
            high, right, left = right, left, right - _GOLDEN * (right - low)
            at_right, at_left = at_left, best_with_sum(left)
    return max(0.0, best_with_sum(high))


def value(row: Instance, f: NDArray, y: int) -> float:
    """L(y, f)."""
    f = np.asarray(f, dtype=float)
    if row.formulas is not None:
        return row.formulas.value(f, y)
    if row.mixed:
        return sum(share * value(part, f, y) for share, part in row.parts)
    if row.one_vs_all:
        t = signed_margins(f, y)
        if row.name == "ova_hinge":
            return float(np.maximum(0.0, 1.0 - t).sum())
        if row.name == "ova_logistic":
            return float(np.logaddexp(0.0, -t).sum())
        short = 1.0 - t
        quadratic = short**2 / (2.0 * row.smoothing)
        linear = short - 0.5 * row.smoothing
        return float(
            np.where(short <= 0, 0.0, np.where(short <= row.smoothing, quadratic, linear)).sum()
        )
    c = asked_margins(row, y)
    u = np.sort(c + margins(f, y))[::-1]
    if row.name == "hinge":
        weights = row.rank_weights or np.full(row.k, 1.0 / row.k)
        if row.variant == "printed":
            u = np.sort([0.0, *u])[::-1]
        top = u[: len(weights)]
        if row.variant == "beta":
            top = np.maximum(0.0, top)
        return max(0.0, float(top @ weights))
    if row.name == "truncated_entropy":
        return float(np.logaddexp.reduce([0.0, *u[row.k - 1 :]]))
    if row.name == "entropy":
        if row.k == 1:
            return float(np.logaddexp.reduce([0.0, *u]))
        return _supremum(row, u, np.exp)
    return _supremum(row, u, lambda t: t / row.smoothing)


def conjugate(row: Instance, v: NDArray, y: int) -> float:
    """L*(y, v) for v in its domain."""
    v = np.asarray(v, dtype=float)
    if row.formulas is not None:
        return row.formulas.conjugate(v, y)
    if row.one_vs_all:
        p = -signed_margins(v, y)
        if row.name == "ova_logistic":
            return float((_plogp(p) + _plogp(1.0 - p)).sum())
        return float((0.5 * row.smoothing * p**2 - p).sum())
    x = np.delete(v, y)
    return penalty(row, x) - float(asked_margins(row, y) @ x)


def random_dual(row: Instance, rng: np.random.Generator, y: int) -> NDArray:
    """A point of the conjugate's domain: a mixture of its corners."""
    if row.formulas is not None:
        return row.formulas.random_dual(rng, y)
    if row.one_vs_all:
        return -signed_margins(rng.choice([0.0, 0.1, 0.5, 1.0], size=row.m), y)
    x = random_shares(row, rng, row.m - 1)
    return np.insert(x, y, -x.sum())


def random_shares(row: Instance, rng: np.random.Generator, n_wrong: int) -> NDArray:
    """A point of the set of the wrong labels' duals."""
    corners = np.zeros((4, n_wrong))
    ranks = largest_shares(row, 1.0)
    fewest = {"alpha": len(ranks), "beta": 1, "printed": len(ranks) - 1}[row.variant]
    for corner in corners[1:]:
        size = rng.integers(fewest, len(ranks) + 1)
        corner[rng.choice(n_wrong, size=size, replace=False)] = ranks[:size]
    return rng.dirichlet(np.full(4, 0.5)) @ corners
