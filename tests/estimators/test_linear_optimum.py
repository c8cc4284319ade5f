"""The optima of scikit-learn's solvers, on objectives written out in NumPy."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from shortlist import TopKClassifier, losses
from tests.estimators.objectives import objective
from tests.solvers.problems import make_data

COSTS = [0.05, 1.0, 20.0]
LOGISTIC = {"tol": 1e-10, "max_iter": 100_000, "fit_intercept": False}


@pytest.fixture(scope="module")
def data():
    return make_data(n=80, d=6, m=5)


@pytest.fixture(params=[np.asarray, sparse.csr_array], ids=["dense", "csr"])
def kind(request):
    return request.param


def fit(loss, C, tol, X, y, **params):
    params = {"fit_intercept": False, "random_state": 0, "max_epochs": 20_000, **params}
    return TopKClassifier(loss, C=C, tol=tol, **params).fit(X, y)


def check(loss, model, coef, X, y, C, **intercepts):
    """Both objectives are within 1e-6, and what training reported is the objective."""
    own = objective(loss, model.coef_, X, y, C, intercept=model.intercept_)
    theirs = objective(loss, coef, X, y, C, **intercepts)
    assert own == pytest.approx(theirs, rel=1e-6)
    assert model.result_.primal == pytest.approx(own, rel=1e-9)


@pytest.mark.parametrize("C", COSTS)
def test_softmax_is_logistic_regression(C, data, kind):
    X, y = data
    model = fit("softmax", C, 1e-7, kind(X), y)
    rival = LogisticRegression(C=C, **LOGISTIC).fit(X, y)
    check("softmax", model, rival.coef_, X, y, C)
    np.testing.assert_allclose(model.predict_proba(X), rival.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("C", COSTS)
def test_hinge_is_the_machine_of_crammer_and_singer(C, data, kind):
    X, y = data
    model = fit("hinge", C, 5e-7, kind(X), y)
    rival = LinearSVC(
        C=C,
        multi_class="crammer_singer",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**6,
        random_state=0,
    ).fit(X, y)
    check("hinge", model, rival.coef_, X, y, C)


@pytest.mark.parametrize("C", COSTS[:2])
def test_one_vs_all_hinge_is_one_machine_a_class(C, data, kind):
    X, y = data
    model = fit("ova_hinge", C, 5e-7, kind(X), y)
    rival = LinearSVC(
        C=C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**7, random_state=0
    ).fit(X, y)
    check("ova_hinge", model, rival.coef_, X, y, C)


def test_the_regularised_intercept_is_that_of_liblinear(data, kind):
    X, y = data
    model = fit("ova_hinge", 0.5, 5e-7, kind(X), y, fit_intercept=True, intercept_scaling=3.0)
    rival = LinearSVC(
        C=0.5, loss="hinge", intercept_scaling=3.0, tol=1e-10, max_iter=10**7, random_state=0
    ).fit(X, y)
    values = [
        objective("ova_hinge", m.coef_, X, y, 0.5, intercept=m.intercept_, intercept_scaling=3.0)
        for m in (model, rival)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert model.result_.primal == pytest.approx(values[0], rel=1e-9)


@pytest.mark.parametrize("C", COSTS)
def test_one_vs_all_logistic_is_one_regression_a_class(C, data, kind):
    X, y = data
    model = fit("ova_logistic", C, 1e-7, kind(X), y)
    rivals = OneVsRestClassifier(LogisticRegression(C=C, **LOGISTIC)).fit(X, y)
    coef = np.vstack([rival.coef_ for rival in rivals.estimators_])
    check("ova_logistic", model, coef, X, y, C)
    np.testing.assert_allclose(model.predict_proba(X), rivals.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge", "ova_logistic"])
def test_an_intercept_is_a_constant_feature(loss, data):
    X, y = data
    model = fit(loss, 1.0, 1e-12, X, y, fit_intercept=True, intercept_scaling=2.5)
    widened = fit(loss, 1.0, 1e-12, np.c_[X, np.full(len(X), 2.5)], y)
    np.testing.assert_allclose(model.coef_, widened.coef_[:, :-1], atol=1e-5)
    np.testing.assert_allclose(model.intercept_, 2.5 * widened.coef_[:, -1], atol=1e-5)
    assert not widened.intercept_.any()


@pytest.mark.parametrize("loss", ["entropy", "hinge", "smooth_hinge"])
def test_two_classes_share_the_weights_evenly(loss, data):
    """Only the difference of two classes' weights matters, so the norm splits it in halves."""
    X, y = data
    model = fit(loss, 1.0, 1e-6, X, y < 2)
    coef, _ = model._class_weights()
    np.testing.assert_array_equal(coef[0], -coef[1])
    # It would be lower if the weights had been trained to be anything else.
    values = losses.get(loss).value(X @ coef.T, (y < 2).astype(int))
    value = 0.5 * (coef**2).sum() + values.sum()
    assert value == pytest.approx(model.result_.primal, rel=1e-12)
