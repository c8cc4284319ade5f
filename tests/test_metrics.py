"""Top-k metrics against naive definitions, scikit-learn, and awkward input."""

import pickle
import warnings
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from shortlist import metrics
from shortlist.metrics import (
    TIE_POLICIES,
    TieWarning,
    topk_accuracy,
    topk_accuracy_curve,
    topk_error,
    topk_scorer,
    true_label_ranks,
)

# Small integers as scores make ties of every kind likely.
SMALL_PROBLEMS = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(st.lists(st.integers(0, 3), min_size=m, max_size=m), min_size=1, max_size=6),
        st.integers(1, m),
        st.randoms(use_true_random=False),
    )
)


def error_by_permutations(y: int, row: list[int], k: int, ties: str) -> Fraction:
    """Top-k error by breaking ties in every possible order."""
    n_classes = len(row)
    wrong = []
    for priority in permutations(range(n_classes)):
        ranking = sorted(range(n_classes), key=lambda j: (-row[j], priority[j]))
        wrong.append(y not in ranking[:k])
    share = Fraction(sum(wrong), len(wrong))
    return {"optimistic": Fraction(all(wrong)), "pessimistic": Fraction(any(wrong))}.get(
        ties, share
    )


@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
@pytest.mark.parametrize("ties", TIE_POLICIES)
@given(problem=SMALL_PROBLEMS)
@settings(max_examples=60, deadline=None)
def test_error_equals_every_tie_break_enumerated(ties, problem):
    rows, k, random = problem
    y = [random.randrange(len(rows[0])) for _ in rows]
    weights = [random.randint(0, 3) for _ in rows]
    weights[0] += 1
    errors = [
        error_by_permutations(label, row, k, ties) for label, row in zip(y, rows, strict=True)
    ]
    expected = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    assert topk_error(y, rows, k, ties, sample_weight=weights) == pytest.approx(
        float(expected), abs=1e-14
    )


@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
@given(problem=SMALL_PROBLEMS)
@settings(max_examples=100, deadline=None)
def test_optimistic_is_the_papers_definition(problem):
    rows, k, random = problem
    scores = np.array(rows)
    y = np.array([random.randrange(scores.shape[1]) for _ in rows])
    kth_largest = np.sort(scores, axis=1)[:, -k]
    wrong = kth_largest > scores[np.arange(len(y)), y]
    assert topk_error(y, scores, k) == wrong.sum() / len(y)


@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
@pytest.mark.parametrize("ties", TIE_POLICIES)
@given(problem=SMALL_PROBLEMS, unit_weights=st.booleans())
@settings(max_examples=60, deadline=None)
def test_curve_equals_separate_calls_and_rises(ties, problem, unit_weights):
    rows, max_k, random = problem
    y = [random.randrange(len(rows[0])) for _ in rows]
    weights = None if unit_weights else [random.uniform(0.1, 1) for _ in rows]
    curve = topk_accuracy_curve(y, rows, max_k, ties, sample_weight=weights)
    separate = [topk_accuracy(y, rows, k, ties, sample_weight=weights) for k in range(1, max_k + 1)]
    np.testing.assert_array_equal(curve, separate)
    assert (np.diff(curve) >= 0).all()
    assert topk_accuracy_curve(y, rows, None, ties, sample_weight=weights)[-1] == pytest.approx(1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [3, 7, 40])
def test_agrees_with_scikit_learn_where_no_scores_tie(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    scores = rng.standard_normal((500, n_classes)).astype(np.float32)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 500 - n_classes)]
    names = np.array([f"class {j:02d}" for j in range(n_classes)])
    weights = rng.random(500) if weighted else None
    for k in range(1, n_classes):
        expected = top_k_accuracy_score(names[y], scores, k=k, sample_weight=weights, labels=names)
        for ties in TIE_POLICIES:
            ours = topk_accuracy(names[y], scores, k, ties, labels=names, sample_weight=weights)
            assert ours == pytest.approx(expected, abs=1e-12)
        assert topk_accuracy(names[y], scores, k, sample_weight=weights) == ours


def test_binary_decision_function_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    scores = 3 * rng.standard_normal(200)
    y = rng.integers(0, 2, 200)
    assert topk_accuracy(y, scores) == pytest.approx(top_k_accuracy_score(y, scores, k=1))
    assert topk_error(y, scores, 2) == 0
    names = np.array(["no", "yes"])
    assert topk_error(names[y], scores, labels=names) == topk_error(y, scores)
    # Unsigned scores have no negative: the first column must not wrap around.
    assert topk_error([1, 1], np.array([3, 3], np.uint8)) == 0


