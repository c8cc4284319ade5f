"""The kinds of examples that a fit takes: in memory, on disk, and held elsewhere.

:func:`examples_of` looks at what the user gave and chooses its kind. All kinds take the same way
through a fit from there on. ``limited`` and ``starts`` still tell rows on disk from rows in memory.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_array, column_or_1d

from shortlist.datasets.on_disk import JoinedRows, RowsOnDisk, rows_on_disk
from shortlist.errors import ParameterError
from shortlist.estimators.inputs import check_input
from shortlist.estimators.limited import (
    HeldByWorkers,
    HeldElsewhere,
    check_memory_limit,
    normalized_rows,
    open_limited,
    store_examples,
)
from shortlist.estimators.normalization import normalized
from shortlist.losses import Loss
from shortlist.solvers.memory import check_memory
from shortlist.solvers.storage import Storage

_ROWS_HASHED_AT_ONCE = 4096

# A storage, and how a limit on memory is kept, if there is one.
Opened = tuple[Storage, str | None]
# Arrays with the contents of the examples, or hashes of it; and what the order of rows depends on.
Contents = tuple[Iterator[NDArray], dict[str, Any]]


class Examples(Protocol):
    """What a fit asks of examples, whatever their kind."""

    def checked(self, estimator: Any, y: Any, several: bool) -> tuple[Any, NDArray]:
        """X as training takes it, and labels; marks the estimator as fitted to such examples."""
        ...

    def open_storage(self, estimator: Any, bias: float, n_classes: int, loss: Loss) -> Opened:
        """The storage of X as :meth:`checked` gave it."""
        ...

    def contents(self, model: Any) -> Contents:
        """What a checkpoint knows the examples by."""
        ...


class _InMemory:
    """Arrays, CSR matrices and all that becomes one of them."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def _in_memory(self) -> Any:
        return self.X

    def checked(self, estimator: Any, y: Any, several: bool) -> tuple[Any, NDArray]:
        X = self._in_memory()
        X, y = check_input(estimator, X, y=y, order="C", ensure_min_samples=2, multi_output=several)
        return normalized(X, estimator.normalize), y

    def open_storage(self, estimator: Any, bias: float, n_classes: int, loss: Loss) -> Opened:
        limit, told = check_memory_limit(estimator.memory_limit), None
        if limit is not None:
            storage, told = open_limited(self.X, n_classes, loss, bias, limit)
            if storage is not None:
                return storage, told
        X = self._in_memory()
        check_memory(X, n_classes, loss.sparse_duals)
        return store_examples(X, bias, may_be_copied=limit is None), told

    def contents(self, model: Any) -> Contents:
        accept_sparse = "csr" if get_tags(model).input_tags.sparse else False
        X = check_input(model, self._in_memory(), reset=False, accept_sparse=accept_sparse)
        return contents_of_rows(X), {}


class _ReadIntoMemory(_InMemory):
    """Rows on disk, where no limit asks for them to stay there."""

    def _in_memory(self) -> Any:
        return self.X[:]


class _OnDisk(_ReadIntoMemory):
    """Rows on disk under a limit: they are read when they are needed."""

    def checked(self, estimator: Any, y: Any, several: bool) -> tuple[Any, NDArray]:
        y = _checked_labels(estimator, self.X, y, several)
        return normalized_rows(self.X, estimator.normalize), y

    def _in_memory(self) -> Any:
        return check_array(self.X[:], accept_sparse="csr", dtype=[np.float64, np.float32])

    def contents(self, model: Any) -> Contents:
        return contents_of_rows(self.X), {}


class _Elsewhere:
    """Rows that bring their own storage, which checks them."""

    def __init__(self, X: HeldElsewhere) -> None:
        self.X = X

    def checked(self, estimator: Any, y: Any, several: bool) -> tuple[Any, NDArray]:
        return self.X, _checked_labels(estimator, self.X, y, several)

    def open_storage(self, estimator: Any, bias: float, n_classes: int, loss: Loss) -> Opened:
        storage = self.X.open_storage(bias, n_classes, loss, estimator.normalize)
        return storage, storage.memory_plan

    def contents(self, model: Any) -> Contents:
        needs = "needs examples in this process's memory or files"
        raise ParameterError("checkpoint", needs)


class _WithWorkers(_Elsewhere):
    X: HeldByWorkers

    def contents(self, model: Any) -> Contents:
        hashes = self.X.hashes()
        joined = np.frombuffer("".join(hashes).encode(), np.uint8)
        return iter([joined]), {"n_workers": len(hashes)}


def examples_of(X: Any, memory_limit: Any) -> Examples:
    """X, by its kind."""
    limited = check_memory_limit(memory_limit) is not None
    if isinstance(X, HeldByWorkers):
        return _WithWorkers(X)
    if isinstance(X, HeldElsewhere):
        return _Elsewhere(X)
    if limited and _on_disk(X):
        return _OnDisk(rows_on_disk(X))
    if limited and _shards_on_disk(X):
        return _OnDisk(JoinedRows([rows_on_disk(shard) for shard in X]))
    return _ReadIntoMemory(X) if isinstance(X, RowsOnDisk) else _InMemory(X)


def _on_disk(X: Any) -> bool:
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind == "f" and X.size > 0
    return isinstance(X, RowsOnDisk) or mapped


def _shards_on_disk(X: Any) -> bool:
    """Whether X is one matrix in several shards, all of them on disk."""
    if not isinstance(X, list | tuple) or not all(_on_disk(shard) for shard in X):
        return False
    return len({shard.shape[1] for shard in X}) == 1


def _checked_labels(estimator: Any, X: Any, y: Any, several: bool) -> NDArray:
    """The part of ``check_input`` for labels and shapes. The storage checks the rows."""
    if several:
        y = check_array(y, accept_sparse="csr", dtype=None)
    else:
        y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    estimator.n_features_in_ = X.shape[1]
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return y


def contents_of_rows(rows: Any) -> Iterator[NDArray]:
    """Arrays with the contents of the rows, the same for rows in memory and on disk."""
    for begin in range(0, rows.shape[0], _ROWS_HASHED_AT_ONCE):
        piece = rows[begin : begin + _ROWS_HASHED_AT_ONCE]
        if sparse.issparse(piece):
            yield from (
                piece.data,
                piece.indices.astype(np.int64),
                np.diff(piece.indptr).astype(np.int64),
            )
        else:
            yield piece
