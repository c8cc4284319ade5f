"""Duals held as lists of entries are the duals held as an array: same iterates, less memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import TopKClassifier, losses
from shortlist._jit import njit
from shortlist.solvers import memory
from shortlist.solvers.duals import (
    SparseDuals,
    as_array,
    may_be_changed,
    readable,
    writable,
    zero_duals,
)
from shortlist.solvers.kernels.dual_rows import close_row, open_row
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, CsrStorage, DenseStorage
from shortlist.solvers.strategy.train import train
from tests.solvers.problems import make_data

HINGES = [
    losses.get("hinge"),
    losses.get("hinge", k=2),
    losses.get("smooth_hinge", k=2, variant="beta"),
    losses.get("ova_hinge"),
    losses.get("ova_smooth_hinge"),
]


def by_loss(loss):
    return f"{loss.name}-{loss.k}"


@njit
def write_row(duals, i, y, v):
    row = open_row(duals, i, np.empty_like(v))
    for j in range(v.shape[0]):
        row[j] = v[j]
    close_row(duals, i, y, row)


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", 0)


def make_problem(loss, storage, dtype=np.float64, C=1.0):
    from scipy.sparse import csr_array

    X, y = make_data(n=60, d=7, m=5, dtype=dtype)
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    rows = {
        "dense": lambda: DenseStorage(X, 1.0),
        "blocks": lambda: DenseStorage(X, 1.0, block=16),
        "sparse": lambda: CsrStorage(csr_array(X), 1.0),
    }[storage]()
    return Problem(rows, Costs(codes, np.full(len(y), C)), 5, loss)


# Every hinge on dense rows, and one of each kind in blocks and on sparse rows: how an entry is read
# and written does not depend on the loss, and each pair takes seconds to compile.
EVERYWHERE = (HINGES[1], HINGES[3])
PAIRS = [
    (loss, storage)
    for loss in HINGES
    for storage in ("dense", "blocks", "sparse")
    if storage == "dense" or loss in EVERYWHERE
]


@pytest.mark.parametrize(
    ("loss", "storage"), PAIRS, ids=[f"{by_loss(loss)}-{storage}" for loss, storage in PAIRS]
)
def test_the_same_training_bit_by_bit(loss, storage, monkeypatch):
    kept = train(make_problem(loss, storage), tol=1e-6, max_epochs=50, seed=0)
    monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", 0)
    listed = train(make_problem(loss, storage), tol=1e-6, max_epochs=50, seed=0)
    assert isinstance(kept.state.duals, np.ndarray)
    assert isinstance(listed.state.duals, SparseDuals)
    np.testing.assert_array_equal(as_array(listed.state.duals), kept.state.duals)
    np.testing.assert_array_equal(listed.weights, kept.weights)
    assert listed.result.primal == kept.result.primal
    assert listed.result.dual == kept.result.dual


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge"])
def test_the_same_training_with_several_labels(name, monkeypatch):
    X, y = make_data(n=60, d=7, m=5)
    right = np.eye(5, dtype=int)[y]
    right[::3, 2] = 1
    alike = []
    for limit in (memory.MAX_DENSE_DUAL_BYTES, 0):
        monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", limit)
        alike.append(TopKClassifier(name, k=2, tol=1e-6, random_state=0).fit(X, right))
    np.testing.assert_array_equal(alike[0].coef_, alike[1].coef_)
    assert alike[0].result_.dual == alike[1].result_.dual


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 4), st.lists(st.integers(0, 5), max_size=5)),
        max_size=60,
    )
)
def test_any_sequence_of_writes_reads_back(writes):
    n, m = 7, 5
    expected = np.zeros((n, m))
    duals = SparseDuals(n, m, np.float64)
    for i, y, nonzero in writes:
        v = np.zeros(m)
        for place, j in enumerate(nonzero):
            v[j % m] = place + 1.0
        expected[i] = v
        write_row(writable(duals, 1), i, y, v)
    np.testing.assert_array_equal(duals.toarray(), expected)
    np.testing.assert_array_equal(duals[2:5].toarray(), expected[2:5])
    duals *= 0.5
    np.testing.assert_array_equal(duals.toarray(), 0.5 * expected)


def test_the_pool_is_compacted_rather_than_grown_for_ever():
    n, m = 50, 40
    random = np.random.default_rng(0)
    duals = SparseDuals(n, m, np.float32)
    for _ in range(200):
        for i in range(n):
            v = np.zeros(m, np.float32)
            v[random.integers(0, m, random.integers(0, 6))] = 1
            write_row(writable(duals, 1), i, 0, v)
    # Six entries and the label's, a quarter of slack, and one row's worth to write in.
    most = 2 * (n * 9 + 51)
    assert readable(duals).values.size <= most


def test_many_classes_need_wide_indices():
    duals = SparseDuals(2, 70_000, np.float32)
    v = np.zeros(70_000, np.float32)
    v[69_999] = 1
    write_row(writable(duals, 1), 1, 65_537, v)
    assert duals.toarray()[1, 69_999] == 1
    assert np.count_nonzero(duals.toarray()) == 1


def test_small_problems_and_entropies_keep_the_array():
    assert isinstance(zero_duals(10, 10, np.float32, sparse=True), np.ndarray)
    large = memory.MAX_DENSE_DUAL_BYTES // 4 // 1000 + 1
    assert isinstance(zero_duals(large, 1000, np.float32, sparse=True), SparseDuals)
    assert isinstance(zero_duals(large, 1000, np.float32, sparse=False), np.ndarray)


@pytest.mark.usefixtures("always_sparse")
def test_paths_and_warm_starts():
    X, y = make_data(n=60, d=7, m=5)
    Cs = [0.1, 1.0, 10.0]
    path = TopKClassifier("smooth_hinge", tol=1e-6, random_state=0).fit_path(X, y, Cs)
    for C, model in zip(Cs, path, strict=True):
        assert model.result_.status == "converged"
        alone = TopKClassifier("smooth_hinge", C=C, tol=1e-6, random_state=0).fit(X, y)
        assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-6)
    model = TopKClassifier("hinge", warm_start=True, tol=1e-4, random_state=0).fit(X, y)
    assert model.fit(X, y).result_.epochs == 0


@pytest.mark.usefixtures("always_sparse")
def test_growth_asks_for_memory_first(monkeypatch):
    X, y = make_data(n=60, d=7, m=5)
    monkeypatch.setattr("shortlist.estimators.examples.check_memory", lambda *args: None)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10)
    with pytest.raises(MemoryError, match="nonzero duals need"):
        TopKClassifier("hinge").fit(X, y)


def test_formula_for_sparse_duals():
    n, d, m = 1_000_000, 20, 1000
    dense = memory.training_bytes(n, d, m, 4)
    sparse = memory.training_bytes(n, d, m, 4, sparse_duals=True)
    assert dense - sparse == n * m * 4 - n * m // 2
    assert memory.training_bytes(10, d, m, 4, True) == memory.training_bytes(10, d, m, 4)


@pytest.mark.parametrize("part", ["values", "columns", "begin", "counts", "room", "used"])
def test_one_part_that_is_only_for_reading_is_enough_not_to_write(part):
    duals = SparseDuals(3, 4, np.float64)
    assert may_be_changed(duals)
    getattr(duals.kernel_view, part).flags.writeable = False
    assert not may_be_changed(duals)


def test_an_array_only_for_reading_may_not_be_changed():
    duals = np.zeros((3, 4))
    assert may_be_changed(duals)
    duals.flags.writeable = False
    assert not may_be_changed(duals)
