"""The duals of one example, as kernels read and write them: rows of an array, or lists of a pool.

    fetch_place(duals, i)                         let the processor find out where they are
    fetch_row(duals, i)                           let it fetch them: soon they are opened
    open_row(duals, i, scratch)                   all m entries; those of a list go to ``scratch``
    close_row(duals, i, y, v)                     keep what has been written to an open row
    gather(duals, i, y, classes, slots, v)        list what is not zero, and right labels
    put(duals, i, slot, value)                    write an entry that has been listed
    taken_from(duals, i, slot)                    read it again

A pool (``solvers.duals.Pool``) keeps the entries that are not zero. For many visits on the support
those of an array are copied to lists (:class:`ListedRows`): to look for them takes as long as a
visit, and they lie anywhere in memory.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import is_array, njit, overloaded
from shortlist._native import prefetch
from shortlist.projections.selection import ENTRIES_OF_STRIDE, any_nonzero


class ListedRows(NamedTuple):
    """Entries of an array's rows that are not zero or right, copied: those of a row lie together.

    Those of example i are ``begin[r]`` to ``begin[r + 1]`` of ``values`` and ``classes``, r =
    ``places[i]``. Entries may become zero, and are not gathered then; no others may change.
    """

    values: NDArray
    places: NDArray
    begin: NDArray
    classes: NDArray


def _one_of(duals: Any, dense: Any, listed: Any, pool: Any) -> Any:
    if is_array(duals):
        return dense
    return listed if duals.instance_class is ListedRows else pool


@njit
def _is_label(y, j):
    return j == y


@njit
def _is_among_labels(y, j):
    for label in y:
        if label == j:
            return True
        if label < 0:  # padding
            break
    return False


@overloaded
def is_right(y, j):
    return _is_among_labels if is_array(y) else _is_label


@njit
def with_room(count):
    # Room to grow by a quarter before an example moves to another place in the pool.
    return count + (count >> 2) + 1


@njit
def _nothing_to_fetch(duals, i):
    pass


@njit
def _fetch_place_in_pool(duals, i):
    prefetch(duals.begin, i, 1)
    prefetch(duals.counts, i, 1)
    prefetch(duals.room, i, 1)


@njit
def _fetch_dense(duals, i):
    prefetch(duals, i, duals.shape[1] * duals.itemsize)


@njit
def _fetch_place_in_list(duals, i):
    prefetch(duals.places, i, 1)


@njit
def _fetch_listed(duals, i):
    first = duals.begin[duals.places[i]]
    prefetch(duals.values, first, 1)
    prefetch(duals.classes, first, 1)


@njit
def _fetch_sparse(duals, i):
    begin, count = duals.begin[i], duals.counts[i]
    prefetch(duals.columns, begin, count * duals.columns.itemsize)
    prefetch(duals.values, begin, count * duals.values.itemsize)


@njit
def _open_dense(duals, i, scratch):
    return duals[i]


@njit
def _open_sparse(duals, i, scratch):
    scratch[:] = 0
    begin = duals.begin[i]
    for t in range(begin, begin + duals.counts[i]):
        scratch[duals.columns[t]] = duals.values[t]
    return scratch


@njit
def _close_dense(duals, i, y, v):
    pass


@njit
def _close_sparse(duals, i, y, v):
    count = _count_nonzeros(v)
    if count == 0:
        duals.counts[i] = 0
        return
    # The right label is kept even at zero: support visits may change it.
    zeros = _zeros_at_labels(y, v)
    count += zeros
    if count > duals.room[i]:
        duals.used[1] += duals.room[i]
        duals.begin[i] = duals.used[0]
        duals.room[i] = with_room(count)
        duals.used[0] += duals.room[i]
    t = duals.begin[i]
    duals.counts[i] = count
    m = v.shape[0]
    for first in range(0, m, ENTRIES_OF_STRIDE):
        last = min(first + ENTRIES_OF_STRIDE, m)
        # A stride of zeros is passed over at once.
        if zeros == 0 and last - first == ENTRIES_OF_STRIDE and not any_nonzero(v, first):
            continue
        for j in range(first, last):
            if v[j] != 0 or (zeros > 0 and is_right(y, j)):
                duals.values[t] = v[j]
                duals.columns[t] = j
                t += 1


@njit(sums=True)
def _count_nonzeros(v):
    count = np.int32(0)
    for j in range(v.shape[0]):
        count += np.int32(v[j] != 0)
    return count


@njit
def _zero_at_label(y, v):
    return np.int32(v[y] == 0)


@njit
def _count_zero_labels(y, v):
    count = np.int32(0)
    for label in y:
        if label < 0:  # padding
            break
        count += np.int32(v[label] == 0)
    return count


@overloaded
def _zeros_at_labels(y, v):
    """How many right labels have a dual of zero."""
    return _count_zero_labels if is_array(y) else _zero_at_label


@njit
def _gather_dense(duals, i, y, classes, slots, v):
    count = 0
    for j in range(duals.shape[1]):
        if duals[i, j] != 0 or is_right(y, j):
            classes[count] = j
            slots[count] = j
            v[count] = duals[i, j]
            count += 1
    return count


@njit
def _gather_listed(duals, i, y, classes, slots, v):
    count = 0
    place = duals.places[i]
    for e in range(duals.begin[place], duals.begin[place + 1]):
        j = duals.classes[e]
        if duals.values[e] != 0 or is_right(y, j):
            classes[count] = j
            slots[count] = e
            v[count] = duals.values[e]
            count += 1
    return count


@njit
def _gather_sparse(duals, i, y, classes, slots, v):
    count = 0
    begin = duals.begin[i]
    for slot in range(duals.counts[i]):
        j = np.int64(duals.columns[begin + slot])
        if duals.values[begin + slot] != 0 or is_right(y, j):
            classes[count] = j
            slots[count] = slot
            v[count] = duals.values[begin + slot]
            count += 1
    return count


@njit
def _put_dense(duals, i, slot, value):
    duals[i, slot] = value


@njit
def _put_listed(duals, i, slot, value):
    duals.values[slot] = value


@njit
def _put_sparse(duals, i, slot, value):
    duals.values[duals.begin[i] + slot] = value


@njit
def _take_dense(duals, i, slot):
    return duals[i, slot]


@njit
def _take_listed(duals, i, slot):
    return duals.values[slot]


@njit
def _take_sparse(duals, i, slot):
    return duals.values[duals.begin[i] + slot]


@overloaded
def fetch_place(duals, i):
    return _one_of(duals, _nothing_to_fetch, _fetch_place_in_list, _fetch_place_in_pool)


@overloaded
def fetch_row(duals, i):
    return _one_of(duals, _fetch_dense, _fetch_listed, _fetch_sparse)


@overloaded
def open_row(duals, i, scratch):
    return _open_dense if is_array(duals) else _open_sparse


@overloaded
def close_row(duals, i, y, v):
    return _close_dense if is_array(duals) else _close_sparse


@overloaded
def gather(duals, i, y, classes, slots, v):
    return _one_of(duals, _gather_dense, _gather_listed, _gather_sparse)


@overloaded
def put(duals, i, slot, value):
    return _one_of(duals, _put_dense, _put_listed, _put_sparse)


@overloaded
def taken_from(duals, i, slot):
    return _one_of(duals, _take_dense, _take_listed, _take_sparse)
