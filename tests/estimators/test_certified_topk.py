"""Certified shortlists do not change when training goes on to the exact optimum."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from shortlist import TopKClassifier, TopKClassifierCV, load, losses, save
from shortlist.estimators import cv_paths
from shortlist.estimators.certified import distances_of_classes


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900], X[900:] / 16


def weights_of(model):
    return np.c_[model.coef_, model.intercept_]


@pytest.fixture(scope="module")
def solved(digits):
    """A fit at a rough tolerance and one that is exact, by loss; each is made once."""
    X, y, _ = digits
    made = {}

    def pair(loss):
        if loss not in made:
            rough = TopKClassifier(loss, C=0.1, tol=1e-5, random_state=0).fit(X, y)
            exact = TopKClassifier(loss, C=0.1, tol=1e-10, max_epochs=5000, random_state=0)
            made[loss] = rough, exact.fit(X, y)
        return made[loss]

    return pair


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge", "ova_logistic", "ova_smooth_hinge"])
@pytest.mark.parametrize("k", [1, 3])
def test_certified_shortlists_are_those_of_the_optimum(digits, solved, loss, k):
    new = digits[2]
    rough, exact = solved(loss)
    certified = rough.certified_topk(new, k)
    assert 0.02 < certified.mean() < 1.0
    before, after = np.sort(rough.predict_topk(new, k)), np.sort(exact.predict_topk(new, k))
    np.testing.assert_array_equal(before[certified], after[certified])
    # A smaller gap certifies more.
    assert exact.certified_topk(new, k).mean() > certified.mean()


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge", "ova_logistic", "ova_smooth_hinge"])
def test_the_optimum_lies_within_the_distance(solved, loss):
    rough, exact = solved(loss)
    result = rough.result_
    # Of weights that belong to their duals, as SDCA keeps them, it is the root of the gap.
    assert result.solver == "sdca"
    assert result.distance == pytest.approx(np.sqrt(result.gap), rel=1e-3)
    apart = np.linalg.norm(weights_of(rough) - weights_of(exact))
    assert 0.01 * result.distance < apart < result.distance + exact.result_.distance


@pytest.mark.parametrize("loss", ["ova_logistic", "ova_smooth_hinge"])
def test_every_class_of_a_separable_loss_has_a_distance_of_its_own(digits, solved, loss):
    X, y, _ = digits
    rough, exact = solved(loss)
    own, finest = (distances_of_classes(model._last, 1.0) for model in (rough, exact))
    apart = np.linalg.norm(weights_of(rough) - weights_of(exact), axis=1)
    assert (apart < own + finest).all()
    assert np.square(own).sum() == pytest.approx(rough.result_.gap, rel=1e-2)
    # Two classes by themselves: the objective of one class against all others is a fit of its own.
    alone = TopKClassifier(loss, C=0.1, tol=1e-10, max_epochs=5000, random_state=0).fit(X, y == 3)
    np.testing.assert_allclose(alone.coef_[0], exact.coef_[3], atol=2 * finest[3] + 1e-4)
    assert np.linalg.norm(weights_of(alone)[0] - weights_of(rough)[3]) < own[3] + 1e-4


def test_the_plain_hinge_against_all_has_distances_too(digits):
    X, y, new = digits
    rough = TopKClassifier("ova_hinge", C=0.01, tol=1e-4, random_state=0).fit(X, y)
    exact = TopKClassifier("ova_hinge", C=0.01, tol=1e-9, max_epochs=5000, random_state=0)
    exact.fit(X, y)
    own, finest = (distances_of_classes(model._last, 1.0) for model in (rough, exact))
    apart = np.linalg.norm(weights_of(rough) - weights_of(exact), axis=1)
    assert (apart < own + finest).all()
    certified = rough.certified_topk(new)
    assert certified.mean() > 0.02
    np.testing.assert_array_equal(rough.predict(new)[certified], exact.predict(new)[certified])


def test_distances_of_classes_certify_more_and_go_with_the_model(digits, tmp_path):
    X, y, new = digits
    model = TopKClassifier("ova_logistic", C=0.1, tol=1e-4, random_state=0).fit(X, y)
    without = pickle.loads(pickle.dumps(model))  # the data of the fit is not pickled
    better = model.certified_topk(new)
    assert better.mean() > without.certified_topk(new).mean() + 0.05
    known = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(known.certified_topk(new), better)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").certified_topk(new), better)
    # A new fit does not go by the distances of the one before.
    known.set_params(tol=0.1).fit(X, y)
    assert known.certified_topk(new).mean() < better.mean()


def test_two_classes_are_certified_by_the_score_of_both(digits):
    X, y, new = digits
    options = {"C": 0.1, "random_state": 0}
    rough = TopKClassifier("ova_logistic", tol=1e-4, **options).fit(X, y > 4)
    exact = TopKClassifier("ova_logistic", tol=1e-10, **options).fit(X, y > 4)
    certified = rough.certified_topk(new)
    assert 0.02 < certified.mean() < 1.0
    np.testing.assert_array_equal(rough.predict(new)[certified], exact.predict(new)[certified])


def test_single_precision_is_certified_by_sums_in_double(digits):
    X, y, new = digits
    single = TopKClassifier(C=0.1, tol=1e-6, random_state=0).fit(X.astype(np.float32), y)
    exact = TopKClassifier(C=0.1, tol=1e-10, max_epochs=5000, random_state=0)
    exact.fit(X.astype(np.float32).astype(np.float64), y)
    apart = np.linalg.norm(weights_of(single) - weights_of(exact))
    result = single.result_
    assert apart < result.distance + exact.result_.distance
    assert np.sqrt(result.gap) <= result.distance <= np.sqrt(2 * result.gap) * (1 + 1e-9)
    certified = single.certified_topk(new.astype(np.float32), 3)
    assert certified.mean() > 0.1
    lists = (np.sort(model.predict_topk(new.astype(np.float32), 3)) for model in (single, exact))
    before, after = lists
    np.testing.assert_array_equal(before[certified], after[certified])


def test_the_gap_of_a_descent_bounds_by_its_gradient(digits):
    X, y, _ = digits
    model = TopKClassifier(C=0.1, fit_intercept=False, random_state=0).fit(X, y)
    assert model.result_.by_descent
    loss, codes = losses.get("entropy"), np.searchsorted(model.classes_, y)
    gradient = model.coef_ + 0.1 * loss.gradient(X @ model.coef_.T, codes).T @ X
    # |W - W*| <= |grad P(W)|, which is the root of twice the gap.
    assert model.result_.distance <= 1.001 * np.linalg.norm(gradient)


def test_sparse_rows_are_certified_alike(digits):
    X, y, new = digits
    model = TopKClassifier(C=0.1, random_state=0).fit(X, y)
    expected = model.certified_topk(new)
    np.testing.assert_array_equal(model.certified_topk(sparse.csr_matrix(new)), expected)


def test_all_labels_are_certain_and_no_certificate_is_none(digits):
    X, y, new = digits
    model = TopKClassifier(C=0.1, random_state=0).fit(X, y)
    assert model.certified_topk(new, 10).all()
    truncated = TopKClassifier("truncated_entropy", k=3, C=0.1, random_state=0).fit(X, y)
    assert not truncated.certified_topk(new).any()


def test_a_search_certifies_by_the_model_chosen_for_k(digits):
    X, y, new = digits
    search = TopKClassifierCV(Cs=[0.01, 0.1], ks=(1, 3), cv=2, random_state=0).fit(X, y)
    expected = search.estimators_[3].certified_topk(new, 3)
    np.testing.assert_array_equal(search.certified_topk(new, 3), expected)


def test_scores_come_with_the_shortlist(digits):
    X, y, new = digits
    model = TopKClassifier(C=0.1, random_state=0).fit(X, y)
    labels, scores = model.predict_topk(new, 3, return_scores=True)
    np.testing.assert_array_equal(labels, model.predict_topk(new, 3))
    np.testing.assert_array_equal(scores, -np.sort(-model.decision_function(new))[:, :3])


@pytest.mark.parametrize("loss", ["ova_logistic", "ova_hinge", "entropy"])
def test_a_search_certifies_class_by_class(loss, monkeypatch):
    """The same search by the gap as a whole certifies less, if classes have gaps of their own."""
    X, y = load_digits(return_X_y=True)
    X, y, new, labels = X[:900] / 16, y[:900], X[900:] / 16, y[900:]
    search = TopKClassifierCV(loss, Cs=[0.01], ks=(1, 3), tol=1e-4, random_state=0)
    search.fit(X, y, X_val=new, y_val=labels)
    shares = np.array([search.cv_results_[f"certified_top{k}"][0] for k in (1, 3)])
    assert (shares > 0.02).all()
    monkeypatch.setattr(cv_paths, "_distances", lambda path, model: None)
    search.fit(X, y, X_val=new, y_val=labels)
    by_whole_gap = np.array([search.cv_results_[f"certified_top{k}"][0] for k in (1, 3)])
    if loss == "entropy":
        np.testing.assert_array_equal(shares, by_whole_gap)
    else:
        assert (shares > by_whole_gap + 0.02).all()
