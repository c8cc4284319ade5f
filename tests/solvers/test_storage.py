"""Storages compute what they say, from data that they do not copy."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from shortlist import losses
from shortlist.solvers.storage import CsrStorage, DenseStorage, open_storage
from shortlist.solvers.storage.base import Costs, active_examples, chunks, shares_of, squared_norm
from shortlist.solvers.threads import Crew
from tests.solvers.problems import (
    STORAGES,
    make_data,
    make_storage,
    primal_weights,
    with_bias,
)

BIAS = 0.5
EXPLICIT = ["dense", "fortran", "csr"]


@pytest.fixture
def data():
    X, y = make_data(n=30, d=6)
    v = np.random.default_rng(1).normal(size=(30, 4))
    cost = np.linspace(0.0, 1.0, 30)
    return X, y, v, cost


@pytest.mark.parametrize("storage", [*STORAGES, "fortran"])
def test_quantities_equal_their_formulas(storage, data):
    X, _, v, cost = data
    full = with_bias(X, BIAS)
    rows = make_storage(storage, X, BIAS)
    assert rows.n == 30
    np.testing.assert_allclose(rows.kappa, (full**2).sum(axis=1))
    weights = rows.rebuild(v, cost)
    W = -full.T @ (cost[:, None] * v)
    np.testing.assert_allclose(primal_weights(storage, weights, X, BIAS), W, atol=1e-12)
    largest = np.linalg.norm(W, axis=0).max()
    if storage == "gram":
        assert rows.squared_norm(weights) is None
        assert not rows.explicit
        # Only a bound can be had from inner products.
        assert rows.largest_column(weights) >= largest
    else:
        assert rows.squared_norm(weights) == pytest.approx((W**2).sum())
        assert rows.explicit
        assert rows.largest_column(weights) == pytest.approx(largest)


@pytest.mark.parametrize("storage", EXPLICIT)
def test_samples_and_sums_over_classes_equal_their_formulas(storage, data):
    X, y, _, cost = data
    full = with_bias(X, BIAS)
    rows = make_storage(storage, X, BIAS)
    np.testing.assert_array_equal(rows.sample(4), full[::4])
    sums = rows.class_sums(Costs(y, cost), 4)
    np.testing.assert_allclose(sums, full.T @ (cost[:, None] * np.eye(4)[y]), atol=1e-12)


@pytest.mark.parametrize("storage", EXPLICIT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duals_of_weights_are_gradients(storage, dtype, data):
    X, y, _, cost = data
    X = X.astype(dtype)
    rows = make_storage(storage, X, BIAS)
    W = np.random.default_rng(2).normal(size=(7, 4)).astype(dtype)
    loss = losses.get("softmax")
    duals = np.full((30, 4), np.nan, dtype)
    rows.fill_duals(loss, W, Costs(y, cost), duals, Crew())
    expected = loss.gradient(with_bias(X, BIAS) @ W, y)
    np.testing.assert_allclose(duals, expected, atol=32 * np.finfo(dtype).eps)


def test_inner_products_have_no_features_to_descend_on(data):
    X, y, v, cost = data
    rows, costs, loss = make_storage("gram", X, BIAS), Costs(y, cost), losses.get("softmax")
    for call in (
        lambda: rows.loss_gradient(loss, v, costs, Crew(), False),
        lambda: rows.fill_duals(loss, v, costs, v, Crew()),
        lambda: rows.class_sums(costs, 4),
        lambda: rows.sample(2),
    ):
        with pytest.raises(NotImplementedError, match="explicit weights"):
            call()


@pytest.mark.parametrize("storage", STORAGES)
def test_without_intercept_its_weights_stay_zero(storage, data):
    X, _, v, cost = data
    rows = make_storage(storage, X)
    W = primal_weights(storage, rows.rebuild(v, cost), X)
    assert not W[-1].any()


def test_rows_that_lie_together_are_used_as_they_are(tmp_path, data):
    X = data[0]
    assert np.shares_memory(DenseStorage(X).x, X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(DenseStorage(mapped).x, mapped)


def test_other_orders_of_memory_are_copied_and_left_alone(data):
    X = data[0]
    for given in (np.asfortranarray(X), X[:, ::2], X[::-1]):
        before = given.copy()
        rows = DenseStorage(given).x
        assert rows.flags.c_contiguous
        np.testing.assert_array_equal(rows, before)
        np.testing.assert_array_equal(given, before)


def test_sparse_input_is_used_as_it_is(data):
    X = csr_array(data[0])
    before = X.data.copy()
    rows = CsrStorage(X)
    assert np.shares_memory(rows.x.data, X.data)
    np.testing.assert_array_equal(X.data, before)


def test_empty_rows_of_a_sparse_matrix_have_no_length():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(CsrStorage(csr_array(X)).kappa, [0, 25, 0, 4, 0])
    np.testing.assert_array_equal(CsrStorage(csr_array(X), 2.0).kappa, [4, 29, 4, 8, 4])


def test_the_storage_suits_the_matrix(data):
    X = data[0]
    assert isinstance(open_storage(X, 1.0), DenseStorage)
    assert isinstance(open_storage(csr_array(X), 1.0), CsrStorage)


def test_chunks_cover_all_rows_once():
    parts = list(chunks(1000, row_bytes=1 << 20))
    assert len(parts) > 1
    assert np.concatenate([np.arange(1000)[p] for p in parts]).tolist() == list(range(1000))
    assert list(chunks(5, row_bytes=0)) == [slice(0, 5)]
    # A row that is larger than a chunk is still taken, alone.
    assert list(chunks(2, row_bytes=1 << 40)) == [slice(0, 1), slice(1, 2)]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_shares_cover_a_range_once(count):
    for begin, end in [(0, 10), (3, 4), (5, 21)]:
        shares = shares_of(begin, end, count)
        assert len(shares) <= count
        assert all(a < b for a, b in shares)
        covered = [i for a, b in shares for i in range(a, b)]
        assert covered == list(range(begin, end))


def test_squared_norms_are_summed_in_double():
    # Equal numbers would all round the same way: how far off the sum is depends on the processor.
    w = np.random.default_rng(0).normal(size=(1500, 1000)).astype(np.float32)
    exact = math.fsum(np.square(w.astype(np.float64)).ravel())
    assert squared_norm(w) == pytest.approx(exact, rel=1e-12)


def test_examples_without_cost_do_not_count():
    costs = Costs(np.zeros(4, np.int64), np.array([0.0, 1.0, 0.0, 1e-300]))
    assert active_examples(costs).tolist() == [1, 3]
