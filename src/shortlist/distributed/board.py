"""Memory that the workers of one machine share, to add up changes of W among themselves.

A sum takes some tenths of a millisecond there, and 6 to 9 through Ray's object store (W of 0.6 MB,
two workers on two cores). The memory has no name: it is a file of the driver that is nowhere on
disk, which workers reach by the driver's process number. It ends with the processes.
"""

from __future__ import annotations

import math
import mmap
import os
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.distributed.rounds import Squares, Visited

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bytes of shared memory at most. With larger arrays visits take so long that Ray's messages do not
# matter.
MAX_BYTES = 1 << 28
# Numbers of 8 bytes from one signal to the next: a cache line, as in ``_native``. That module loads
# numba, which a worker can start without.
SIGNAL_STRIDE = 8


class SumLostError(Exception):
    """A worker died while sums were being added up."""


class Place(NamedTuple):
    """Where a board is, for workers, and what is added up there; ``mark`` tells it from others."""

    path: str
    mark: int
    n_workers: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        numbers = self.n_workers * math.prod(self.shape)
        lines = (1 + self.n_workers) * SIGNAL_STRIDE + 2 * self.n_workers * len(Visited._fields)
        return 8 * lines + 2 * numbers * self.dtype.itemsize


class Board:
    """Changes of W and reports, a place for each worker.

    ``signals`` has a line for each worker: the turn that it wrote last. A further line tells that a
    worker is lost, and ends with the board's mark. Reports and changes have two buffers, for odd
    and even turns. A worker writes turn t only after it has read turn t - 1. So nobody still reads
    t - 2, whose buffer it overwrites.
    """

    def __init__(self, memory: mmap.mmap, place: Place) -> None:
        count = self.n_workers = place.n_workers
        self.signals = np.frombuffer(memory, np.int64, (1 + count) * SIGNAL_STRIDE)
        begin = self.signals.nbytes
        fields = len(Visited._fields)
        self._reports = np.frombuffer(memory, np.float64, 2 * count * fields, begin)
        self._reports = self._reports.reshape(2, count, fields)
        begin += self._reports.nbytes
        numbers = count * math.prod(place.shape)
        self._changes = np.frombuffer(memory, place.dtype, 2 * numbers, begin)
        self._changes = self._changes.reshape(2, count, *place.shape)

    @classmethod
    def joined(cls, place: Place) -> Board | None:
        """The board that the driver has made, if it can be reached."""
        try:
            with open(place.path, "r+b") as file:
                board = cls(mmap.mmap(file.fileno(), place.nbytes), place)
        except (OSError, ValueError):  # no such file, or a shorter one
            return None
        return board if board.signals[-1] == place.mark else None

    def room(self, turn: int, number: int, weights: NDArray) -> NDArray:
        """Where a worker writes its change of these weights."""
        return self._side(turn, weights)[number]

    def _side(self, turn: int, weights: NDArray) -> NDArray:
        """The changes of all workers, in the order of the weights: all of W, or its last row."""
        side = self._changes[turn % 2]
        if len(weights) < side.shape[1]:
            return side[:, : len(weights)]
        if weights.flags.c_contiguous:
            return side
        count, rows, columns = side.shape
        return side.reshape(count, columns, rows).transpose(0, 2, 1)

    def add_up(
        self, turn: int, number: int, own: Visited, weights: NDArray, copy: NDArray
    ) -> tuple[Sequence[Visited], Squares, float]:
        """Wait until all have written their changes, and add them to ``weights`` and its copy.

        Returns the reports of all workers, |sum of changes|^2 and |weights|^2.
        """
        from shortlist._blas import blas_for
        from shortlist._native import announce, wait_for_all
        from shortlist.distributed.sums import add

        side = turn % 2
        self._reports[side, number] = own
        announce(self.signals, number * SIGNAL_STRIDE, turn)
        blas = blas_for(self._changes.dtype)
        if not wait_for_all(blas, self.signals, SIGNAL_STRIDE, turn):
            raise SumLostError
        change, norm = add(self._side(turn, weights), weights, copy)
        return [Visited(*report) for report in self._reports[side].tolist()], change, norm


class OwnBoard(Board):
    """The driver's side of a board."""

    def __init__(self, n_workers: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._calls = 0
        self._file = os.memfd_create("shortlist-sums")
        path = f"/proc/{os.getpid()}/fd/{self._file}"
        self.place = Place(path, secrets.randbits(62), n_workers, shape, np.dtype(dtype))
        os.ftruncate(self._file, self.place.nbytes)
        super().__init__(mmap.mmap(self._file, self.place.nbytes), self.place)
        self.signals[-1] = self.place.mark

    @classmethod
    def made(cls, n_workers: int, shape: tuple[int, ...], dtype: Any) -> OwnBoard | None:
        """A board, unless it would be too large or the system has no such files."""
        needed = Place("", 0, n_workers, shape, np.dtype(dtype)).nbytes
        if needed > MAX_BYTES or not hasattr(os, "memfd_create"):
            return None
        return cls(n_workers, shape, dtype)

    def next_turn(self) -> int:
        """The first turn of the next call, later than all turns of those before."""
        self._calls += 1
        return self._calls << 32

    def close(self) -> None:
        os.close(self._file)

    @property
    def slowest(self) -> int:
        """The worker that the others wait for."""
        return int(np.argmin(self.signals[: self.n_workers * SIGNAL_STRIDE : SIGNAL_STRIDE]))

    def tell_lost(self, lost: bool) -> None:
        """Let workers that wait for a lost one go on, or wait again in later turns."""
        from shortlist._native import announce

        announce(self.signals, self.n_workers * SIGNAL_STRIDE, int(lost))
