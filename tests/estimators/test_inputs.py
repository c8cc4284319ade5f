"""Features in shards are those of one matrix, in a precision that is never raised needlessly."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from shortlist import TopKClassifier, TopKClassifierCV
from shortlist.estimators.inputs import as_matrix

PARAMS = {"Cs": [0.1, 1.0], "ks": (1, 3), "max_extensions": 0, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X[:300] / 16).astype(np.float32), y[:300], (X[300:400] / 16).astype(np.float32)


@pytest.fixture(scope="module")
def expected(digits):
    X, y, new = digits
    search = TopKClassifierCV(cv=3, **PARAMS).fit(X, y)
    return search.mean_scores_, search.decision_function(new)


def mapped(X, path):
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def forms(X, folder):
    """The same rows, exact in half precision: pixels are sixteenths."""
    half = X.astype(np.float16)
    yield "float16", half
    yield "memory map", mapped(X, folder / "whole.npy")
    yield "half memory map", mapped(half, folder / "half.npy")
    yield "shards", [X[:100], X[100:120], X[120:]]
    yield "mapped shards", [mapped(half[i : i + 100], folder / f"{i}.npy") for i in (0, 100, 200)]
    yield "mixed shards", (half[:50], X[50:])
    yield "sparse shards", [sparse.csr_array(X[:50]), X[50:]]
    torch = pytest.importorskip("torch")
    yield "tensor", torch.tensor(X)
    yield "bfloat16", torch.tensor(X).to(torch.bfloat16)
    yield "tensors", [torch.tensor(half[:80]), torch.tensor(X[80:])]


def test_every_form_gives_the_same_search_in_single_precision(digits, expected, tmp_path):
    X, y, new = digits
    accuracies, scores = expected
    for name, form in forms(X, tmp_path):
        search = TopKClassifierCV(cv=3, **PARAMS).fit(form, y)
        assert search.coef_.dtype == np.float32, name
        np.testing.assert_allclose(search.mean_scores_, accuracies, atol=0.011, err_msg=name)
        np.testing.assert_allclose(
            search.decision_function(new), scores, rtol=1e-3, atol=1e-3, err_msg=name
        )


def test_predictions_take_shards_too(digits):
    X, y, new = digits
    model = TopKClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict([new[:40], new[40:]]), model.predict(new))


def test_precisions_of_shards():
    single, double = np.ones((2, 3), np.float32), np.ones((1, 3))
    assert as_matrix([single, single.astype(np.float16)]).dtype == np.float32
    assert as_matrix([single, double]).dtype == np.float64
    assert as_matrix([single, np.ones((2, 3), int)]).dtype == np.float64
    rows = [[1.0, 2.0], [3.0, 4.0]]
    assert as_matrix(rows) is rows


def test_shards_of_another_width_are_named():
    with pytest.raises(ValueError, match="shard 2 of X has 4 features where the first has 3"):
        TopKClassifier().fit([np.ones((2, 3)), np.ones((2, 4))], [0, 1, 0, 1])
