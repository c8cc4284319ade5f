"""The linear classifier as users meet it: labels, shortlists, scores, probabilities, copies."""

import pickle

import numpy as np
import pandas
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from shortlist import KernelTopKClassifier, TopKClassifier
from tests.estimators.objectives import NAMES, named_data
from tests.solvers.problems import make_data


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.fixture(scope="module")
def fitted(data):
    return TopKClassifier("smooth_hinge", k=2, random_state=0).fit(*data)


def with_scores(scores, **params):
    """A model whose scores at X = identity are the rows of a given matrix."""
    m = np.shape(scores)[1]
    X, y = np.vstack([np.eye(len(scores))] * 3), np.arange(3 * len(scores)) % m
    model = TopKClassifier(fit_intercept=False, **params).fit(X, y)
    model.coef_ = np.array(scores, dtype=float).T
    return model, np.eye(len(scores))


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.astype(object),
        np.array([-7, -1, 3, 100]),
        np.array([200, 7, 9, 11], dtype=np.uint8),
        np.array([-2.0, 0.0, 5.0, 6.0]),
        np.array(["", " ", "z", "ü"]),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_of_any_type_come_back_as_they_were(labels):
    X, codes = make_data(n=60)
    plain = TopKClassifier("smooth_hinge", k=2, random_state=0).fit(X, np.argsort(labels)[codes])
    y = labels[np.argsort(labels)][np.argsort(labels)[codes]]
    model = TopKClassifier("smooth_hinge", k=2, random_state=0).fit(X, y)
    assert model.classes_.dtype == labels.dtype
    assert model.classes_.tolist() == sorted(labels.tolist())
    np.testing.assert_array_equal(model.predict(X), model.classes_[plain.predict(X)])
    np.testing.assert_array_equal(model.predict_topk(X), model.classes_[plain.predict_topk(X)])
    assert model.score(X, y) == plain.score(X, np.argsort(labels)[codes]) > 0.7


def test_booleans_are_labels(data):
    X, y = data
    model = TopKClassifier(random_state=0).fit(X, y == "cat")
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    assert model.score(X, y == "cat") > 0.7


@pytest.mark.parametrize(
    "series",
    [
        lambda y: pandas.Series(y, dtype="category"),
        lambda y: pandas.Categorical(y, categories=[*NAMES, "unused"]),
        lambda y: pandas.Series(y, dtype="string"),
        lambda y: list(y),
        lambda y: y[:, None].tolist(),
    ],
    ids=["category", "unused category", "string", "list", "column"],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_other_containers(series, data, fitted):
    X, y = data
    model = clone(fitted).fit(X, series(y))
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def test_a_shortlist_is_the_labels_by_falling_score(data, fitted):
    X, _ = data
    scores = X @ fitted.coef_.T + fitted.intercept_
    order = np.argsort(-scores, axis=1)
    for k in (1, 2, 3, 4):
        np.testing.assert_array_equal(fitted.predict_topk(X, k), NAMES[order[:, :k]])
    assert fitted.predict_topk(X).shape == (len(X), 2)  # the model's own k
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict_topk(X, 1)[:, 0])


def test_ties_go_to_the_first_label():
    model, X = with_scores([[1, 3, 3, 1], [2, 2, 2, 2], [0, 5, 1, 5]])
    assert model.predict_topk(X, 4).tolist() == [[1, 2, 0, 3], [0, 1, 2, 3], [1, 3, 2, 0]]
    assert model.predict_topk(X, 2).tolist() == [[1, 2], [0, 1], [1, 3]]
    assert model.predict_topk(X, 3).tolist() == [[1, 2, 0], [0, 1, 2], [1, 3, 2]]
    assert model.predict(X).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("k", "error", "match"),
    [
        (0, ValueError, r"k must lie between 1 and 4 \(the number of classes\); got 0"),
        (5, ValueError, "got 5"),
        (1.0, TypeError, "k must be an integer; got 1.0"),
        (True, TypeError, "k must be an integer; got True"),
    ],
)
def test_a_shortlist_of_impossible_length(k, error, match, data, fitted):
    with pytest.raises(error, match=match):
        fitted.predict_topk(data[0], k)


def test_scores_are_a_column_a_class(data, fitted):
    X, _ = data
    scores = fitted.decision_function(X)
    assert scores.shape == (len(X), 4)
    np.testing.assert_allclose(scores, X @ fitted.coef_.T + fitted.intercept_)


TWO_CLASSES = {
    "softmax": (LogisticRegression, {"C": 1.0, "solver": "newton-cholesky", "tol": 1e-12}, 0.5),
    "ova_logistic": (
        LogisticRegression,
        {"C": 1.0, "solver": "newton-cholesky", "tol": 1e-12},
        1.0,
    ),
    "hinge": (LinearSVC, {"loss": "hinge", "C": 0.1, "tol": 1e-10, "max_iter": 10**6}, 0.5),
    "ova_hinge": (LinearSVC, {"loss": "hinge", "C": 0.1, "tol": 1e-10, "max_iter": 10**6}, 1.0),
}


