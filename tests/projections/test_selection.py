"""The selection kernels against sorting."""

import numpy as np
import pytest

from shortlist.projections.selection import heapify, largest, pop_largest


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_largest_is_the_front_of_a_stable_sort(dtype):
    rng = np.random.default_rng(0)
    for _ in range(200):
        m = int(rng.integers(1, 30))
        k = int(rng.integers(1, m + 1))
        a = rng.integers(-4, 5, size=m).astype(dtype)  # many ties
        a[rng.random(m) < 0.1] = -np.inf
        values, places = np.empty(k, dtype), np.empty(k, np.int32)
        largest(a, k, values, places)
        order = np.argsort(-a, kind="stable")[:k]  # ties go to the lower index
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, a[order])


def test_heap_sorts_as_far_as_asked():
    rng = np.random.default_rng(1)
    for _ in range(100):
        m = int(rng.integers(1, 40))
        a = rng.integers(-5, 6, size=m).astype(np.float64)
        heap = a.copy()
        heapify(heap, m)
        for i in range(int(rng.integers(1, m + 1))):
            pop_largest(heap, m - i)
            assert heap[m - 1 - i] == np.sort(a)[m - 1 - i]
        np.testing.assert_array_equal(np.sort(heap), np.sort(a))
