"""How duals are stored: an (n, m) array, or only the entries that are not zero.

Hinge losses keep a few of an example's m duals apart from zero: some 2 % of them on embeddings of
150 classes, from the first epoch on, and half of them under very strong regularisation. Where the
array would be large, :class:`SparseDuals` holds a list of entries for each example, in one pool.

Kernels see either through the functions of ``kernels.dual_rows``, chosen by type when they compile.
All else goes through the functions below: which of the two it is, is asked here only.
"""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shortlist._jit import njit
from shortlist._sparse import check_sparse
from shortlist.solvers import memory
from shortlist.solvers.kernels.dual_rows import close_row, open_row, with_room

# Entries reserved for one call of a kernel, as if all its duals became nonzero.
_MAX_RESERVED_ENTRIES = 1 << 22
# Numbers of an array that are looked at in one go for those that are not zero.
_NUMBERS_AT_ONCE = 1 << 22


class Pool(NamedTuple):
    """SparseDuals as kernels see them.

    Example i has the entries ``begin[i]`` to ``begin[i] + counts[i]`` and room for ``room[i]``.
    ``used`` holds two numbers: how much of the pool is given out, and how much of that was given
    up again.
    """

    values: NDArray
    columns: NDArray
    begin: NDArray
    counts: NDArray
    room: NDArray
    used: NDArray


class SparseDuals:
    """Duals of n examples and m classes, all zero at first, held as lists of entries."""

    def __init__(self, n: int, m: int, dtype: Any, most_bytes: int | None = None) -> None:
        self.shape = (n, m)
        self.dtype = np.dtype(dtype)
        index = np.uint16 if m <= 1 << 16 else np.int32
        self._pool = Pool(
            np.empty(0, self.dtype),
            np.empty(0, index),
            np.zeros(n, np.int64),
            np.zeros(n, np.int32),
            np.zeros(n, np.int32),
            np.zeros(2, np.int64),
        )
        self._whole: SparseDuals | None = None
        # Bytes that all entries together may take; None: as many as the system has.
        self.most_bytes = most_bytes

    @property
    def kernel_view(self) -> Pool:
        return self._pool

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._pool)

    def reserve(self, rows: int) -> None:
        """Make room for so many examples to be changed in every entry."""
        if self._whole is not None:
            self._whole.reserve(rows)  # the pool belongs to the whole
            return
        pool = self._pool
        need = rows * with_room(self.shape[1])
        if pool.used[0] + need <= pool.values.size:
            return
        if pool.used[1] > pool.used[0] // 4:
            order = np.argsort(pool.begin, kind="stable")
            _compact(pool, order)
        if pool.used[0] + need > pool.values.size:
            size = int(max(pool.used[0] + need, 1.25 * pool.used[0]))
            entry = pool.values.itemsize + pool.columns.itemsize
            room = None if self.most_bytes is None else self.most_bytes - self.nbytes
            memory.require_for_duals((size - pool.values.size) * entry, "the nonzero duals", room)
            # The system moves large arrays without a copy; nothing else looks at them now.
            # The values last: their size is the capacity, so Ctrl-C between the two is harmless.
            pool.columns.resize(size, refcheck=False)
            pool.values.resize(size, refcheck=False)

    def toarray(self) -> NDArray:
        """The (n, m) array."""
        dense = np.empty(self.shape, self.dtype)
        _expand(self._pool, dense)
        return dense

    def entries(self) -> "Entries":
        """How many entries each example has, and their columns and values, example by example."""
        pool = self._pool
        counts = pool.counts.astype(np.int64)
        # The first entry of each example moves from its place in the pool to the end so far.
        shifts = pool.begin - (np.cumsum(counts) - counts)
        places = np.repeat(shifts, counts) + np.arange(counts.sum())
        return pool.counts, pool.columns[places], pool.values[places]

    @classmethod
    def from_entries(
        cls, m: int, counts: NDArray, columns: NDArray, values: NDArray
    ) -> "SparseDuals":
        """The inverse of :meth:`entries`; ValueError if these are not entries of duals."""
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        listed = sparse.csr_array((values, columns, indptr), shape=(len(counts), m))
        check_sparse(listed)
        if not listed.has_canonical_format:
            raise ValueError("an example's classes are not in their order")
        duals = cls(len(counts), m, values.dtype)
        duals._pool.columns.resize(columns.size, refcheck=False)
        duals._pool.values.resize(values.size, refcheck=False)
        for own, given in zip(
            duals._pool, (values, columns, indptr[:-1], counts, counts), strict=False
        ):
            own[:] = given
        duals._pool.used[0] = values.size
        return duals

    def __getitem__(self, part: slice | NDArray) -> "SparseDuals":
        """Some of the examples, which share the pool."""
        piece = object.__new__(SparseDuals)
        pool = self._pool
        piece._pool = pool._replace(
            begin=pool.begin[part], counts=pool.counts[part], room=pool.room[part]
        )
        piece.shape = (piece._pool.begin.size, self.shape[1])
        piece.dtype = self.dtype
        piece._whole = self if self._whole is None else self._whole
        return piece

    def __len__(self) -> int:
        return self.shape[0]

    def __imul__(self, factor: float) -> "SparseDuals":
        self._pool.values[: self._pool.used[0]] *= self.dtype.type(factor)
        return self