def test_ranks_do_not_depend_on_the_chunk_size(monkeypatch):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 6, (50, 9))
    y = rng.integers(0, 9, 50)
    best, worst = true_label_ranks(y, scores)
    monkeypatch.setattr(metrics.ranks, "_CHUNK_ELEMENTS", 20)
    for whole, chunked in zip((best, worst), true_label_ranks(y, scores), strict=True):
        np.testing.assert_array_equal(whole, chunked)
    own = scores[np.arange(50), y]
    assert [np.sum(row > s) + 1 for row, s in zip(scores, own, strict=True)] == best.tolist()
    assert [np.sum(row >= s) for row, s in zip(scores, own, strict=True)] == worst.tolist()


def test_label_without_a_column_is_an_error_at_every_k():
    scores = [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    for ties in TIE_POLICIES:
        curve = topk_accuracy_curve(["a", "z"], scores, None, ties, labels=["a", "b", "c"])
        assert curve.tolist() == [0.5, 0.5, 0.5]
    best, worst = true_label_ranks(["a", "z"], scores, labels=["a", "b", "c"])
    assert best.tolist() == worst.tolist() == [1, 4]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([10, -3, 7], [7, 10, -3]),
        (["b", "a", "c"], ["c", "b", "a"]),
        ([1.5, 0.5, 2.5], [2.5, 1.5, 0.5]),
        (np.array([10, -3, 7], np.int8), [7, 10, -3]),
        (np.array(["x", 2, (1, 2)], dtype=object), np.array([(1, 2), "x", 2], dtype=object)),
        (pd.Series([10, -3, 7], dtype="Int64"), pd.Index([7, 10, -3])),
        (pd.Series(["b", "a", "c"], dtype="category"), ["c", "b", "a"]),
        (pd.DataFrame({"y": ["b", "a", "c"]}), pd.Series(["c", "b", "a"])),
        (pl.Series(["b", "a", "c"]), pl.Series(["c", "b", "a"])),
        ([True, False, 2], [2, True, False]),
    ],
)
def test_labels_of_any_kind_in_any_order(y, labels):
    # The three labels own columns 1, 2 and 0 in turn.
    scores = np.array([[0, 9, 1], [1, 0, 9], [9, 1, 0]])
    assert topk_error(y, scores, labels=labels) == 0
    assert topk_error(y, pd.DataFrame(-scores), labels=labels) == 1
    assert topk_error(y, pl.DataFrame(-scores), 2, labels=labels) == 1


def test_numpy_integers_and_float_labels_from_pandas_are_column_numbers():
    scores = np.eye(3)
    assert topk_error(np.array([0.0, 1.0, 2.0]), scores, np.int64(1)) == 0
    assert topk_error(np.array([0, 1, 2], np.uint8), scores, np.uint8(2)) == 0
    assert topk_error([True, False], [[0, 1], [1, 0]]) == 0


def test_infinite_scores_rank_like_any_other():
    scores = [[np.inf, 0, -np.inf], [np.inf, np.inf, -np.inf]]
    assert topk_accuracy_curve([1, 2], scores).tolist() == [0, 0.5, 1]
    assert topk_error([0, 0], scores, ties="expected") == 0.25


def test_input_is_left_alone():
    scores = np.asfortranarray(np.random.default_rng(0).random((6, 4)))[::2]
    scores.flags.writeable = False
    y = np.array([0, 1, 2])
    y.flags.writeable = False
    before = scores.copy()
    topk_accuracy_curve(y, scores)
    np.testing.assert_array_equal(scores, before)


def test_constant_scorer_does_not_look_perfect_silently():
    y = np.arange(10)
    with pytest.warns(TieWarning, match=r"ties decide 100.0% .*top-1 .*1\.0000.*0\.1000.*0\.0000"):
        assert topk_error(y, np.zeros((10, 10))) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert topk_error(y, np.zeros((10, 10)), ties="expected") == pytest.approx(0.9)
        assert topk_error(y, np.zeros((10, 10)), ties="pessimistic") == 1
        np.testing.assert_allclose(
            topk_accuracy_curve(y, np.zeros((10, 10)), ties="expected"), y / 10 + 0.1
        )


