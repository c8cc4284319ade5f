"""Every way to hold the examples gives the same model, and none is copied without need."""

import tracemalloc

import numpy as np
import pandas
import pytest
import torch
from scipy import sparse

from shortlist import TopKClassifier
from shortlist.estimators import limited
from tests.estimators.objectives import named_data, objective
from tests.solvers.problems import make_data

# So small a gap leaves the scores six digits, whatever the order of sums.
EXACT = {"tol": 1e-12, "random_state": 0}
open_storage = limited.open_storage


@pytest.fixture(scope="module")
def data():
    X, y = named_data()
    return X.astype(np.float16).astype(np.float64), y  # so that float16 holds it exactly


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def unaligned(X):
    room = np.zeros(X.nbytes + 1, np.uint8)
    view = room[1:].view(X.dtype).reshape(X.shape)
    view[:] = X
    return view


def csr_unsorted(X):
    """The entries of every row in reverse."""
    rows = sparse.csr_array(X)
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        rows.indices[begin:end] = rows.indices[begin:end][::-1]
        rows.data[begin:end] = rows.data[begin:end][::-1]
    rows.has_sorted_indices = False
    return rows


def csr_with_duplicates(X):
    """Every entry in two parts that add up to it."""
    rows = sparse.csr_array(X)
    data = np.column_stack([rows.data * 0.25, rows.data * 0.75]).ravel()
    return sparse.csr_array((data, np.repeat(rows.indices, 2), rows.indptr * 2), shape=X.shape)


def csr_wide_indices(X):
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def csr_read_only(X):
    rows = sparse.csr_array(X)
    for part in (rows.data, rows.indices, rows.indptr):
        part.flags.writeable = False
    return rows


FORMS = {
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[:, ::-1].copy()[:, ::-1],
    "read-only": read_only,
    "unaligned": unaligned,
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "list": lambda X: X.tolist(),
    "frame": pandas.DataFrame,
    "float32 frame": lambda X: pandas.DataFrame(X.astype(np.float32)),
    "float16 frame": lambda X: pandas.DataFrame(X.astype(np.float16)),
    "tensor": torch.from_numpy,
    "float32 tensor": lambda X: torch.from_numpy(X).float().requires_grad_(),
    "float16 tensor": lambda X: torch.from_numpy(X).half(),
    "nullable frame": lambda X: pandas.DataFrame(X).astype("Float64"),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr unsorted": csr_unsorted,
    "csr duplicates": csr_with_duplicates,
    "csr int64": csr_wide_indices,
    "csr read-only": csr_read_only,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "bsr": sparse.bsr_array,
}


@pytest.fixture(scope="module")
def expected(data):
    X, y = data
    return TopKClassifier(**EXACT).fit(X, y).decision_function(X)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:training stalled:sklearn.exceptions.ConvergenceWarning")