Duals = NDArray | SparseDuals
# How many entries each example has, and their columns and values: see ``SparseDuals.entries``.
Entries = tuple[NDArray, NDArray, NDArray]


class Selection(Protocol):
    """Some examples, in an order of their own: the rows of a piece (``storage.mixing``)."""

    @property
    def size(self) -> int: ...
    def taken(self, values: NDArray) -> NDArray: ...
    def put_back(self, own: NDArray, values: NDArray) -> None: ...


class TakenDuals(SparseDuals):
    """Lists of duals of a piece. They stay in the pool of the whole; :meth:`put_back` at the end.

    The pool is put in order, when it is full, by the whole's own knowledge of where lists begin.
    """

    _whole: SparseDuals

    def __init__(self, whole: SparseDuals, selection: Selection) -> None:
        self._selection, self._whole = selection, whole
        self.dtype = whole.dtype
        self.shape = (selection.size, whole.shape[1])
        self.most_bytes = None
        self._take()

    def _take(self) -> None:
        pool, taken = self._whole.kernel_view, self._selection.taken
        self._pool = pool._replace(
            begin=taken(pool.begin), counts=taken(pool.counts), room=taken(pool.room)
        )

    def put_back(self) -> None:
        own, pool = self._pool, self._whole.kernel_view
        for name in ("begin", "counts", "room"):
            self._selection.put_back(getattr(own, name), getattr(pool, name))

    def reserve(self, rows: int) -> None:
        self.put_back()
        self._whole.reserve(rows)
        self._take()


def taken_duals(duals: Duals, selection: Selection) -> Duals:
    """The duals of a piece, to be changed and put back."""
    if isinstance(duals, SparseDuals):
        return TakenDuals(duals, selection)
    return selection.taken(duals)


def taken_ahead(duals: Duals, selection: Selection) -> Duals | None:
    """The same while another piece is worked on; None for lists, which move in their pool then."""
    return None if isinstance(duals, SparseDuals) else taken_duals(duals, selection)


def put_back(own: Duals, selection: Selection, duals: Duals) -> None:
    """Put the duals of a piece back to those of all examples."""
    if isinstance(own, TakenDuals):
        own.put_back()
    else:
        selection.put_back(as_array(own), as_array(duals))


def zero_duals(
    n: int, m: int, dtype: Any, sparse: bool, most_list_bytes: int | None = None
) -> Duals:
    """Zeros: lists if ``sparse`` says that most will stay and an array would be large, or an array.

    ``most_list_bytes`` bounds what lists may grow to; None: as large as the system has room for.
    """
    if sparse and n * m * np.dtype(dtype).itemsize > memory.MAX_DENSE_DUAL_BYTES:
        return SparseDuals(n, m, dtype, most_list_bytes)
    return np.zeros((n, m), dtype)


def mapped_duals(n: int, m: int, dtype: Any) -> NDArray:
    """Zeros in a file without a name, mapped: the system writes out what memory has no room for."""
    with tempfile.TemporaryFile(prefix="shortlist-") as file:
        return np.memmap(file, dtype, "w+", shape=(n, m)).view(np.ndarray)


def as_array(duals: Duals) -> NDArray:
    """The duals as an array: the one they are kept in, or a new one."""
    return duals.toarray() if isinstance(duals, SparseDuals) else duals


def array_of(duals: Duals) -> NDArray | None:
    """The array that the duals are kept in; None: they are lists."""
    return None if isinstance(duals, SparseDuals) else duals


