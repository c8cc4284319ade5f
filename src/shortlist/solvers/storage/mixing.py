"""The pieces of an epoch: runs of neighbouring rows from all over the data, others every time.

With the same rows in a piece every time, all duals of a piece would be equally outdated. Correcting
them together would make W follow one piece after the other: twice the epochs for softmax, ten times
for the smooth hinge (12 pieces of 12,000 x 128 examples of 100 classes). With runs of a hundred
rows, dealt out anew for every epoch, softmax takes the epochs that it takes in memory.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Bytes of a run. A disk reads these hardly slower than larger ones.
RUN_BYTES = 1 << 18
# The least number of runs of a piece. A piece with fewer rows has a run for each row.
RUNS_PER_PIECE = 64
# Read rows in runs if at least this share of them is visited, and one by one otherwise.
MIN_VISITED_SHARE_TO_READ_RUNS = 0.25


class MixedPiece(NamedTuple):
    """Rows of a piece: the ranges that are read, and the places of the visits in what was read.

    ``rows`` are their numbers in the data.
    """

    ranges: list[tuple[int, int]]
    visits: NDArray
    rows: NDArray

    @property
    def size(self) -> int:
        return self.rows.size

    def taken(self, values: NDArray) -> NDArray:
        """The piece's part of numbers of all examples, as an array of its own."""
        return values[self.rows]

    def put_back(self, own: NDArray, values: NDArray) -> None:
        """The inverse of :meth:`taken`."""
        values[self.rows] = own


def rows_of_run(rows_per_piece: int, row_bytes: float) -> int:
    """How many neighbouring rows stay together."""
    return max(1, min(int(RUN_BYTES / max(row_bytes, 1.0)), rows_per_piece // RUNS_PER_PIECE))


def mixtures(
    order: NDArray, n: int, rows_per_piece: int, rows_per_run: int, random: np.random.Generator
) -> list[MixedPiece]:
    """Pieces for visits to the examples ``order``; a piece keeps that order within."""
    size = rows_per_run if order.size >= MIN_VISITED_SHARE_TO_READ_RUNS * n else 1
    runs = random.permutation(np.unique(order // size))
    per_piece = max(1, rows_per_piece // size)
    n_pieces = -(-runs.size // per_piece)
    place = np.zeros(-(-n // size), np.int64)
    place[runs] = np.arange(runs.size)
    owner = place[order // size] // per_piece
    by_piece = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[by_piece], np.arange(n_pieces + 1))
    found = []
    for number in range(n_pieces):
        first = number * per_piece
        here = runs[first : first + per_piece] * size
        ends = np.minimum(here + size, n)  # the last run of the data may be shorter
        lengths = ends - here
        begins = np.cumsum(lengths) - lengths
        rows = np.repeat(here - begins, lengths) + np.arange(lengths.sum())
        visited = order[by_piece[bounds[number] : bounds[number + 1]]]
        local = begins[place[visited // size] - first] + visited % size
        found.append(MixedPiece(list(zip(here.tolist(), ends.tolist(), strict=True)), local, rows))
    return found
