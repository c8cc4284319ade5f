"""Products by BLAS from inside kernels are NumPy's, and threads see each other's signals."""

import threading

import numba
import numpy as np
import pytest

from shortlist._blas import (
    add_both_transposed,
    add_transposed,
    blas_for,
    lower_gram,
    multiply,
    multiply_add,
    multiply_by_transposed,
    multiply_transposed,
)
from shortlist._jit import njit
from shortlist._native import announce, prefetch, publish, wait_for

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Name: the function, which factors it takes transposed, and whether it adds to what is there.
PRODUCTS = {
    "multiply": (multiply, False, False, False),
    "multiply_add": (multiply_add, False, False, True),
    "multiply_by_transposed": (multiply_by_transposed, False, True, False),
    "multiply_transposed": (multiply_transposed, True, True, False),
    "add_transposed": (add_transposed, True, False, True),
    "add_both_transposed": (add_both_transposed, True, True, True),
}
# Rows, inner length, columns: ordinary ones, single ones, and more than a block of BLAS.
SHAPES = [(3, 4, 5), (1, 1, 1), (1, 7, 3), (6, 1, 2), (5, 3, 1), (70, 90, 130)]


def matrix(rng, rows, columns, dtype, gap):
    """A matrix whose rows lie ``gap`` numbers apart."""
    return rng.normal(size=(rows, columns + gap)).astype(dtype)[:, :columns]


def tolerance(dtype, inner):
    return 8 * np.finfo(dtype).eps * inner


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@PRECISIONS
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype, shape, gap):
    product, first_transposed, second_transposed, adds = PRODUCTS[name]
    rows, inner, columns = shape
    rng = np.random.default_rng([*shape, gap])
    a = matrix(rng, *((inner, rows) if first_transposed else (rows, inner)), dtype, gap)
    b = matrix(rng, *((columns, inner) if second_transposed else (inner, columns)), dtype, gap)
    whole = rng.normal(size=(rows, columns + gap)).astype(dtype)
    before = whole.copy()
    c = whole[:, :columns]
    kept = a.copy(), b.copy()

    product(blas_for(dtype), a, b, c)

    left = a.T if first_transposed else a
    right = b.T if second_transposed else b
    expected = left.astype(np.float64) @ right.astype(np.float64)
    if adds:
        expected += before[:, :columns]
    np.testing.assert_allclose(c, expected, atol=tolerance(dtype, inner + 1) * 4)
    # Nothing else is written to: not the gaps between rows, not the factors.
    np.testing.assert_array_equal(whole[:, columns:], before[:, columns:])
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 6), (33, 129)], ids=str)
@PRECISIONS
def test_what_is_published_is_the_same_and_nothing_else_is_written(dtype, shape):
    source = np.random.default_rng(0).normal(size=shape).astype(dtype)
    whole = np.full((shape[0] + 2, shape[1]), np.nan, dtype)
    publish(source, whole[1:-1])
    np.testing.assert_array_equal(whole[1:-1], source)
    assert np.isnan(whole[[0, -1]]).all()


def test_a_reader_sees_what_was_published_before_the_signal():
    """One thread writes a number to a whole array and announces it; the other checks them all."""
    if numba.config.DISABLE_JIT:
        pytest.skip("threads wait only in compiled kernels")
    shared, signals = np.zeros((40, 50), np.float32), np.zeros(16, np.int64)
    blas, rounds = blas_for(np.float32), 2000
    writer = threading.Thread(target=_write_rounds, args=(blas, shared, signals, rounds))
    writer.start()
    stale = _read_rounds(blas, shared, signals, rounds)
    writer.join()
    assert stale == 0


@njit
def _write_rounds(blas, shared, signals, rounds):
    own = np.empty_like(shared)
    for turn in range(1, rounds + 1):
        wait_for(blas, signals, 8, turn - 1)
        own[:] = turn
        publish(own, shared)
        announce(signals, 0, turn)


