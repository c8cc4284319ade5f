"""Rows compute what they say from data that they do not copy."""

import numpy as np
import pytest

from shortlist.solvers.rows import DenseRows, SparseRows, chunks
from tests.solvers.problems import STORAGES, make_data, make_rows, primal_weights, with_bias

BIAS = 0.5


@pytest.fixture
def data():
    X, y = make_data(n=30, d=6)
    v = np.random.default_rng(1).normal(size=(30, 4))
    cost = np.linspace(0.0, 1.0, 30)
    return X, y, v, cost


@pytest.mark.parametrize("storage", STORAGES)
def test_quantities_equal_their_formulas(storage, data):
    X, _, v, cost = data
    full = with_bias(X, BIAS)
    rows = make_rows(storage, X, BIAS)
    np.testing.assert_allclose(rows.kappa, (full**2).sum(axis=1))
    weights = rows.rebuild(v, cost)
    W = -full.T @ (cost[:, None] * v)
    np.testing.assert_allclose(primal_weights(storage, weights, X, BIAS), W, atol=1e-12)
    part = slice(3, 17)
    np.testing.assert_allclose(rows.scores(weights, part), full[part] @ W, atol=1e-12)
    if storage == "gram":
        assert rows.squared_norm(weights) is None
        with pytest.raises(TypeError, match="Gram matrix"):
            rows.products(v[part], part)
    else:
        assert rows.squared_norm(weights) == pytest.approx((W**2).sum())
        np.testing.assert_allclose(rows.products(v[part], part), full[part].T @ v[part], atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_without_intercept_its_weights_stay_zero(storage, data):
    X, _, v, cost = data
    rows = make_rows(storage, X)
    W = primal_weights(storage, rows.rebuild(v, cost), X)
    assert not W[-1].any()


def test_dense_input_is_used_as_it_is(tmp_path, data):
    X = data[0]
    for kept in (X, np.asfortranarray(X), X[:, ::2]):
        assert np.shares_memory(DenseRows(kept).x, kept)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(DenseRows(mapped).x, mapped)


def test_sparse_input_is_used_as_it_is(data):
    from scipy.sparse import csr_array

    X = csr_array(data[0])
    before = X.data.copy()
    rows = SparseRows(X)
    assert np.shares_memory(rows.x.data, X.data)
    np.testing.assert_array_equal(X.data, before)


def test_chunks_cover_all_rows_once():
    parts = list(chunks(1000, row_bytes=1 << 20))
    assert len(parts) > 1
    assert np.concatenate([np.arange(1000)[p] for p in parts]).tolist() == list(range(1000))
    assert list(chunks(5, row_bytes=0)) == [slice(0, 5)]
    # A row that is larger than a chunk is still taken, alone.
    assert list(chunks(2, row_bytes=1 << 40)) == [slice(0, 1), slice(1, 2)]
