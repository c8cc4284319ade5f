"""Matrices of features whose rows stay in files: read a range at a time, never all at once.

``shape``, ``dtype`` and slices of rows are those of an array or a CSR matrix. Half precision is
widened to single as it is read. Files that cannot be read by position (compressed ones, tables,
text) are decoded once, to a temporary file without a name: the system removes it when this process
ends, however it ends.
"""

from __future__ import annotations

import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import IO, Any

import numpy as np
from scipy import sparse

from .._memory import release_pages
from ..errors import DataError

# Rows are dealt to workers in runs: at most this many rows a run, at least this many runs a worker.
MAX_RUN, RUNS_PER_HAND = 64, 8


class RowsOnDisk:
    """What the kinds have in common. ``mean_nonzeros`` is the number of entries in a row."""

    shape: tuple[int, int]
    dtype: np.dtype
    is_sparse: bool
    mean_nonzeros: float
    ndim = 2

    def read(self, begin: int, end: int) -> Any:
        """Return a range of rows: an array in C order, or a CSR matrix."""
        raise NotImplementedError

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Any:
        """Return several ranges of rows, one below the other."""
        if self.is_sparse:
            return self._stacked([self.read(begin, end) for begin, end in ranges])
        rows = np.empty((sum(end - begin for begin, end in ranges), self.shape[1]), self.dtype)
        place = 0
        for begin, end in ranges:
            rows[place : place + end - begin] = self.read(begin, end)
            place += end - begin
        return rows

    def _stacked(self, found: list[Any]) -> Any:
        """Ranges of rows, one below the other."""
        if len(found) == 1 and sparse.issparse(found[0]) == self.is_sparse:
            return found[0]
        if self.is_sparse and found:
            return sparse.csr_matrix(sparse.vstack(found, format="csr"))
        if self.is_sparse:
            return sparse.csr_matrix((0, self.shape[1]), dtype=self.dtype)
        return np.concatenate(found) if found else np.empty((0, self.shape[1]), self.dtype)

    def __getitem__(self, rows: slice) -> Any:
        begin, end, step = rows.indices(self.shape[0])
        return self.read(begin, end)[:: step if step > 1 else None]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes in memory, in the mean."""
        entry = self.dtype.itemsize + (4 if self.is_sparse else 0)
        return max(1, int(self.mean_nonzeros * entry))


class _Numbers:
    """A run of numbers in a file, by its name or already open."""

    def __init__(self, file: str | IO[bytes], offset: int, dtype: np.dtype) -> None:
        self.file, self.offset, self.dtype = file, offset, dtype

    def read(self, begin: int, end: int) -> np.ndarray:
        found = np.empty(end - begin, self.dtype)
        self.read_ranges([(begin, end)], found)
        return found

    def read_ranges(self, ranges: Iterable[tuple[int, int]], out: np.ndarray) -> None:
        """Fill ``out`` with these ranges, one after the other. The file is opened once."""
        place, size = 0, self.dtype.itemsize
        room = out.reshape(-1).view(np.uint8).data
        with self._opened() as file:
            for begin, end in ranges:
                file.seek(self.offset + begin * size)
                count = (end - begin) * size
                while count > 0:
                    found = file.readinto(room[place : place + count])
                    if not found:
                        raise self._shorter()
                    place, count = place + found, count - found

    def _opened(self) -> Any:
        return open(self.file, "rb", 0) if isinstance(self.file, str) else nullcontext(self.file)

    def _shorter(self) -> DataError:
        return DataError("has become shorter while it was read", path=str(self.file))


class DenseOnDisk(RowsOnDisk):
    """Rows of an array in C order."""

    is_sparse = False

    def __init__(
        self, file: str | IO[bytes], offset: int, shape: tuple[int, int], dtype: Any
    ) -> None:
        self._numbers = _Numbers(file, offset, np.dtype(dtype))
        self.shape = shape
        self.dtype = _trained_type(self._numbers.dtype)
        self.mean_nonzeros = float(shape[1])

    def read(self, begin: int, end: int) -> np.ndarray:
        d = self.shape[1]
        flat = self._numbers.read(begin * d, end * d)
        return flat.astype(self.dtype, copy=False).reshape(end - begin, d)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
        d = self.shape[1]
        if self._numbers.dtype != self.dtype or d == 0:
            return super().read_ranges(ranges)
        rows = np.empty((sum(end - begin for begin, end in ranges), d), self.dtype)
        if rows.size:
            self._numbers.read_ranges(((begin * d, end * d) for begin, end in ranges), rows)
        return rows


class CsrOnDisk(RowsOnDisk):
    """Rows of a CSR matrix: entries and columns in a file, the rows' bounds in memory."""

    is_sparse = True

    def __init__(
        self, values: _Numbers, columns: _Numbers, bounds: np.ndarray, n_features: int
    ) -> None:
        self._values, self._columns, self._bounds = values, columns, bounds
        self.shape = (len(bounds) - 1, n_features)
        self.dtype = _trained_type(values.dtype)
        self.mean_nonzeros = float(bounds[-1]) / max(self.shape[0], 1)

    def read(self, begin: int, end: int) -> sparse.csr_matrix:
        first, last = int(self._bounds[begin]), int(self._bounds[end])
        values = self._values.read(first, last).astype(self.dtype, copy=False)
        columns = self._columns.read(first, last)
        bounds = (self._bounds[begin : end + 1] - first).astype(columns.dtype)
        return sparse.csr_matrix((values, columns, bounds), shape=(end - begin, self.shape[1]))

    def widened(self, n_features: int) -> CsrOnDisk:
        """Return the same rows with more columns."""
        return CsrOnDisk(self._values, self._columns, self._bounds, n_features)


