"""Where the duals of a loss may lie, for duals that miss it by rounding.

A conjugate is finite on a domain only, and duals in single precision lie in it to their last place.
A certificate in double would notice: a bound from duals outside the domain can exceed the optimum.
:func:`feasible` moves duals into the domain, by a few units in the last place of single precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.kernels import kernels_of

# Moves rows of duals in double, v (n, m), into a domain, given where their right labels are.
Domain = Callable[[NDArray, NDArray], None]
# Sums that differ from 1 by at most this are taken to be 1: single precision cannot hold them
# exactly. A sum left just below 1 would lower the bound by the example's loss times the difference.
MAX_ROUNDING_OF_SUM = 8 * float(np.finfo(np.float32).eps)


def domain_of(spec: Any) -> Domain | None:
    """The domain of a loss, given its kernels' parameters; None if its family names none."""
    make = kernels_of(type(spec)).domain
    return None if make is None else make(spec)


def feasible(spec: Any, v: NDArray, labels: NDArray) -> NDArray:
    """Rows of duals that miss the domain by rounding, in double and inside.

    Labels are as kernels take them. Where the domain is not known, duals stay as they are.
    """
    rows = v.astype(np.float64)
    domain = domain_of(spec)
    if domain is not None:
        domain(rows, _right_labels(rows.shape, labels))
    return rows


def _right_labels(shape: tuple[int, int], labels: NDArray) -> NDArray:
    """Where the right labels are: one an example, or rows of several with padding below 0."""
    right = np.zeros(shape, bool)
    rows = labels.reshape(len(labels), -1)
    examples, places = np.nonzero(rows >= 0)
    right[examples, rows[examples, places]] = True
    return right


@dataclass(frozen=True)
class OrderedDomain:
    """x over the wrong labels, s their sum; v_y = -s, or several right labels share -s.

    x >= 0, s <= 1, and for every r the r largest x_j add up to at most w_1 + ... + w_r, times s
    if ``joint``. The weights w do not increase and add up to 1. Alpha and beta sets have k weights
    of 1/k.
    """

    weights: NDArray
    joint: bool
    # Whether the conjugate is linear in s, so that many examples lie at s = 1.
    linear: bool

    def __call__(self, v: NDArray, right: NDArray) -> None:
        x = np.where(right, 0.0, v)
        np.maximum(x, 0.0, out=x)
        s = x.sum(axis=1)
        scaled = np.flatnonzero(s > (1.0 - MAX_ROUNDING_OF_SUM if self.linear else 1.0))
        x[scaled] /= s[scaled, None]
        level_largest(x, self.weights, self.joint)
        s = x.sum(axis=1)
        # Right labels keep their shares of -s.
        z = np.where(right, np.maximum(-v, 0.0), 0.0)
        total = z.sum(axis=1)
        z *= np.divide(s, total, out=np.zeros_like(s), where=total > 0)[:, None]
        # Where no right label had a share, all take equal ones.
        z += np.where(total > 0, 0.0, s / right.sum(axis=1))[:, None] * right
        np.subtract(x, z, out=v)


@dataclass(frozen=True)
class BothDomains:
    """What lies in both domains. The second one's moves must not lead out of the first."""

    first: OrderedDomain
    second: OrderedDomain

    def __call__(self, v: NDArray, right: NDArray) -> None:
        self.first(v, right)
        self.second(v, right)


def capped(k: int, joint: bool, linear: bool) -> OrderedDomain:
    """x_j <= s/k if joint, else x_j <= 1/k."""
    return OrderedDomain(np.full(k, 1.0 / k), joint, linear)


def distributions(v: NDArray, right: NDArray) -> None:
    """v plus 1/p at each of the p right labels is in the unit simplex."""
    share = right / right.sum(axis=1, keepdims=True)
    pi = np.maximum(v + share, 0.0)
    pi /= pi.sum(axis=1, keepdims=True)
    np.subtract(pi, share, out=v)


def boxes(v: NDArray, right: NDArray) -> None:
    """-1 <= v_y <= 0 at right labels, 0 <= v_j <= 1 at wrong ones: single precision has both."""
    np.clip(v, -1.0 * right, 1.0 * ~right, out=v)


def level_largest(x: NDArray, weights: NDArray, joint: bool) -> None:
    """Move the largest entries of each row towards their mean, until no sum is too large.

    Their sum stays, and sums of r equal entries are the smallest there can be: at most the
    bound, since the weights do not increase.
    """
    size = len(weights)
    rows = np.arange(len(x))
    if size == 1:
        return  # x_1 <= s <= 1
    bound = x.sum(axis=1) if joint else np.ones(len(x))
    if weights[0] == weights[-1]:
        rows = np.flatnonzero(x.max(axis=1) > weights[0] * bound)
    if not rows.size:
        return
    some = x[rows]
    places = np.argpartition(-some, size - 1, axis=1)[:, :size]
    top = np.take_along_axis(some, places, axis=1)
    order = np.argsort(-top, axis=1)
    places, top = np.take_along_axis(places, order, axis=1), np.take_along_axis(top, order, axis=1)
    mean = top.mean(axis=1, keepdims=True)
    sums, level = np.cumsum(top, axis=1), mean * np.arange(1, size + 1)
    excess = sums - np.cumsum(weights) * bound[rows, None]
    room = sums - level
    parts = np.divide(excess, room, out=np.zeros_like(room), where=(excess > 0) & (room > 0))
    part = np.clip(parts.max(axis=1, keepdims=True), 0.0, 1.0)
    np.put_along_axis(some, places, (1.0 - part) * top + part * mean, axis=1)
    x[rows] = some