def test_every_form_gives_the_same_model(form, data, expected):
    X, y = data
    given = FORMS[form](X)
    model = TopKClassifier(**EXACT).fit(given, y)
    single = any(name in form for name in ("float32", "float16"))
    assert model.coef_.dtype == (np.float32 if single else np.float64)
    assert model.n_features_in_ == 5
    tolerance = 2e-3 if single else 1e-6
    np.testing.assert_allclose(model.decision_function(X), expected, atol=tolerance)
    np.testing.assert_allclose(model.decision_function(given), expected, atol=tolerance)


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_bfloat16_becomes_float32(kind, data):
    X, y = data
    given = halves = torch.from_numpy(X).bfloat16()
    if kind == "array":
        given = halves.float().numpy().astype(pytest.importorskip("ml_dtypes").bfloat16)
    exact = TopKClassifier(random_state=0).fit(halves.float().numpy(), y)
    model = TopKClassifier(random_state=0).fit(given, y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_array_equal(model.coef_, exact.coef_)
    np.testing.assert_array_equal(model.predict_topk(given), exact.predict_topk(given))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_that_lie_together_are_copied_once():
    """In the type of training and the order of rows at once."""
    X, y = make_data(n=2000, d=500)
    given = np.asfortranarray(np.rint(100 * X).astype(np.int32))
    model = TopKClassifier(max_epochs=1, tol=1e-9, random_state=0)
    model.fit(given[:50], y[:50])
    tracemalloc.start()
    try:
        model.fit(given, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.75 * X.nbytes


@pytest.mark.parametrize("form", ["csr unsorted", "csr duplicates", "read-only"])
def test_what_was_given_is_not_changed(form, data):
    X, y = data
    given = FORMS[form](X)
    if sparse.issparse(given):
        before = [part.copy() for part in (given.data, given.indices, given.indptr)]
        TopKClassifier().fit(given, y)
        for part, old in zip((given.data, given.indices, given.indptr), before, strict=True):
            np.testing.assert_array_equal(part, old)
    else:
        TopKClassifier().fit(given, y)
        np.testing.assert_array_equal(given, X)


def test_integers_and_booleans_are_numbers(data):
    _, y = data
    counts = np.random.default_rng(0).integers(0, 3, size=(len(y), 5))
    exact = TopKClassifier(**EXACT).fit(counts.astype(float), y)
    for given in (counts, counts.astype(np.uint8), sparse.csr_array(counts), counts.tolist()):
        model = TopKClassifier(**EXACT).fit(given, y)
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-6)
    flags = TopKClassifier(**EXACT).fit(counts > 0, y)
    as_floats = TopKClassifier(**EXACT).fit((counts > 0).astype(float), y)
    np.testing.assert_array_equal(flags.coef_, as_floats.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_are_used_as_they_are(layout, dtype, writeable, data, monkeypatch):
    X = np.array(data[0], dtype=dtype, order=layout)
    X.flags.writeable = writeable
    used = []

    def spied(x, bias):
        storage = open_storage(x, bias)
        used.append(storage.x)
        return storage

    monkeypatch.setattr(limited, "open_storage", spied)
    TopKClassifier(max_epochs=1).fit(X, data[1])
    # Rows that do not lie together are copied, once.
    assert [np.shares_memory(x, X) for x in used] == [layout == "C"]
    assert X.flags.writeable == writeable


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_are_used_as_they_are(data, monkeypatch):
    X = sparse.csr_array(data[0])
    used = []
    monkeypatch.setattr(
        limited, "open_storage", lambda x, bias: used.append(x) or open_storage(x, bias)
    )
    TopKClassifier(max_epochs=1).fit(X, data[1])
    for part in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(used[0], part), getattr(X, part))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_larger_than_what_is_allocated(tmp_path):
    """A mapped file of 200 MB is trained on, and predicted, in a fraction of that."""
    mapped = np.lib.format.open_memmap(
        tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(6250, 8000)
    )
    X, y = make_data(n=6250, dtype=np.float32)
    mapped[:, 1000:1005] = X
    del mapped
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = TopKClassifier(max_epochs=1, tol=1e-9, random_state=0)
    model.fit(mapped[:50], y[:50])  # kernels are compiled or loaded before anything is measured
    tracemalloc.start()
    try:
        model.fit(mapped, y)
        accuracy = model.score(mapped, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * mapped.nbytes
    small = TopKClassifier(max_epochs=1, tol=1e-9, random_state=0).fit(X, y)
    assert accuracy == pytest.approx(small.score(X, y), abs=0.02)


SHAPES = {
    "one example a class": (2, 3, 2),
    "fewer examples than a block": (7, 5, 3),
    "one feature": (40, 1, 4),
    "two classes": (40, 5, 2),
    "more classes than examples of most": (30, 5, 25),
    "more features than examples": (12, 300, 4),
}


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", ["entropy", "hinge", "ova_logistic"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_odd_shapes_converge_to_what_they_say(shape, loss, kind):
    n, d, m = SHAPES[shape]
    X, y = make_data(n=n, d=d, m=m)
    model = TopKClassifier(loss, random_state=0, tol=1e-4).fit(kind(X), y)
    assert model.result_.status == "converged"
    assert 0 <= model.result_.gap <= 1e-4 * model.result_.primal
    coef, intercept = model._class_weights()
    value = objective(loss, coef, X, y, 1.0, intercept=intercept)
    if m == 2 and loss == "ova_logistic":  # the mean of two models that mirror each other
        assert model.result_.dual <= value <= model.result_.primal
    else:
        assert value == pytest.approx(model.result_.primal, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_empty_rows_and_columns(kind, data):
    """Rows of zeros tell of nothing but the intercept; columns of zeros get no weight."""
    X, y = data
    X = np.where(np.arange(len(X))[:, None] % 3 == 0, 0.0, X)
    X[:, 2] = 0.0
    model = TopKClassifier("smooth_hinge", k=2, tol=1e-8, random_state=0).fit(kind(X), y)
    assert model.result_.status == "converged"
    assert not model.coef_[:, 2].any()
    scores = model.decision_function(kind(np.zeros((2, 5))))
    np.testing.assert_allclose(scores, np.broadcast_to(model.intercept_, (2, 4)))


def test_labels_that_pandas_calls_missing(data):
    X, y = data
    labels = pandas.Series(y.astype(str), dtype="string")
    labels[3] = pandas.NA
    with pytest.raises(ValueError, match="y contains missing values"):
        TopKClassifier().fit(X, labels)
