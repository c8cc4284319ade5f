"""An intercept that is not regularised, against scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, losses
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, open_storage
from shortlist.solvers.strategy.intercept import FreeIntercept
from tests.estimators.objectives import named_data
from tests.solvers.problems import make_data

EXACT = {"tol": 1e-9, "fit_intercept": "free", "random_state": 0}
LOGISTIC = {"tol": 1e-12, "solver": "newton-cholesky"}


@pytest.fixture(scope="module")
def data():
    """Classes of very different sizes, far from the origin."""
    X, y = named_data()
    keep = np.flatnonzero((y != "ant") | (np.arange(len(y)) % 5 == 0))
    return X[keep] + 3.0, y[keep]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_softmax_is_logistic_regression(C, kind, data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = TopKClassifier("softmax", C=C, **EXACT).fit(kind(X), y, weight)
    rival = LogisticRegression(C=C, **LOGISTIC).fit(X, y, weight)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-4)
    centred = [m.intercept_ - m.intercept_.mean() for m in (model, rival)]
    np.testing.assert_allclose(*centred, atol=1e-4)


def test_one_vs_all_is_one_regression_a_class(data):
    X, y = data
    model = TopKClassifier("ova_logistic", **EXACT).fit(X, y)
    rival = OneVsRestClassifier(LogisticRegression(**LOGISTIC)).fit(X, y)
    for own, theirs, shift in zip(model.coef_, rival.estimators_, model.intercept_, strict=True):
        np.testing.assert_allclose(own, theirs.coef_[0], atol=1e-4)
        np.testing.assert_allclose(shift, theirs.intercept_[0], atol=1e-4)


LOSSES = {
    "softmax": {"name": "softmax"},
    "entropy": {"name": "entropy", "k": 2},
    "all but one": {"name": "entropy", "k": 3},
    "beta": {"name": "smooth_hinge", "k": 2, "variant": "beta"},
    "one-vs-all": {"name": "ova_smooth_hinge"},
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_bound_holds_anywhere_and_is_sharp_at_the_optimum(loss):
    X, y = make_data(n=60, d=4, m=4)
    loss = losses.get(**loss)
    costs = Costs(y, np.random.default_rng(1).uniform(0.1, 3.0, len(y)))
    problem = Problem(open_storage(X, 2.0), costs, 4, loss, free_intercept=2.0)

    def objective(flat):
        value, gradient = problem.primal_gradient(flat.reshape(5, 4))
        return value, gradient.ravel()

    options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000}
    best = minimize(objective, np.zeros(20), jac=True, method="L-BFGS-B", options=options)
    rng = np.random.default_rng(2)
    intercept = FreeIntercept.of(problem)
    for distance in (0.0, 1e-6, 1e-3, 0.1, 10.0):
        weights = best.x.reshape(5, 4) + distance * rng.normal(size=(5, 4))
        value, gradient = problem.primal_gradient(weights)
        bound = intercept.bound(weights, value, gradient)
        assert bound <= best.fun * (1 + 1e-12)
        if distance <= 1e-6:
            assert bound >= best.fun * (1 - 1e-4)


def test_single_precision_is_certified_in_double(data):
    X, y = data
    model = TopKClassifier(fit_intercept="free").fit(X.astype(np.float32), y)
    exact = TopKClassifier(fit_intercept="free").fit(X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.result_.status == "converged"
    assert model.result_.dual <= exact.result_.primal
    assert exact.result_.dual <= model.result_.primal * (1 + 1e-6)


def test_paths_warm_starts_and_files(data, tmp_path):
    X, y = data
    alone = TopKClassifier(C=1.0, **EXACT).fit(X, y)
    for Cs in ([0.1, 1.0], [1.0, 3.0]):
        path = TopKClassifier(**EXACT).fit_path(X, y, Cs)
        np.testing.assert_allclose(path[Cs.index(1.0)].coef_, alone.coef_, atol=1e-4)
    warm = TopKClassifier(C=2.0, warm_start=True, **EXACT).fit(X, y)
    warm.set_params(C=1.0).fit(X, y)
    np.testing.assert_allclose(warm.coef_, alone.coef_, atol=1e-4)
    assert warm.set_params(tol=1e-8).fit(X, y).n_iter_ == 1
    shortlist.save(alone, tmp_path / "model")
    np.testing.assert_array_equal(shortlist.load(tmp_path / "model").predict(X), alone.predict(X))
    assert not alone.certified_topk(X).any()


def test_a_stop_at_once_leaves_a_model(data):
    X, y = data
    model = TopKClassifier(**EXACT).fit(X, y, callback=lambda progress: True)
    assert model.result_.status == "stopped"
    assert 0 <= model.result_.gap <= model.result_.primal


def test_what_cannot_be_has_a_reason(data):
    X, y = data
    weight = (y != "cat").astype(float)
    with pytest.raises(ValueError, match="class 'cat' has none"):
        TopKClassifier(fit_intercept="free").fit(X, y, weight)
    with pytest.raises(ValueError, match="takes a smooth loss; ova_hinge has kinks"):
        TopKClassifier("ova_hinge", fit_intercept="free").fit(X, y)
    with pytest.raises(ValueError, match="one right label per example"):
        TopKClassifier(fit_intercept="free").fit(X, (y[:, None] == np.unique(y)).astype(int))
    with pytest.raises(ValueError, match="fit_intercept must be True, False or 'free'; got 'no'"):
        TopKClassifier(fit_intercept="no").fit(X, y)
    with pytest.raises(ValueError, match="for TopKClassifier"):
        KernelTopKClassifier(fit_intercept="free").fit(X, y)