class JoinedRows(RowsOnDisk):
    """The rows of several files, one after the other."""

    def __init__(self, parts: Sequence[RowsOnDisk]) -> None:
        self.parts = list(parts)
        self.bounds = np.cumsum([0, *(part.shape[0] for part in parts)]).tolist()
        self.shape = (self.bounds[-1], parts[0].shape[1])
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.is_sparse = any(part.is_sparse for part in parts)
        entries = sum(part.mean_nonzeros * part.shape[0] for part in parts)
        self.mean_nonzeros = entries / max(self.shape[0], 1)

    def read(self, begin: int, end: int) -> Any:
        found = []
        # Shards may be many, and ranges short.
        place = max(bisect_right(self.bounds, begin) - 1, 0)
        while place < len(self.parts) and self.bounds[place] < end:
            part, first, last = self.parts[place], self.bounds[place], self.bounds[place + 1]
            if last > begin:
                rows = part.read(max(begin - first, 0), min(end, last) - first)
                found.append(rows.astype(self.dtype, copy=False))
            place += 1
        return self._stacked(found)


class DealtRows(RowsOnDisk):
    """The part of the rows that is dealt to one of ``hands``, in short runs of neighbours."""

    def __init__(self, rows: RowsOnDisk, hand: int, hands: int) -> None:
        n, d = rows.shape
        run = max(1, min(MAX_RUN, n // (RUNS_PER_HAND * hands)))
        self.rows, self.run, self.stride = rows, run, run * hands
        self.first = run * hand
        begins = np.arange(self.first, n, self.stride)
        #: The numbers that the rows have there.
        self.places = (begins[:, None] + np.arange(run)).ravel()
        self.places = self.places[self.places < n]
        self.shape = (len(self.places), d)
        self.dtype, self.is_sparse = rows.dtype, rows.is_sparse
        self.mean_nonzeros = rows.mean_nonzeros

    def read(self, begin: int, end: int) -> Any:
        found = []
        while begin < end:
            number, within = divmod(begin, self.run)
            count = min(self.run - within, end - begin)
            there = self.first + number * self.stride + within
            found.append(self.rows.read(there, there + count))
            begin += count
        return self._stacked(found)


def rows_on_disk(X: Any) -> RowsOnDisk:
    """Return the rows of a memory map where they lie, those of other matrices in a new file."""
    if isinstance(X, RowsOnDisk):
        return X
    if isinstance(X, np.memmap) and (mapped := _mapped_rows(X)) is not None:
        release_pages(X)
        return mapped
    return _spooled(X)


def _mapped_rows(X: np.memmap) -> DenseOnDisk | None:
    """Return the rows of a memory map, if they lie together in a file with a name."""
    if X.filename is None or not X.flags.c_contiguous or X.dtype.kind != "f":
        return None
    # A slice of a map keeps the map's own offset. Its place is told by its address.
    start = np.frombuffer(X._mmap, np.uint8).ctypes.data  # type: ignore[attr-defined]
    first_page = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    offset = first_page + X.ctypes.data - start
    return DenseOnDisk(str(X.filename), offset, (X.shape[0], X.shape[1]), X.dtype)


def _spooled(X: Any) -> RowsOnDisk:
    file = tempfile.TemporaryFile(prefix="shortlist-")  # noqa: SIM115
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X, None if X.dtype.kind == "f" else np.float64)
        X.tofile(file)
        return DenseOnDisk(file, 0, X.shape, X.dtype)
    X = X.tocsr()
    X.sum_duplicates()
    values = X.data if X.data.dtype.kind == "f" else X.data.astype(np.float64)
    values.tofile(file)
    X.indices.tofile(file)
    columns = _Numbers(file, values.nbytes, X.indices.dtype)
    bounds = X.indptr.astype(np.int64)
    return CsrOnDisk(_Numbers(file, 0, values.dtype), columns, bounds, X.shape[1])


def _trained_type(stored: np.dtype) -> np.dtype:
    """Return the precision that numbers of this type are read in: single for halves."""
    return np.dtype(np.float32) if stored.itemsize < 4 else stored.newbyteorder("=")