@njit
def _read_rounds(blas, shared, signals, rounds):
    stale = 0
    for turn in range(1, rounds + 1):
        wait_for(blas, signals, 0, turn)
        for each in shared.flat:
            stale += each != turn
        announce(signals, 8, turn)
    return stale


@PRECISIONS
def test_a_product_replaces_what_was_there_even_nan(dtype):
    rng = np.random.default_rng(0)
    a, b = matrix(rng, 4, 3, dtype, 0), matrix(rng, 3, 5, dtype, 0)
    c = np.full((4, 5), np.nan, dtype)
    multiply(blas_for(dtype), a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=tolerance(dtype, 3))


@PRECISIONS
def test_products_with_nothing_in_between(dtype):
    """An inner length of zero: the sum is empty."""
    c = np.ones((4, 5), dtype)
    multiply_add(blas_for(dtype), np.empty((4, 0), dtype), np.empty((0, 5), dtype), c)
    np.testing.assert_array_equal(c, 1)


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (3, 8), (70, 130)])
@PRECISIONS
def test_inner_products(dtype, rows, columns, gap):
    rng = np.random.default_rng([rows, columns, gap])
    x = matrix(rng, rows, columns, dtype, gap)
    # Room for more examples, as a last block that is not full has it.
    g = rng.normal(size=(rows + gap, rows + gap)).astype(dtype)
    lower_gram(blas_for(dtype), x, g)
    expected = x.astype(np.float64) @ x.T.astype(np.float64)
    lower = np.tril_indices(rows)
    np.testing.assert_allclose(
        g[:rows, :rows][lower], expected[lower], atol=4 * tolerance(dtype, columns)
    )


def test_a_precision_has_functions_of_its_own():
    single, double = blas_for(np.float32), blas_for(np.float64)
    assert len({single.gemm, double.gemm, single.syrk, double.syrk}) == 4
    assert 0 != single.offer_core == double.offer_core
    assert blas_for(np.dtype("f4")) == single


@njit
def play(blas, signals, mine, theirs, first, rounds, ball):
    """Add one to the ball in turns with another thread; returns how often the turn was kept."""
    kept = 0
    for turn in range(rounds):
        wait_for(blas, signals, theirs, turn + (0 if first else 1))
        kept += ball[0] == 2 * turn + (0 if first else 1)
        ball[0] += 1
        announce(signals, mine, turn + 1)
    return kept


@pytest.mark.parametrize("spins", ["spinning", "giving way"])
def test_threads_take_turns(spins):
    """Each sees all that the other wrote before its signal."""
    blas = blas_for(np.float64)
    rounds = 2000 if spins == "spinning" else 20
    signals, ball = np.zeros(16, np.int64), np.zeros(1, np.int64)
    play(blas, signals, 0, 8, True, 0, ball)  # compile before the threads begin
    found = {}
    late = threading.Event()

    def second():
        if spins == "giving way":
            late.wait()  # the first thread waits longer than it spins
        found["second"] = play(blas, signals, 8, 0, False, rounds, ball)

    thread = threading.Thread(target=second)
    thread.start()
    timer = threading.Timer(0.1, late.set)
    timer.start()
    found["first"] = play(blas, signals, 0, 8, True, rounds, ball)
    thread.join()
    timer.join()
    assert found == {"first": rounds, "second": rounds}
    assert ball[0] == 2 * rounds
    assert signals[0] == signals[8] == rounds


def test_a_signal_that_is_there_is_not_waited_for():
    signals = np.full(9, 5, np.int64)
    wait_for(blas_for(np.float64), signals, 8, 5)
    announce(signals, 8, 7)
    wait_for(blas_for(np.float64), signals, 8, 6)
    np.testing.assert_array_equal(signals, [5] * 8 + [7])


@PRECISIONS
def test_fetching_ahead_changes_nothing(dtype):
    a = np.arange(12, dtype=dtype).reshape(3, 4)
    before = a.copy()
    for row, size in [(0, 1), (2, a[2].nbytes), (1, 1000)]:
        prefetch(a, row, size)
    np.testing.assert_array_equal(a, before)
