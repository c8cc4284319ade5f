"""Weights of examples and of classes mean repetition."""

import numpy as np
import pytest
from scipy import sparse

from shortlist import TopKClassifier
from tests.estimators.objectives import NAMES, certified_distance, named_data, objective

# So small a gap leaves the scores six digits, whatever the order of visits.
EXACT = {"tol": 1e-12, "random_state": 0}
LOSSES = [{"loss": "entropy"}, {"loss": "smooth_hinge", "k": 2}, {"loss": "ova_logistic"}]


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.fixture(scope="module")
def counts(data):
    return np.random.default_rng(0).integers(0, 4, size=len(data[1]))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("params", LOSSES, ids=lambda params: params["loss"])
def test_whole_weights_are_repetitions(params, kind, data, counts):
    X, y = data
    weighted = TopKClassifier(**params, **EXACT).fit(kind(X), y, counts)
    repeated = TopKClassifier(**params, **EXACT).fit(
        kind(np.repeat(X, counts, 0)), y.repeat(counts)
    )
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-10)
    longest = np.sqrt((X**2).sum(axis=1).max() + 1)
    np.testing.assert_allclose(
        weighted.decision_function(X),
        repeated.decision_function(X),
        atol=1e-6 + longest * certified_distance(weighted, repeated),
    )


def test_duplicate_rows_share_one_optimum_for_the_hinge_too(data, counts):
    X, y = data
    weighted = TopKClassifier("hinge", tol=1e-6, random_state=0).fit(X, y, counts)
    repeated = TopKClassifier("hinge", tol=1e-6, random_state=0)
    repeated.fit(np.repeat(X, counts, 0), y.repeat(counts))
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=2e-6)


def test_weights_and_C_are_a_product(data, counts):
    X, y = data
    one = TopKClassifier(C=0.5, **EXACT).fit(X, y, counts)
    other = TopKClassifier(C=1.0, **EXACT).fit(X, y, counts * 0.5)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_an_example_of_no_weight_is_an_example_left_out(data):
    X, y = data
    weight = np.ones(len(y))
    weight[::4] = 0.0
    spoiled = X.copy()
    spoiled[::4] = 1e6
    model = TopKClassifier(**EXACT).fit(spoiled, y, weight)
    without = TopKClassifier(**EXACT).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-6)


def test_a_class_of_no_weight_is_known_and_unlikely(data):
    X, y = data
    weight = (y != "dog").astype(float)
    for class_weight in (None, "balanced"):
        model = TopKClassifier(class_weight=class_weight, random_state=0).fit(X, y, weight)
        assert model.classes_.tolist() == NAMES.tolist()
        assert np.isfinite(model.coef_).all()
        assert "dog" not in model.predict(X)


def test_class_weights_multiply_sample_weights(data, counts):
    X, y = data
    given = {"ant": 2.0, "cat": 0.5}  # others count 1
    per_class = np.array([given.get(name, 1.0) for name in y])
    model = TopKClassifier(class_weight=given, **EXACT).fit(X, y, counts)
    direct = TopKClassifier(**EXACT).fit(X, y, counts * per_class)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_classes_have_the_same_total_weight(weighted, data, counts):
    X, y = data
    weight = counts.astype(float) if weighted else np.ones(len(y))
    totals = {name: weight[y == name].sum() for name in NAMES}
    per_class = np.array([weight.sum() / (4 * totals[name]) for name in y])
    balanced = TopKClassifier(class_weight="balanced", **EXACT)
    balanced.fit(X, y, weight if weighted else None)
    direct = TopKClassifier(**EXACT).fit(X, y, weight * per_class)
    np.testing.assert_allclose(balanced.coef_, direct.coef_, atol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_weighted_objective_is_the_one_reported(kind, data, counts):
    X, y = data
    codes = np.searchsorted(NAMES, y)
    model = TopKClassifier("hinge", C=0.3, intercept_scaling=2.0, random_state=0)
    model.fit(kind(X), y, counts)
    value = objective(
        "hinge",
        model.coef_,
        X,
        codes,
        0.3 * counts,
        intercept=model.intercept_,
        intercept_scaling=2.0,
    )
    assert model.result_.primal == pytest.approx(value, rel=1e-9)
