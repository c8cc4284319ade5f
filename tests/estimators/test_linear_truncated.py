"""The truncated entropy: starts at softmax's solution, only goes down, says where it stopped."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier
from shortlist.datasets import load_letter
from shortlist.losses import get
from shortlist.solvers.problem import Problem
from shortlist.solvers.strategy import train
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


@pytest.fixture(scope="module")
def letters():
    letter = load_letter()
    return letter.X_train[:600].astype(np.float32), letter.y_train[:600]


class TestWhereSinglePrecisionEnds:
    """Letters at a tolerance that single precision cannot see."""

    C, tol, k = 100.0, 1e-4, 2

    def fit(self, letters, **options):
        parameters = {"k": self.k, "C": self.C, "tol": self.tol, "random_state": 0}
        return TopKClassifier("truncated_entropy", **parameters).fit(*letters, **options)

    def gradient_share(self, model, X, y):
        """1/2 |grad P|^2 at the model's weights, as a share of P."""
        X = X.astype(np.float64)
        W = np.vstack([model.coef_.T, model.intercept_]).astype(np.float64)
        scores = X @ W[:-1] + W[-1]
        loss = get("truncated_entropy", k=self.k)
        codes = np.searchsorted(model.classes_, y)
        v = self.C * loss.gradient(scores, codes)
        gradient = W + np.vstack([X.T @ v, v.sum(axis=0)])
        primal = 0.5 * (W**2).sum() + self.C * loss.value(scores, codes).sum()
        assert model.result_.primal == pytest.approx(primal, rel=1e-6)
        return 0.5 * (gradient**2).sum() / primal

    def test_double_goes_on(self, letters, monkeypatch):
        model = self.fit(letters)
        assert model.coef_.dtype == np.float32
        assert model.result_.status == "converged"
        assert self.gradient_share(model, *letters) <= self.tol * (1 + 1e-6)
        primals = [entry.primal for entry in model.result_.history]
        assert all(after <= before * (1 + 1e-5) for before, after in pairwise(primals))
        monkeypatch.setattr(train, "descend_in_double", lambda run: "stalled")
        with pytest.warns(ConvergenceWarning, match="no further decrease was possible"):
            alone = self.fit(letters)
        assert alone.result_.status == "stalled"
        assert self.gradient_share(alone, *letters) > self.tol
        assert model.result_.primal < alone.result_.primal
        assert model.result_.epochs > alone.result_.epochs

    def test_a_stop_in_double_keeps_the_best(self, letters):
        alone = self.fit(letters)
        stop_after = alone.result_.epochs - 2
        model = self.fit(letters, callback=lambda progress: progress.epoch >= stop_after)
        assert model.result_.status == "stopped"
        assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-5)


def test_where_rounded_weights_decide_is_told(data, monkeypatch):
    """Double finds weights with a gradient small enough, which single precision cannot hold."""
    X, y = data
    points, evaluate = [], Problem.primal_gradient

    def watched(self, weights, double=False):
        value, gradient = evaluate(self, weights, double)
        if double:
            points.append(0.5 * float((gradient**2).sum()) / value)
        return value, gradient

    monkeypatch.setattr(Problem, "primal_gradient", watched)
    model = TopKClassifier("truncated_entropy", k=2, tol=1e-15, random_state=0)
    with pytest.warns(ConvergenceWarning, match="no further decrease was possible"):
        model.fit(X.astype(np.float32), y)
    assert model.result_.status == "stalled"
    assert min(points) <= 1e-15 < points[-1]