@pytest.mark.parametrize("loss", TWO_CLASSES)
@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_two_classes_are_scikit_learns_binary_model(kind, loss, data):
    """One row, one score; C is scikit-learn's for one-vs-all losses and half of it for others."""
    X, y = data
    y = np.where(y == "bee", "yes", "no")
    sklearns, params, factor = TWO_CLASSES[loss]
    theirs = sklearns(fit_intercept=False, **params).fit(X, y)
    own = {"kernel": "linear"} if kind is KernelTopKClassifier else {}
    C = factor * params["C"]
    ours = kind(loss, C=C, fit_intercept=False, tol=1e-10, random_state=0, **own).fit(X, y)
    scores = ours.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_allclose(scores, theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), np.where(scores > 0, "yes", "no"))
    if kind is TopKClassifier:
        assert ours.coef_.shape == (1, 5)
        assert ours.intercept_.shape == (1,)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(scores, (X @ ours.coef_.T + ours.intercept_)[:, 0])
    if hasattr(ours, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X)[:, 1], expit(scores))
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_score_counts_labels_on_the_shortlist(data, fitted):
    X, y = data
    hits = (fitted.predict_topk(X) == y[:, None]).any(axis=1)
    assert fitted.score(X, y) == hits.mean()
    weight = np.arange(len(y), dtype=float)
    assert fitted.score(X, y, weight) == pytest.approx(np.average(hits, weights=weight))


def test_softmax_probabilities(data):
    X, y = data
    model = TopKClassifier("softmax", random_state=0).fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected))


def test_one_vs_all_probabilities_are_normalised(data):
    X, y = data
    model = TopKClassifier("ova_logistic", random_state=0).fit(X, y)
    shares = 1 / (1 + np.exp(-(X @ model.coef_.T + model.intercept_)))
    expected = shares / shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected)


def test_logarithms_of_probabilities_that_round_to_zero():
    for loss in ("softmax", "ova_logistic"):
        model, X = with_scores([[0.0, -1e4, -2e4], [-1e4, -2e4, -3e4]], loss=loss)
        assert (model.predict_proba(X)[:, 1:] == 0).all()
        np.testing.assert_allclose(
            model.predict_log_proba(X)[:, 1:] - model.predict_log_proba(X)[:, :1],
            [[-1e4, -2e4], [-1e4, -2e4]],
            rtol=1e-3,
        )


def test_probabilities_of_hopeless_scores():
    model, X = with_scores([[-1e9, -1e9, -1e9], [0.0, -1e9, 1e9]], loss="ova_logistic")
    np.testing.assert_allclose(model.predict_proba(X), [[1 / 3] * 3, [1 / 3, 0, 2 / 3]])
    assert model.predict_log_proba(X)[1, 1] == pytest.approx(-1e9)


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "entropy", "k": 2},
        {"loss": "truncated_entropy", "k": 2},
        {"loss": "hinge"},
        {"loss": "smooth_hinge"},
        {"loss": "ova_hinge"},
        {"loss": "ova_smooth_hinge"},
    ],
)
def test_losses_without_probabilities_offer_none(params):
    model = TopKClassifier(**params)
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=method):
            getattr(model, method)
    with pytest.raises(AttributeError) as refusal:
        _ = model.predict_proba
    assert "does not estimate probabilities" in str(refusal.value.__cause__ or refusal.value)


def test_not_fitted():
    for method in ("predict", "predict_topk", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(TopKClassifier(), method)(np.eye(3))


@pytest.mark.parametrize("warm_start", [False, True])
def test_pickling_keeps_the_model(warm_start, data):
    X, y = data
    model = TopKClassifier(warm_start=warm_start, random_state=0).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    assert back.get_params() == model.get_params()
    assert back.result_ == model.result_
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.predict_topk(X, 3), model.predict_topk(X, 3))
    # A copy that starts warm goes on from the duals it was pickled with.
    assert (back.fit(X, y).result_.epochs == 0) == warm_start


def test_clones_and_changed_parameters(data, fitted):
    X, y = data
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "coef_")
    copy.set_params(k=3, loss="entropy", C=0.1)
    assert (copy.k, copy.loss, copy.C) == (3, "entropy", 0.1)
    direct = TopKClassifier("entropy", k=3, C=0.1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(copy.fit(X, y).coef_, direct.coef_)
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(penalty="l1")


def test_the_same_seed_gives_the_same_model(data):
    X, y = data
    # So small a tolerance is left to SDCA, whose order of visits is random.
    fits = [
        TopKClassifier("smooth_hinge", tol=1e-5, random_state=seed).fit(X, y) for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].result_.primal == fits[1].result_.primal
    assert not np.array_equal(fits[0].coef_, fits[2].coef_)
    # Another order of visits leads to the same optimum.
    assert fits[0].result_.primal == pytest.approx(fits[2].result_.primal, rel=2e-5)


def test_a_random_state_object_moves_on(data):
    X, y = data
    random = np.random.RandomState(0)
    model = TopKClassifier("smooth_hinge", tol=1e-5, random_state=random)
    first, second = model.fit(X, y).coef_, model.fit(X, y).coef_
    assert not np.array_equal(first, second)
