"""Examples that do not lie in this process's memory, and the limit on what may.

``X`` may be rows on disk (:mod:`shortlist.datasets.on_disk`), memory maps under a
``memory_limit``, or any object that is :class:`HeldElsewhere`, such as the rows that the workers of
a cluster hold. All take the same way through a fit from there on.
"""

import shutil
import sys
import tempfile
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_array, column_or_1d

from shortlist._memory import parse_bytes, resident_bytes
from shortlist.datasets.on_disk import JoinedRows, RowsOnDisk, rows_on_disk
from shortlist.errors import ParameterError
from shortlist.estimators.normalization import normalized
from shortlist.losses import Loss
from shortlist.solvers.memory import check_memory
from shortlist.solvers.placing import Placing, describe, place
from shortlist.solvers.storage import PiecedStorage, Storage, open_storage


@runtime_checkable
class HeldElsewhere(Protocol):
    """Rows that bring their own storage."""

    shape: tuple[int, int]
    dtype: np.dtype

    def open_storage(
        self, bias: float, n_classes: int, loss: Loss, normalize: str | None
    ) -> Storage: ...


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
    if isinstance(X, RowsOnDisk) and normalize is not None:
        return _NormalizedRows(X, normalize)
    return X if isinstance(X, RowsOnDisk) else normalized(X, normalize)


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


def check_memory_limit(value: Any) -> int | None:
    """The limit in bytes; None without one."""
    if value is None:
        return None
    found = parse_bytes(value) if isinstance(value, str) else value
    if not isinstance(found, Integral) or isinstance(found, bool) or found <= 0:
        problem = f'must be a number of bytes, or text such as "4GB"; got {value!r}'
        raise ParameterError("memory_limit", problem)
    return int(found)


def stays_elsewhere(X: Any, memory_limit: Any) -> Any:
    """X as rows that are not brought into memory; None if they are to be."""
    limited = check_memory_limit(memory_limit) is not None
    if isinstance(X, HeldElsewhere):
        return X
    if not limited:
        return None
    if _on_disk(X):
        return rows_on_disk(X)
    # One matrix in several shards.
    shards = isinstance(X, list | tuple) and len({shard.shape[1] for shard in X if _on_disk(shard)})
    if shards == 1 and all(_on_disk(shard) for shard in X):
        return JoinedRows([rows_on_disk(shard) for shard in X])
    return None


def _on_disk(X: Any) -> bool:
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind == "f" and X.size > 0
    return isinstance(X, RowsOnDisk) or mapped


def check_elsewhere(estimator: Any, X: Any, y: Any, several: bool) -> tuple[Any, NDArray]:
    """What ``check_input`` does, for rows that are not looked at here: their storage does."""
    if several:
        y = check_array(y, accept_sparse="csr", dtype=None)
    else:
        y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    estimator.n_features_in_ = X.shape[1]
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return normalized_rows(X, estimator.normalize) if isinstance(X, RowsOnDisk) else X, y


def store_examples(X: Any, bias: float) -> Storage:
    """Checked input as it is; only a CSR matrix with repeated entries is copied."""
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X).view()
        X.flags.writeable = False  # kernels compile once for read-only and ordinary input alike
    with np.errstate(over="ignore"):  # check_scale looks at the norms
        return open_storage(X, bias)


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


def open_examples(
    estimator: Any, X: Any, n_classes: int, loss: Loss, bias: float
) -> tuple[Storage, str | None]:
    """The storage of checked input, and how a limit on memory is kept, if there is one."""
    limit = check_memory_limit(estimator.memory_limit)
    if isinstance(X, HeldElsewhere):
        there = X.open_storage(bias, n_classes, loss, estimator.normalize)
        told = getattr(there, "memory_plan", None)
        _tell(estimator, told)
        return there, told
    told = None
    if limit is not None:
        storage, told = open_limited(X, n_classes, loss, bias, limit)
        _tell(estimator, told)
        if storage is not None:
            return storage, told
    if isinstance(X, RowsOnDisk):
        X = check_array(X[:], accept_sparse="csr", dtype=[np.float64, np.float32])
    check_memory(X, n_classes, loss.sparse_duals)
    return store_examples(X, bias), told


def _tell(estimator: Any, plan: str | None) -> None:
    if estimator.verbose and plan is not None:
        sys.stderr.write(f"memory limit {estimator.memory_limit}: {plan}\n")
