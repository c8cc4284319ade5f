"""The truncated entropy: starts at softmax's solution, only goes down, says where it stopped."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier
from shortlist.losses import get
from tests.estimators.objectives import NAMES, named_data, objective


@pytest.fixture(scope="module")
def data():
    return named_data()


def truncated(model, X, y, k):
    codes = np.searchsorted(NAMES, y)
    return objective(
        "truncated_entropy", model.coef_, X, codes, model.C, k=k, intercept=model.intercept_
    )


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_descends_from_softmax_to_a_stationary_point(C, k, kind, data):
    X, y = data
    softmax = TopKClassifier("softmax", C=C, tol=1e-6, random_state=0).fit(kind(X), y)
    model = TopKClassifier("truncated_entropy", k=k, C=C, tol=1e-6, random_state=0).fit(kind(X), y)
    result = model.result_
    primals = [entry.primal for entry in result.history]
    assert primals[0] == pytest.approx(truncated(softmax, X, y, k), rel=1e-4)
    assert all(after <= before for before, after in pairwise(primals))
    assert primals[-1] < 0.999 * primals[0]
    assert result.primal == pytest.approx(truncated(model, X, y, k), rel=1e-9)
    assert result.status == "converged"
    assert "entropy" in result.solver
    # There is no dual; a small gradient is what it stopped at.
    assert np.isnan([result.dual, result.gap, result.relative_gap]).all()
    scores = X @ model.coef_.T + model.intercept_
    v = get("truncated_entropy", k=k).gradient(scores, np.searchsorted(NAMES, y))
    W = np.vstack([model.coef_.T, model.intercept_])
    gradient = W + C * np.vstack([X.T @ v, v.sum(axis=0)])
    assert 0.5 * (gradient**2).sum() <= 1e-6 * result.primal * (1 + 1e-6)


def test_at_k_1_it_is_softmax(data):
    X, y = data
    models = [
        TopKClassifier(loss, random_state=0).fit(X, y) for loss in ("softmax", "truncated_entropy")
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[1].result_.relative_gap <= 1e-3


def test_out_of_epochs_is_told(data):
    model = TopKClassifier("truncated_entropy", k=2, C=1e3, tol=1e-12, max_epochs=8, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the objective can still decrease"):
        model.fit(*data)
    assert model.result_.status == "max_epochs"


def test_the_end_of_the_digits_is_told(data):
    X, y = data
    model = TopKClassifier("truncated_entropy", k=2, tol=1e-300, random_state=0)
    with pytest.warns(ConvergenceWarning, match="no further decrease was possible"):
        model.fit(X, y)
    assert model.result_.status == "stalled"


def test_single_precision(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = TopKClassifier("truncated_entropy", k=2, random_state=0)
        model.fit(X.astype(np.float32), y)
    double = TopKClassifier("truncated_entropy", k=2, random_state=0).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert model.result_.primal == pytest.approx(double.result_.primal, rel=2e-3)
