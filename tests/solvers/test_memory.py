"""The memory check states its formula and refuses with advice."""

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.solvers import memory
from tests.solvers.problems import make_data


@pytest.mark.parametrize("itemsize", [4, 8])
def test_formula(itemsize):
    n, d, m = 1000, 20, 30
    duals = n * m * itemsize
    weights = 2 * (d + 1) * m * itemsize + 8 * (d + 1) * m
    blocks = 96 * 2**20 + 4 * duals
    assert memory.training_bytes(n, d, m, itemsize) == duals + weights + 24 * n + blocks


@pytest.mark.parametrize("itemsize", [4, 8])
def test_blocks_of_large_problems_are_made_in_pieces(itemsize):
    n, d, m = 100_000, 20, 500
    duals = n * m * itemsize
    weights = 2 * (d + 1) * m * itemsize + 8 * (d + 1) * m
    assert memory.training_bytes(n, d, m, itemsize) == duals + weights + 24 * n + 4 * 2**26


def test_more_of_anything_needs_more():
    base = memory.training_bytes(1000, 20, 30, 4)
    for other in [(2000, 20, 30, 4), (1000, 40, 30, 4), (1000, 20, 60, 4), (1000, 20, 30, 8)]:
        assert memory.training_bytes(*other) > base


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_refusal_names_the_sizes_and_the_ways_out(monkeypatch, dtype):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    X = np.lib.stride_tricks.as_strided(np.zeros(5, dtype), (10**6, 5), (0, dtype(0).itemsize))
    with pytest.raises(MemoryError) as refusal:
        memory.check_memory(X, 1000)
    text = str(refusal.value)
    assert "1000000 examples, 5 features and 1000 classes" in text
    assert "1.0 GiB is free" in text
    assert "fewer classes" in text
    # The advice to halve the precision is given only in double precision.
    assert ("float32" in text) == (dtype == np.float64)


def test_no_way_out_is_named_where_there_is_none(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    X, y = make_data()
    with pytest.raises(MemoryError) as refusal:
        TopKClassifier().fit(X, y)
    assert str(refusal.value) == (
        "training on 40 examples, 5 features and 4 classes needs about 96 MiB besides the data, "
        "nearly all of it for compiled code, and 1 MiB is free."
    )


def test_unknown_free_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    memory.check_memory(np.empty((10, 3)), 10**9)


def test_exactly_enough_is_enough(monkeypatch):
    X = np.empty((10, 3))
    need = memory.training_bytes(10, 3, 5, 8)
    monkeypatch.setattr(memory, "available_bytes", lambda: need)
    memory.check_memory(X, 5)
    monkeypatch.setattr(memory, "available_bytes", lambda: need - 1)
    with pytest.raises(MemoryError):
        memory.check_memory(X, 5)


def test_the_system_tells_a_plausible_number():
    free = memory.available_bytes()
    assert free is None or 0 <= free < 1 << 50
