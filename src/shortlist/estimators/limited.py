"""Storages of examples in memory and on disk, under a limit on memory or none.

Rows may also be held elsewhere, as by the workers of a cluster: see :class:`HeldElsewhere`.
"""

import shutil
import tempfile
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from shortlist._memory import parse_bytes, resident_bytes
from shortlist._parameters import is_integer
from shortlist.datasets.on_disk import RowsOnDisk
from shortlist.errors import ParameterError
from shortlist.estimators.normalization import normalized
from shortlist.losses import Loss
from shortlist.solvers.placing import Placing, describe, place
from shortlist.solvers.storage import PiecedStorage, Storage, open_storage


class StorageElsewhere(Storage, Protocol):
    """A storage that also tells how a limit on memory is kept there, if there is one."""

    memory_plan: str | None


@runtime_checkable
class HeldElsewhere(Protocol):
    """Rows that bring their own storage."""

    shape: tuple[int, int]
    dtype: np.dtype

    def open_storage(
        self, bias: float, n_classes: int, loss: Loss, normalize: str | None
    ) -> StorageElsewhere: ...


@runtime_checkable
class HeldByWorkers(HeldElsewhere, Protocol):
    """Rows of which every worker holds a part."""

    def hashes(self) -> list[str]:
        """A hash of each worker's rows, by which a checkpoint knows them again."""
        ...


class _NormalizedRows(RowsOnDisk):
    """Rows that are scaled as they are read."""

    def __init__(self, rows: RowsOnDisk, normalize: str) -> None:
        self.rows, self.normalize = rows, normalize
        self.shape, self.dtype = rows.shape, rows.dtype
        self.is_sparse, self.mean_nonzeros = rows.is_sparse, rows.mean_nonzeros

    def read(self, begin: int, end: int) -> Any:
        return normalized(self.rows.read(begin, end), self.normalize)


def normalized_rows(X: Any, normalize: str | None) -> Any:
    """``normalized``, for rows in memory and on disk."""
    if not isinstance(X, RowsOnDisk):
        return normalized(X, normalize)
    return X if normalize is None else _NormalizedRows(X, normalize)


class _RowsInMemory:
    """An array or CSR matrix as a source of pieces, which are views."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.shape: tuple[int, int] = x.shape
        self.dtype: np.dtype = x.dtype
        self.is_sparse = sparse.issparse(x)
        self.mean_nonzeros = (x.nnz if self.is_sparse else x.size) / max(x.shape[0], 1)

    def read(self, begin: int, end: int) -> Any:
        part = self.x[begin:end]
        return part if self.is_sparse else part.view()

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Any:
        return self.x[np.concatenate([np.arange(begin, end) for begin, end in ranges])]


def check_memory_limit(value: Any) -> int | None:
    """The limit in bytes; None without one."""
    if value is None:
        return None
    found = parse_bytes(value) if isinstance(value, str) else value
    if not is_integer(found) or found <= 0:
        problem = f'must be a number of bytes, or text such as "4GB"; got {value!r}'
        raise ParameterError("memory_limit", problem)
    return int(found)


def store_examples(X: Any, bias: float, may_be_copied: bool = True) -> Storage:
    """Checked input as it is; only a CSR matrix with repeated entries is copied.

    ``may_be_copied`` tells whether training may make a copy in double, memory permitting.
    """
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X).view()
        X.flags.writeable = False  # kernels compile once for read-only and ordinary input alike
    with np.errstate(over="ignore"):  # check_overflow looks at the norms
        storage = open_storage(X, bias)
    storage.may_be_copied = may_be_copied
    return storage


def open_limited(
    X: Any, n_classes: int, loss: Loss, bias: float, limit: int
) -> tuple[Storage | None, str]:
    """The storage that keeps the resident set below ``limit`` bytes, and a line about it.

    None where rows and duals fit into memory as they are.
    """
    on_disk = isinstance(X, RowsOnDisk)
    rows = X if on_disk else _RowsInMemory(X)
    n, d = X.shape
    row_bytes = X.row_bytes if on_disk else max(1, int(rows.mean_nonzeros) * X.dtype.itemsize)
    shape = (n, d, n_classes)
    data_bytes = n * row_bytes if on_disk else 0
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    itemsize = X.dtype.itemsize
    placing: Placing = place(shape, itemsize, data_bytes, loss, limit, resident_bytes(), disk)
    if placing.piece_bytes is None:
        return None, describe(placing, 1)
    rows_per_piece = max(1, placing.piece_bytes // row_bytes)
    storage = PiecedStorage(rows, bias, rows_per_piece, placing.duals, placing.most_dual_bytes)
    return storage, describe(placing, storage.n_pieces)
