"""Visits on the support by two threads at a time, with the result of one.

Such a visit reads and writes the weights of its example's classes, and of no others. Examples that
share no class can be visited at the same time: in whatever order, the result is the same to the
bit. So the classes are parted in two, few examples having classes on both sides, and each side's
examples are visited by a thread. The examples in between are parted in the same way among
themselves. One thread visits the rest.

The parts do not depend on the number of threads, and neither does the result.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# How often examples are parted. With two threads a round of visits takes 0.71, 0.62, 0.58 and 0.56
# of the time of one after 1, 2, 3 and 4 partings (CLINC150, hinge, C = 10, counted in entries).
MAX_PARTINGS = 3
# Steps of the power method that orders the classes. More hardly change the parts.
POWER_STEPS = 30
# With more classes their products, m^2 numbers, would take longer than they spare.
MAX_CLASSES = 2048


@dataclass(frozen=True)
class Teams:
    """The team of each example, by its number. Teams 2p and 2p + 1 share no class.

    The last of ``count`` has no partner.
    """

    of: NDArray
    count: int

    def part(self, order: NDArray) -> NDArray:
        """Put the examples of a team together, in the order they are in; returns their bounds."""
        teams = self.of[order]
        order[:] = order[np.argsort(teams, kind="stable")]
        sizes = np.bincount(teams, minlength=self.count)
        return np.concatenate([[0], np.cumsum(sizes)])


def make_teams(numbers: NDArray, begin: NDArray, classes: NDArray, n: int, m: int) -> Teams:
    """Teams of the examples ``numbers`` out of n; the r-th has ``classes[begin[r]:begin[r + 1]]``.

    Every example has a class at least, its label.
    """
    sizes = np.diff(begin)
    team = np.full(sizes.size, 2 * MAX_PARTINGS)
    left = np.arange(sizes.size)
    for parting in range(MAX_PARTINGS):
        if not left.size:
            break
        entries = np.repeat(begin[left] - np.cumsum(sizes[left]) + sizes[left], sizes[left])
        own = classes[entries + np.arange(entries.size)]
        side = _sides(sizes[left], own, m)
        team[left[side < 2]] = 2 * parting + side[side < 2]
        left = left[side == 2]
    of = np.full(n, 2 * MAX_PARTINGS, np.int8)
    of[numbers] = team
    return Teams(of, 2 * MAX_PARTINGS + 1)


def _sides(sizes: NDArray, classes: NDArray, m: int) -> NDArray:
    """0 or 1 for examples all of whose classes are on that side, 2 for the others.

    ``classes`` are those of all examples, one after the other, ``sizes`` how many each has. The
    classes are ordered so that those of an example are close together, and the order is cut where
    the two threads together take the shortest time.
    """
    place = np.empty(m, np.int64)
    place[np.argsort(_positions(sizes, classes, m), kind="stable")] = np.arange(m)
    starts = np.cumsum(sizes) - sizes
    places = place[classes]
    first, last = np.minimum.reduceat(places, starts), np.maximum.reduceat(places, starts)
    # Entries of the examples below a cut, and of those at or above it.
    below = np.concatenate([[0], np.cumsum(np.bincount(last, sizes, m))])
    above = sizes.sum() - np.concatenate([[0], np.cumsum(np.bincount(first, sizes, m))])
    cut = int(np.argmax(np.minimum(below, above)))
    return np.where(last < cut, 0, np.where(first >= cut, 1, 2))


def _positions(sizes: NDArray, classes: NDArray, m: int) -> NDArray:
    """Numbers of the classes that are alike where many examples have both.

    The second eigenvector of the normalised matrix of how many examples two classes share
    (M. Fiedler, Czechoslovak Mathematical Journal 23, 1973), by the power method.
    """
    ones, starts = np.ones(classes.size, np.float32), np.concatenate([[0], np.cumsum(sizes)])
    listed = sparse.csr_array((ones, classes, starts), shape=(sizes.size, m))
    shared = (listed.T @ listed).toarray()
    scale = 1.0 / np.sqrt(np.maximum(shared.sum(axis=0), 1.0))
    normalised = scale[:, None] * shared * scale
    # The first eigenvector is known: 1 / scale.
    known = 1.0 / scale
    known /= np.linalg.norm(known)
    vector = np.cos(np.arange(m, dtype=np.float32))
    for _ in range(POWER_STEPS):
        vector -= known * (known @ vector)
        vector = normalised @ vector + vector
        vector /= max(float(np.linalg.norm(vector)), np.finfo(np.float32).tiny)
    return scale * vector