def readable(duals: Any) -> Any:
    """What kernels that only read take."""
    return duals.kernel_view if isinstance(duals, SparseDuals) else duals


def writable(duals: Duals, rows: int) -> Any:
    """What kernels that change at most ``rows`` examples take."""
    if isinstance(duals, SparseDuals):
        duals.reserve(rows)
    return readable(duals)


def may_be_changed(duals: Duals) -> bool:
    """Whether the duals can be written to: not if they are mapped from a file for reading."""
    parts = duals.kernel_view if isinstance(duals, SparseDuals) else [duals]
    return all(part.flags.writeable for part in parts)


def outlast_fit(duals: Any) -> bool:
    """Whether the duals are still there after the fit. Those of a cluster go with its workers."""
    return isinstance(duals, np.ndarray | SparseDuals)


def store(duals: Duals, part: slice, y: NDArray, values: NDArray) -> None:
    """Set the duals of some examples, whose labels are ``y``, to the rows of ``values``."""
    if isinstance(duals, SparseDuals):
        size = rows_at_once(duals, len(values))
        for begin in range(0, len(values), size):
            piece = values[begin : begin + size]
            pool = writable(duals, len(piece))
            _store(pool, part.start + begin, y[begin : begin + size], piece)
    else:
        duals[part] = values


def copy_duals(
    source: Duals,
    target: Duals,
    y: NDArray,
    change: Callable[[NDArray, NDArray], NDArray] | None = None,
) -> None:
    """Put duals in place of others, in the precision of these, some examples at a time.

    ``change(rows, labels)`` returns what is stored of some rows.
    """
    n, m = source.shape
    size = max(1, _MAX_RESERVED_ENTRIES // m)
    for begin in range(0, n, size):
        part = slice(begin, min(begin + size, n))
        rows = as_array(source[part])
        rows = rows if change is None else change(rows, y[part])
        store(target, part, y[part], rows.astype(target.dtype, copy=False))


def spread(own: float, other: float, y: NDArray, part: slice, duals: Duals) -> None:
    """Give some examples, whose labels are ``y``, the dual ``own`` at their label.

    All other classes get ``other``.
    """
    whole = array_of(duals)
    values = np.empty((len(y), duals.shape[1]), duals.dtype) if whole is None else whole[part]
    values[:] = other
    values[np.arange(len(y)), y] = own
    if whole is None:
        store(duals, part, y, values)


def are_arrays(*duals: Duals) -> bool:
    """Whether all of them are arrays, of which one can take the place of another."""
    return all(type(each) is np.ndarray for each in duals)


def entries_of(duals: Duals) -> Entries:
    """The entries that are not zero, as :meth:`SparseDuals.entries` gives them."""
    if isinstance(duals, SparseDuals):
        return duals.entries()
    size = max(1, _NUMBERS_AT_ONCE // duals.shape[1])
    parts = [sparse.csr_array(duals[i : i + size]) for i in range(0, len(duals), size)]
    listed = sparse.vstack(parts, format="csr")
    return np.diff(listed.indptr), listed.indices, listed.data


def as_plain(duals: Duals) -> Any:
    """Duals for a file: an array, or the three arrays of :meth:`SparseDuals.entries`."""
    if isinstance(duals, SparseDuals):
        return dict(zip(("counts", "columns", "values"), duals.entries(), strict=True))
    return duals


def rows_at_once(duals: Duals, most: int) -> int:
    """How many examples to hand to a kernel at once, at most ``most``."""
    if isinstance(duals, SparseDuals):
        return max(1, min(most, _MAX_RESERVED_ENTRIES // duals.shape[1]))
    return most


@njit
def _expand(pool, dense):
    for i in range(dense.shape[0]):
        open_row(pool, i, dense[i])


@njit
def _store(pool, first, y, dense):
    for b in range(dense.shape[0]):
        close_row(pool, first + b, y[b], dense[b])


@njit
def _compact(pool, order):
    """Move all lists together, towards the front, in the order they lie in."""
    front = 0
    for i in order:
        begin = pool.begin[i]
        count = pool.counts[i]
        for t in range(count):
            pool.values[front + t] = pool.values[begin + t]
            pool.columns[front + t] = pool.columns[begin + t]
        pool.begin[i] = front
        pool.room[i] = count
        front += count
    pool.used[0] = front
    pool.used[1] = 0
