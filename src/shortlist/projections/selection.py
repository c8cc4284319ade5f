"""The largest entries of a vector, without sorting all of it."""

import numpy as np

from shortlist._jit import njit

# Entries are looked at in strides: one comparison for all of a stride's.
ENTRIES_OF_STRIDE = 16


@njit
def stride_exceeds(a, begin, cut):
    """Whether one of the ``ENTRIES_OF_STRIDE`` entries from ``begin`` on is larger than ``cut``."""
    hits = np.int32(0)
    for j in range(begin, begin + ENTRIES_OF_STRIDE):
        hits |= np.int32(a[j] > cut)
    return hits != 0


@njit(maxima=True)
def any_nonzero(a, begin):
    """Whether one of the ``ENTRIES_OF_STRIDE`` entries from ``begin`` on is not zero."""
    size = abs(a[begin])
    for j in range(begin, begin + ENTRIES_OF_STRIDE):
        size = max(size, abs(a[j]))
    return size > 0


@njit
def largest(a, k, values, places):
    """Write the k largest entries of ``a``, in descending order, and where they stand.

    Ties go to the lower index. One pass: strides with no entry larger than the k-th so far cost
    a comparison, the few larger entries an insertion each.
    """
    m = a.shape[0]
    filled = 0
    begin = 0
    while begin < m:
        end = min(begin + ENTRIES_OF_STRIDE, m)
        if filled < k or end - begin < ENTRIES_OF_STRIDE or stride_exceeds(a, begin, values[k - 1]):
            for j in range(begin, end):
                x = a[j]
                if filled == k:
                    if not x > values[k - 1]:
                        continue
                    i = k - 1
                else:
                    i = filled
                    filled += 1
                while i > 0 and values[i - 1] < x:
                    values[i] = values[i - 1]
                    places[i] = places[i - 1]
                    i -= 1
                values[i] = x
                places[i] = j
        begin = end


@njit
def _sift_down(heap, root, size):
    x = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if not heap[child] > x:
            break
        heap[root] = heap[child]
        root = child
    heap[root] = x


@njit
def heapify(heap, size):
    """Order ``heap[:size]`` as a max-heap, so that :func:`pop_largest` can take from it."""
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(heap, root, size)


@njit
def pop_largest(heap, size):
    """Move the largest of ``heap[:size]`` to ``heap[size - 1]``; the rest stays a heap.

    After i calls from a heap of n entries the i-th largest stands at ``heap[n - i]``: sorting
    costs only as far as it is needed.
    """
    size -= 1
    last = heap[size]
    heap[size] = heap[0]
    heap[0] = last
    _sift_down(heap, 0, size)