@pytest.mark.parametrize("function", [topk_error, topk_accuracy, topk_accuracy_curve])
def test_warning_points_at_the_caller(function):
    with pytest.warns(TieWarning) as caught:
        function([0, 1], [[1, 1], [1, 1]], 1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("n_tied", "warns"), [(1, False), (2, True)])
def test_warning_starts_above_one_percent(n_tied, warns):
    scores = np.tile([2.0, 1.0, 0.0], (100, 1))
    scores[:n_tied, 1] = 2.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        topk_accuracy_curve(np.zeros(100, int), scores)
    assert [w.category for w in caught] == [TieWarning] * warns
    # Weight moves the same tie across the threshold; a tie inside the shortlist decides nothing.
    weights = np.ones(100)
    weights[:n_tied] = 0.1 if warns else 10
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        topk_accuracy(np.zeros(100, int), scores, sample_weight=weights)
        topk_accuracy(np.zeros(100, int), scores, 2, sample_weight=weights)
    assert len(caught) == (not warns)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0], [[1, 2]], 0), {}, ValueError, "k must lie between 1 and .*2.*got 0"),
        (([0], [[1, 2]], 3), {}, ValueError, "k must lie between 1 and .*2.*got 3"),
        (([0], [[1, 2]], 1.0), {}, TypeError, "k must be an integer"),
        (([0], [[1, 2]], True), {}, TypeError, "k must be an integer"),
        (([0], [[1, 2]], 1, "lucky"), {}, ValueError, "'optimistic', 'pessimistic', 'expected'"),
        (([0, 1], [[1, 2], [np.nan, 1]]), {}, ValueError, "NaN .*row 1"),
        (([0], [["a", "b"]]), {}, TypeError, "scores must be an array of real"),
        (([0], [[1j, 2]]), {}, TypeError, "scores must be real"),
        (([0], [[[1, 2]]]), {}, ValueError, r"shape \(1, 1, 2\)"),
        (([], np.empty((0, 3))), {}, ValueError, "scores is empty"),
        (([0], np.empty((1, 0))), {}, ValueError, "scores is empty"),
        (([], [[1, 2]]), {}, ValueError, "y_true is empty"),
        (([0, 1], [[1, 2]]), {}, ValueError, "2 labels but scores has 1 rows"),
        (([[0, 1]], [[1, 2]]), {}, ValueError, "y_true must be one-dimensional"),
        (([2], [[1, 2]]), {}, ValueError, "y_true contains 2.*column number from 0 to 1.*labels="),
        (([-1], [[1, 2]]), {}, ValueError, "y_true contains -1"),
        ((["a"], [[1, 2]]), {}, ValueError, "1 distinct labels but scores has 2 columns.*labels="),
        (([np.nan], [[1, 2]]), {}, ValueError, "y_true contains missing"),
        (([None], [[1, 2]]), {}, ValueError, "y_true contains missing"),
        ((pd.Series(["a", pd.NA]), [[1, 2]] * 2), {}, ValueError, "y_true contains missing"),
        (([0], [[1, 2]]), {"labels": [0]}, ValueError, "labels has 1 entries but .* 2 columns"),
        (([0], [[1, 2]]), {"labels": [0, 0]}, ValueError, "labels must be distinct"),
        (([0], [[1, 2]]), {"labels": ["0", "1"]}, TypeError, "numbers but labels holds text"),
        (([0], [[1, 2]]), {"sample_weight": [1, 2]}, ValueError, r"sample_weight .*shape \(1,\)"),
        (([0], [[1, 2]]), {"sample_weight": [-1]}, ValueError, "sample_weight .*nonnegative"),
        (([0], [[1, 2]]), {"sample_weight": [np.inf]}, ValueError, "sample_weight .*finite"),
        (([0], [[1, 2]]), {"sample_weight": [0]}, ValueError, "sample_weight .*positive"),
        (([0], [[1, 2]]), {"sample_weight": ["x"]}, TypeError, "sample_weight must be"),
    ],
)
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        topk_error(*arguments, **options)


def test_huge_weights_do_not_overflow():
    assert topk_error([0, 1], [[1, 0], [1, 0]], sample_weight=[1e308, 1e308]) == 0.5


def test_max_k_is_named():
    with pytest.raises(ValueError, match=r"max_k must lie between 1 and .*2"):
        topk_accuracy_curve([0], [[1, 2]], 3)


