"""Certified shortlists do not change when training goes on to the exact optimum."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from shortlist import TopKClassifier, TopKClassifierCV


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900], X[900:] / 16


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge"])
@pytest.mark.parametrize("k", [1, 3])
def test_certified_shortlists_are_those_of_the_optimum(digits, loss, k):
    X, y, new = digits
    rough = TopKClassifier(loss, C=0.1, tol=1e-5, random_state=0).fit(X, y)
    exact = TopKClassifier(loss, C=0.1, tol=1e-10, max_epochs=5000, random_state=0).fit(X, y)
    certified = rough.certified_topk(new, k)
    assert 0.02 < certified.mean() < 1.0
    before, after = np.sort(rough.predict_topk(new, k)), np.sort(exact.predict_topk(new, k))
    np.testing.assert_array_equal(before[certified], after[certified])
    # A smaller gap certifies more.
    assert exact.certified_topk(new, k).mean() > certified.mean()


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
