"""Estimators on indicators of several right labels."""

import cvxpy as cp
import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from shortlist.metrics import topk_accuracy, topk_scorer
from tests.multilabel import Case, cvxpy_conjugate

CLOSE = {"tol": 1e-9, "max_epochs": 20_000, "random_state": 0}
PARAMETERS = [
    {"loss": "entropy"},
    {"loss": "smooth_hinge"},
    {"loss": "smooth_hinge", "k": 2, "variant": "alpha", "smoothing": 0.5},
    {"loss": "smooth_hinge", "k": 3, "variant": "beta", "smoothing": 0.5},
]


@pytest.fixture(scope="module")
def data():
    """Six classes; one or more right labels, at times none or nearly all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    scores = X @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(60, 6))
    Y = (scores > 1.0).astype(int)
    Y[0] = 0
    Y[1] = 1
    assert set(Y.sum(axis=1)) >= {0, 1, 2, 3, 6}
    return X, Y


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_one_label_each_is_the_multiclass_model(kind, params, data):
    X = data[0]
    y = np.arange(60) % 6
    several = kind(**params, **CLOSE).fit(X, np.eye(6, dtype=int)[y])
    one = kind(**params, **CLOSE).fit(X, y)
    assert several.multilabel_
    assert not one.multilabel_
    assert several.result_.primal == pytest.approx(one.result_.primal, rel=1e-8)
    np.testing.assert_allclose(several.decision_function(X), one.decision_function(X), atol=1e-3)
    assert several.score(X, np.eye(6)[y]) == one.score(X, y)


def _optimum(case, X, Y, C):
    """The optimal value: of the primal where the loss has a formula, of the dual else."""
    if case.name == "smooth_hinge":
        v = cp.Variable(Y.shape)
        value, constraints = -0.5 * cp.sum_squares(C * X.T @ v), []
        for i, right in enumerate(Y):
            conjugate, domain = cvxpy_conjugate(case, v[i], right)
            value -= C * conjugate
            constraints += domain
        problem = cp.Problem(cp.Maximize(value), constraints)
    else:
        W = cp.Variable((X.shape[1], case.m))
        value = 0.5 * cp.sum_squares(W)
        for x, right in zip(X, Y, strict=True):
            f, wanted = x @ W, np.flatnonzero(right)
            if case.entropic:
                value += C * (cp.log_sum_exp(f) - cp.sum(f[wanted]) / len(wanted))
                continue
            margins = 1 + f[np.flatnonzero(1 - right)] - cp.min(f[wanted])
            if case.variant == "alpha":
                value += C * cp.pos(cp.sum_largest(margins, case.k) / case.k)
            else:
                value += C * cp.sum_largest(cp.pos(margins), case.k) / case.k
        problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


@pytest.mark.parametrize(
    "case",
    [
        Case("entropy", m=6),
        Case("hinge", m=6),
        Case("hinge", m=6, k=2, variant="alpha"),
        Case("hinge", m=6, k=2, variant="beta"),
        Case("smooth_hinge", m=6, smoothing=1.0),
        Case("smooth_hinge", m=6, k=2, variant="alpha", smoothing=0.5),
        Case("smooth_hinge", m=6, k=2, variant="beta", smoothing=0.5),
    ],
    ids=lambda case: case.id,
)
def test_the_optimum_by_a_generic_solver(case, data):
    X, Y = data[0][:30], data[1][:30]
    model = TopKClassifier(
        case.name,
        k=case.k,
        variant=case.variant,
        smoothing=case.smoothing,
        C=0.7,
        tol=1e-6,
        max_epochs=50_000,
        fit_intercept=False,
        random_state=0,
    ).fit(X, Y)
    asks = (Y.sum(axis=1) >= 1) & (Y.sum(axis=1) <= 6 - case.k)
    expected = _optimum(case, X[asks], Y[asks], 0.7)
    assert model.result_.primal == pytest.approx(expected, rel=2e-6)
    assert model.result_.dual <= expected * (1 + 1e-7)


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
def test_linear_kernel_is_the_linear_model(params, data):
    X, Y = data
    linear = TopKClassifier(**params, **CLOSE).fit(X, Y)
    kernel = KernelTopKClassifier(kernel="linear", **params, **CLOSE).fit(X, sparse.csr_array(Y))
    assert kernel.result_.primal == pytest.approx(linear.result_.primal, rel=1e-8)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-3)
    assert kernel.score(X, Y) == linear.score(X, Y)


def test_indicators_of_any_kind_give_the_same_model(data):
    X, Y = data
    model = TopKClassifier("smooth_hinge", k=2, random_state=0)
    expected = model.fit(X, Y).coef_
    kinds = [
        Y.tolist(),
        Y.astype(bool),
        Y.astype(np.float32),
        sparse.csr_matrix(Y),
        sparse.coo_array(Y),
        pandas.DataFrame(Y, columns=list("abcdef")),
    ]
    for same in kinds:
        np.testing.assert_array_equal(model.fit(X, same).coef_, expected)
        np.testing.assert_array_equal(model.classes_, np.arange(6))
    np.testing.assert_allclose(model.fit(sparse.csr_array(X), Y).coef_, expected, atol=0.02)


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
def test_examples_that_ask_nothing_do_not_count(params, data):
    X, Y = data
    k = params.get("k", 1)
    asks = (Y.sum(axis=1) >= 1) & (Y.sum(axis=1) <= 6 - k)
    assert 0 < asks.sum() < len(X)
    all_of_them = TopKClassifier(**params, **CLOSE).fit(X, Y)
    fewer = TopKClassifier(**params, **CLOSE).fit(X[asks], Y[asks])
    assert all_of_them.result_.primal == pytest.approx(fewer.result_.primal, rel=1e-8)


def test_a_large_C_is_finished_by_gradients_among_examples_that_ask_nothing(data):
    X, Y = data
    result = TopKClassifier(C=1e4, tol=1e-6, random_state=0).fit(X, Y).result_
    assert result.solver == "sdca + l-bfgs"
    assert result.status == "converged"


def test_what_a_model_answers(data):
    X, Y = data
    model = TopKClassifier("smooth_hinge", k=3, random_state=0).fit(X, Y)
    shortlists = model.predict_topk(X)
    answer = model.predict(X)
    assert answer.shape == Y.shape
    assert answer.dtype == np.int64
    assert (answer.sum(axis=1) == 3).all()
    assert np.take_along_axis(answer, shortlists, axis=1).all()
    assert model.decision_function(X).shape == Y.shape
    softmax = TopKClassifier(random_state=0).fit(X, Y)
    probabilities = softmax.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), softmax.predict(X).argmax(axis=1))


def test_two_labels_keep_two_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] < 0.5])
    model = TopKClassifier("smooth_hinge", random_state=0).fit(X, Y)
    assert model.decision_function(X).shape == (40, 2)
    assert model.predict(X).shape == (40, 2)
    assert model.score(X, Y) > 0.9


def test_score_is_the_share_of_shortlists_with_a_right_label(data):
    X, Y = data
    model = TopKClassifier("smooth_hinge", k=2, C=0.01, random_state=0).fit(X, Y)
    hits = np.take_along_axis(Y, model.predict_topk(X), axis=1).any(axis=1)
    labelled = Y.any(axis=1)
    assert not labelled.all()
    assert 0.3 < hits[labelled].mean() < 1
    assert model.score(X, Y) == pytest.approx(hits[labelled].mean())
    assert model.score(X, sparse.csr_array(Y)) == model.score(X, Y)
    weight = np.random.default_rng(0).integers(0, 4, size=60)
    expected = np.average(hits[labelled], weights=weight[labelled])
    assert model.score(X, Y, sample_weight=weight) == pytest.approx(expected)
    y = np.arange(60) % 6
    scores = model.decision_function(X)
    assert model.score(X, np.eye(6)[y]) == topk_accuracy(y, scores, k=2)


def test_validation_accuracy_is_recorded(data):
    X, Y = data
    model = TopKClassifier("hinge", k=2, random_state=0)
    model.fit(X[:40], Y[:40], X_val=X[40:], y_val=sparse.csr_array(Y[40:]))
    assert model.result_.history[-1].accuracy == model.score(X[40:], Y[40:])


def test_warm_start_goes_on_only_with_the_same_labels(data):
    X, Y = data
    model = TopKClassifier("smooth_hinge", k=2, warm_start=True, tol=1e-6, random_state=0)
    assert model.fit(X, Y).result_.epochs > 0
    assert model.fit(X, Y).result_.epochs == 0
    other = Y[:, ::-1]
    cold = TopKClassifier("smooth_hinge", k=2, tol=1e-6, random_state=0).fit(X, other)
    np.testing.assert_array_equal(model.fit(X, other).coef_, cold.coef_)
    # From several labels to one, and back.
    assert not model.fit(X, np.arange(60) % 6).multilabel_
    assert model.fit(X, Y).multilabel_


@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_a_path_is_as_many_fits(kind, data):
    X, Y = data
    model = kind("smooth_hinge", k=2, tol=1e-8, max_epochs=20_000, random_state=0)
    for one in model.fit_path(X, Y, [0.1, 10.0, 1.0]):
        assert one.multilabel_
        alone = kind("smooth_hinge", k=2, C=one.C, **CLOSE).fit(X, Y)
        assert one.result_.primal == pytest.approx(alone.result_.primal, rel=1e-7)


@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_model_files_keep_it(kind, data, tmp_path):
    X, Y = data
    for labels in (Y, Y[:, :2], np.arange(60) % 6):
        model = kind("smooth_hinge", random_state=0).fit(X, labels)
        shortlist.save(model, tmp_path / "model")
        back = shortlist.load(tmp_path / "model")
        assert back.multilabel_ == model.multilabel_
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


def test_among_scikit_learns_tools(data):
    X, Y = data
    model = make_pipeline(StandardScaler(), TopKClassifier("smooth_hinge", k=2, random_state=0))
    scores = cross_val_score(model, X, Y, cv=3)
    folds = KFold(3).split(X)
    expected = [model.fit(X[train], Y[train]).score(X[test], Y[test]) for train, test in folds]
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(
        cross_val_score(model, X, Y, cv=3, scoring=topk_scorer(2)), scores
    )
    model.fit(X, Y)
    assert topk_scorer(2)(model, X, sparse.csr_array(Y)) == model.score(X, Y)
    with pytest.raises(ValueError, match=r"indicator matrix of shape \(4, 6\)"):
        topk_scorer(1)(model, X[:4], Y[:4, :2])


@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_the_tag_follows_the_loss(kind):
    assert get_tags(kind("hinge", k=3)).classifier_tags.multi_label
    assert get_tags(kind("entropy")).classifier_tags.multi_label
    assert not get_tags(kind("entropy", k=2)).classifier_tags.multi_label
    assert not get_tags(kind("ova_logistic")).classifier_tags.multi_label
    assert not get_tags(kind("no such loss")).classifier_tags.multi_label


X4 = np.arange(8.0).reshape(4, 2)
Y4 = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"loss": "ova_logistic"}, Y4, r"'ova_logistic' takes one right label .* hinge, smooth_h"),
        ({"loss": "entropy", "k": 2}, Y4, r"several labels at k=1 only; got k=2"),
        ({"loss": "truncated_entropy", "k": 2}, Y4, r"takes one right label per example"),
        ({"loss": "hinge", "k": 3}, Y4, r"k must lie between 1 .* 2; got k=3 with 3 classes"),
        ({"class_weight": "balanced"}, Y4, r"class_weight is for one label per example"),
        ({}, 2 * Y4 - 1, r"0 and 1 only; got values from -1 to 1"),
        ({}, sparse.csr_array(2 * Y4), r"0 and 1 only"),
        ({}, np.zeros_like(Y4), r"no example of positive weight has a right label"),
        ({}, np.ones_like(Y4), r"no example of positive weight .* at least k=1 wrong"),
        ({}, 3 * Y4 + Y4[:, ::-1], r"y should be a 1d array"),
        ({}, Y4[:3], r"inconsistent numbers of samples"),
        ({}, [[0, 1], [1], [0, 1], [1]], r"."),
    ],
)
def test_bad_input_to_fit(kind, params, y, message):
    with pytest.raises(ValueError, match=message):
        kind(**params).fit(X4, y)


def test_examples_of_no_weight_cannot_be_learned_from():
    with pytest.raises(ValueError, match="nothing to learn from"):
        TopKClassifier("hinge").fit(X4, Y4 * [[1], [0], [0], [0]], sample_weight=[0, 1, 1, 1])


def test_bad_input_to_score_and_validation():
    model = TopKClassifier("hinge").fit(X4, Y4)
    for wrong in ([0, 1, 2, 0], Y4[:, :2]):
        with pytest.raises(ValueError, match=r"indicator matrix of shape \(4, 3\)"):
            model.score(X4, wrong)
        with pytest.raises(ValueError, match=r"indicator matrix of shape \(4, 3\)"):
            model.fit(X4, Y4, X_val=X4, y_val=wrong)
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X4, np.zeros_like(Y4))
    with pytest.raises(ValueError, match="nothing to score"):
        model.fit(X4, Y4, X_val=X4, y_val=np.zeros_like(Y4))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_search_is_a_loop_over_folds(kind, data, tmp_path):
    X, Y = data
    weights = np.arange(60) % 3 + 1.0
    Cs, ks, params = [0.01, 1.0], (1, 2), {"loss": "smooth_hinge", "tol": 1e-6, "random_state": 0}
    search = TopKClassifierCV(**params, Cs=Cs, ks=ks, cv=3, max_extensions=0)
    search.fit(X, kind(Y), sample_weight=weights)
    for row, C in enumerate(Cs):
        for k in ks:
            shares = []
            for train, test in KFold(3).split(X):
                model = TopKClassifier(**params, C=C).fit(X[train], Y[train], weights[train])
                shares.append(topk_scorer(k)(model, X[test], Y[test], sample_weight=weights[test]))
            assert search.cv_results_[f"mean_top{k}"][row] == pytest.approx(np.mean(shares))
    assert search.multilabel_
    assert search.score(X, kind(Y)) == search.model_for(1).score(X, Y)
    shortlist.save(search, tmp_path / "model")
    back = shortlist.load(tmp_path / "model")
    assert back.multilabel_
    np.testing.assert_array_equal(back.predict(X), search.predict(X))
    given = search.fit(X, kind(Y), X_val=X, y_val=kind(Y))
    best = given.cv_results_["mean_top2"].max()
    assert best == pytest.approx(topk_scorer(2)(given.model_for(2), X, Y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"shots": 1}, "shots is for one label per example"),
        ({"class_weight": "balanced"}, "class_weight is for one label per example"),
        ({"scoring": "neg_log_loss"}, "scoring='neg_log_loss' is for one label per example"),
        ({"loss": "ova_logistic"}, "takes one right label per example"),
        ({"cv": [([0, 1], [2, 3])]}, "split 1 of cv holds out no example with a label"),
    ],
)
def test_what_a_search_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        TopKClassifierCV(**params, ks=1).fit(X4, Y4 * [[1], [1], [0], [0]])