@pytest.mark.parametrize("ties", TIE_POLICIES)
@pytest.mark.parametrize("response_method", ["auto", "decision_function", "predict_proba"])
def test_scorer_equals_the_metric_on_each_fold(ties, response_method):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    folds = KFold(4, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    scores = cross_val_score(
        model,
        X,
        names,
        cv=folds,
        scoring=topk_scorer(1, ties=ties, response_method=response_method),
    )
    expected = []
    for train, test in folds.split(X):
        predictions = model.fit(X[train], names[train]).predict(X[test])
        expected.append(np.mean(predictions == names[test]))
    np.testing.assert_allclose(scores, expected)


def test_scorer_when_a_training_fold_misses_classes():
    X, y = make_classification(
        300, 12, n_informative=8, n_classes=5, n_clusters_per_class=1, random_state=0
    )
    groups = np.where(y == 4, 0, np.arange(300) % 3)  # only group 0 has class 4
    problem = {"estimator": LogisticRegression(), "X": X, "y": y, "groups": groups}
    with pytest.warns(UserWarning, match="Scoring failed"):
        standard = cross_val_score(**problem, cv=LeaveOneGroupOut(), scoring="top_k_accuracy")
    ours = cross_val_score(**problem, cv=LeaveOneGroupOut(), scoring=topk_scorer(2))
    # The reason for a scorer of our own; if scikit-learn learns this, the test will say so.
    assert np.isnan(standard).all()
    assert np.isfinite(ours).all()
    test = groups == 0
    model = LogisticRegression().fit(X[~test], y[~test])
    kept = test & (y != 4)
    found = topk_accuracy(y[kept], model.decision_function(X[kept]), 2) * kept.sum()
    assert ours[0] == pytest.approx(found / test.sum())


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression(), GaussianNB()])
def test_scorer_of_binary_estimators(model):
    X, y = make_classification(120, 6, random_state=0)
    names = np.array(["yes", "no"])[y]
    model.fit(X, names)
    assert topk_scorer(1)(model, X, names) == pytest.approx(model.score(X, names))
    with pytest.warns(UndefinedMetricWarning, match="k=2 with 2 classes"):
        assert topk_scorer(2)(model, X, names) == 1


def test_scorer_selects_in_grid_search():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": [3, 100]},
        scoring={"top1": topk_scorer(1, ties="expected"), "top2": topk_scorer(2, ties="expected")},
        refit="top1",
        n_jobs=2,
    ).fit(X, y)
    assert search.best_params_ == {"n_neighbors": 3}
    assert (search.cv_results_["mean_test_top2"] >= search.cv_results_["mean_test_top1"]).all()
    assert topk_scorer(2, ties="expected")(search, X, y) > 0.99


def test_scorer_passes_sample_weight_through_metadata_routing():
    X, y = load_iris(return_X_y=True)
    weights = (y == 0).astype(float) + 1e-9
    scorer = topk_scorer(1, ties="pessimistic").set_score_request(sample_weight=True)
    model = DummyClassifier(strategy="constant", constant=0)
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(
            model.set_fit_request(sample_weight=False),
            X,
            y,
            scoring=scorer,
            params={"sample_weight": weights},
        )["test_score"]
    plain = cross_val_score(model, X, y, scoring=topk_scorer(1, ties="pessimistic"))
    np.testing.assert_allclose(routed, 1, atol=1e-6)
    np.testing.assert_allclose(plain, 1 / 3)


def test_scorer_warns_about_ties():
    X, y = load_iris(return_X_y=True)
    model = DummyClassifier(strategy="uniform", random_state=0).fit(X, y)
    model.predict_proba = lambda X: np.full((len(X), 3), 1 / 3)
    with pytest.warns(TieWarning):
        assert topk_scorer(1)(model, X, y) == 1


def test_scorer_is_a_value():
    scorer = topk_scorer(3, ties="expected")
    assert pickle.loads(pickle.dumps(scorer)) == scorer == topk_scorer(3, ties="expected")
    assert scorer != topk_scorer(2, ties="expected")
    assert "k=3" in repr(scorer)


def test_scorer_names_what_is_wrong():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="k must be 1 or larger; got 0"):
        topk_scorer(0)
    with pytest.raises(ValueError, match="ties must be one of"):
        topk_scorer(1, ties="best")
    with pytest.raises(ValueError, match="response_method must be one of"):
        topk_scorer(1, response_method="predict")
    with pytest.raises(TypeError, match="LinearSVC has no classes_"):
        topk_scorer(1)(LinearSVC(), X, y)
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        topk_scorer(1, response_method="predict_proba")(LinearSVC().fit(X, y), X, y)
