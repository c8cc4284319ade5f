"""The estimator: models and inputs it takes, what it returns, and what it refuses."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV, _responses
from shortlist._json import plain
from shortlist.conformal import ConformalShortlist
from shortlist.probabilities import TemperatureScaling
from tests.conformal.models import GivenProbabilities, GivenScores, Overlapping, noisy_digits

SCORES = ["margin", "lac", "aps", "raps", "topk"]
NAMES = np.array([f"digit {i}" for i in range(10)])


@pytest.fixture(scope="module")
def digits():
    return noisy_digits(0.3)


@pytest.fixture(scope="module")
def hinge(digits):
    X, y = digits
    return TopKClassifier("smooth_hinge", k=2, C=0.1, random_state=0).fit(X[:600], y[:600])


def covered(sets, X, y):
    """Whether coverage is 0.9 up to four standard deviations, without sets of everything."""
    report = sets.coverage_report(X, y)
    low, high = report["expected_interval"]  # about two to each side
    least = 0.9 - (high - low)
    return report["coverage"] > least and report["mean_length"] < 0.9 * len(sets.classes_)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    "model",
    [
        TopKClassifier("hinge", C=0.1, random_state=0),
        TopKClassifier("entropy", random_state=0),
        KernelTopKClassifier("smooth_hinge", k=2, random_state=0),
        LogisticRegression(),
        LinearSVC(C=0.1),
        RandomForestClassifier(30, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), TopKClassifier("ova_hinge", C=0.1, random_state=0)),
    ],
    ids=lambda model: getattr(model, "loss", type(model).__name__),
)
def test_any_fitted_classifier(digits, model, score):
    X, y = digits
    fitted = clone(model).fit(X[:300], y[:300])
    sets = ConformalShortlist(fitted, 0.9, score, random_state=0)
    assert sets.conformalize(X[300:900], y[300:900]) is sets
    assert covered(sets, X[900:], y[900:])


def test_a_search_and_scaled_probabilities(digits):
    X, y = digits
    search = TopKClassifierCV("hinge", Cs=[0.1, 1.0], ks=(1, 2), cv=2, random_state=0)
    search.fit(X[:300], y[:300])
    assert covered(
        ConformalShortlist(search).conformalize(X[600:1100], y[600:1100]), X[1100:], y[1100:]
    )
    scaled = TemperatureScaling(search).fit(X[300:600], y[300:600])
    sets = ConformalShortlist(scaled, score="lac").conformalize(X[600:1100], y[600:1100])
    assert covered(sets, X[1100:], y[1100:])


def test_two_classes(digits):
    X, y = digits
    for model in (LogisticRegression(), TopKClassifier(random_state=0)):
        fitted = model.fit(X[:200], y[:200] > 4)
        for score in SCORES:
            sets = ConformalShortlist(fitted, 0.9, score, random_state=0)
            sets.conformalize(X[200:900], y[200:900] > 4)
            report = sets.coverage_report(X[900:], y[900:] > 4)
            assert report["coverage"] > 0.85
        # The margin is the decision function, with its sign.
        margins = ConformalShortlist(fitted).conformalize(X[200:900], y[200:900] > 4)
        signs = np.where(y[200:900] > 4, -1, 1)
        expected = signs * fitted.decision_function(X[200:900])
        np.testing.assert_allclose(margins.calibration_scores_, expected)


def test_sets_are_csr_of_bool_and_lists_are_the_same_best_first(digits, hinge):
    X, y = digits
    named = TopKClassifier("smooth_hinge", k=2, C=0.1, random_state=0).fit(X[:600], NAMES[y[:600]])
    sets = ConformalShortlist(named, 0.95).conformalize(X[600:1200], NAMES[y[600:1200]])
    found = sets.predict_set(X[1200:])
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == bool
    assert found.shape == (len(y) - 1200, 10)
    assert found.has_canonical_format
    assert found.data.all()
    assert found.indices.dtype == found.indptr.dtype == np.int32
    lists = sets.predict_lists(X[1200:])
    ranked = named.predict_topk(X[1200:], k=9)
    for row, labels, best in zip(found.toarray(), lists, ranked, strict=True):
        assert labels.tolist() == best[: len(labels)].tolist()
        assert set(labels) == set(named.classes_[row])
    plain_sets = ConformalShortlist(hinge, 0.95).conformalize(X[600:1200], y[600:1200])
    np.testing.assert_array_equal(plain_sets.predict_set(X[1200:]).toarray(), found.toarray())


def test_sparse_rows_frames_and_lists_give_the_same_sets(digits, hinge):
    pandas = pytest.importorskip("pandas")
    X, y = digits
    expected = (
        ConformalShortlist(hinge).conformalize(X[600:1200], y[600:1200]).predict_set(X[1200:])
    )
    kinds = [
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.coo_array,
        pandas.DataFrame,
        np.ndarray.tolist,
    ]
    for kind in kinds:
        sets = ConformalShortlist(hinge).conformalize(kind(X[600:1200]), y[600:1200].tolist())
        found = sets.predict_set(kind(X[1200:]))
        np.testing.assert_array_equal(found.toarray(), expected.toarray())


@pytest.mark.parametrize("score", SCORES)
def test_chunks_bound_the_rows_asked_for_and_change_nothing(monkeypatch, score):
    data = Overlapping()
    (X, y), (X_new, y_new) = data.draw(100), data.draw(101)
    sets = ConformalShortlist(GivenScores(6), 0.8, score, random_state=0).conformalize(X, y)
    expected = sets.predict_set(X_new).toarray()
    monkeypatch.setattr(_responses, "CHUNK_ELEMENTS", 42)  # 7 rows of 6 classes
    model = GivenScores(6)
    again = ConformalShortlist(model, 0.8, score, random_state=0).conformalize(X, y)
    np.testing.assert_array_equal(again.predict_set(X_new).toarray(), expected)
    assert max(model.asked) == 7
    sizes = ConformalShortlist(model, average_size=2).conformalize(X, y)
    assert sizes.predict_set(X).sum() == 200
    assert sizes.coverage_report(X_new, y_new)["n_samples"] == 101
    assert max(model.asked) == 7


def test_a_pipeline_of_texts(monkeypatch):
    """The input is a list of texts, which only the pipeline turns into numbers."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 400)
    words = np.array(["ant bee", "bee cat", "cat ant"])
    texts = [f"{words[label]} {' '.join(random.choice(['ant', 'bee', 'cat'], 3))}" for label in y]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts[:100], y[:100])
    monkeypatch.setattr(_responses, "CHUNK_ELEMENTS", 90)  # 30 texts
    sets = ConformalShortlist(model, 0.8, "raps", random_state=0).conformalize(texts[100:], y[100:])
    assert sets.predict_set(texts[:70]).shape == (70, 3)
    assert sets.coverage_report(texts[100:], y[100:])["coverage"] > 0.75


def test_a_classifier_that_is_no_estimator_of_scikit_learns():
    class Fitted(GivenScores):
        def fit(self, X, y):
            raise AssertionError("the model is never fitted")

    X, y = Overlapping().draw(100)
    sets = ConformalShortlist(Fitted(6)).conformalize(X, y)
    assert sets.predict_set(X).shape == (100, 6)


def test_another_level_without_calibrating_again():
    data = Overlapping()
    (X, y), (X_new, y_new) = data.draw(200), data.draw(300)
    sets = ConformalShortlist(GivenScores(6), 0.9).conformalize(X, y)
    wider = ConformalShortlist(GivenScores(6), 0.97).conformalize(X, y)
    found = sets.predict_set(X_new, confidence_level=0.97)
    np.testing.assert_array_equal(found.toarray(), wider.predict_set(X_new).toarray())
    told, expected = sets.coverage_report(X_new, y_new, 0.97), wider.coverage_report(X_new, y_new)
    assert plain(told) == plain(expected)
    assert [len(one) for one in sets.predict_lists(X_new, 0.97)] == found.sum(axis=1).tolist()
    with pytest.raises(ValueError, match="needs at least 999 calibration examples; got 200"):
        sets.predict_set(X_new, 0.999)


def test_curve_of_levels():
    data = Overlapping()
    (X, y), (X_new, y_new) = data.draw(150), data.draw(400)
    sets = ConformalShortlist(GivenScores(6), 0.9, "aps", random_state=0).conformalize(X, y)
    curve = sets.coverage_curve(X_new, y_new)
    assert curve["confidence_level"].max() == 0.99  # 0.995 needs 199 examples
    for level, coverage, size in zip(*list(curve.values())[:3], strict=True):
        report = sets.coverage_report(X_new, y_new, level)
        assert (coverage, size) == (report["coverage"], report["mean_length"])
    from shortlist.metrics import topk_accuracy_curve

    np.testing.assert_allclose(curve["topk_accuracy"], topk_accuracy_curve(y_new, X_new))
    with pytest.raises(ValueError, match="confidence_levels must be a number between 0 and 1"):
        sets.coverage_curve(X_new, y_new, [0.9, 1.0])
    with pytest.raises(ValueError, match="no confidence level"):
        sets.coverage_curve(X_new, y_new, [])


def test_random_sets_repeat_and_differ_by_seed():
    data = Overlapping()
    (X, y), (X_new, _) = data.draw(200), data.draw(200)

    def found(seed):
        sets = ConformalShortlist(
            GivenScores(6), 0.8, "aps", include_last_label="randomized", random_state=seed
        ).conformalize(X, y)
        first, second = sets.predict_set(X_new).toarray(), sets.predict_set(X_new).toarray()
        np.testing.assert_array_equal(first, second)
        return first

    np.testing.assert_array_equal(found(0), found(0))
    assert (found(0) != found(1)).any()


def test_no_rows_give_no_sets():
    X, y = Overlapping().draw(50)
    sets = ConformalShortlist(GivenScores(6)).conformalize(X, y)
    assert sets.predict_set(X[:0]).shape == (0, 6)
    assert sets.predict_lists(X[:0]) == []


def test_raps_chooses_its_penalty_on_examples_of_its_own():
    X, y = Overlapping(seed=2).draw(500)
    sets = ConformalShortlist(GivenScores(6), 0.9, "raps", random_state=0).conformalize(X, y)
    assert sets.n_calibration_ == 400
    assert sets.raps_penalty_ in (0.001, 0.01, 0.1, 0.2, 0.5)
    assert 1 <= sets.raps_places_ <= 6
    with pytest.raises(ValueError, match="needs at least 45 calibration examples; got 44"):
        sets.conformalize(X[:44], y[:44])
    given = ConformalShortlist(
        GivenScores(6), 0.9, "raps", raps_penalty=0.2, raps_places=1, random_state=0
    ).conformalize(X[:44], y[:44])
    assert (given.n_calibration_, given.raps_penalty_, given.raps_places_) == (44, 0.2, 1)
    # A penalty that is large enough leaves nothing but the place.
    huge = given.set_params(raps_penalty=1e6, raps_places=0).conformalize(X, y)
    by_place = ConformalShortlist(GivenScores(6), 0.9, "topk").conformalize(X, y)
    assert huge.predict_set(X).sum() >= by_place.predict_set(X).sum()


def test_scikit_learn_conventions(hinge):
    sets = ConformalShortlist(hinge, 0.95, score="aps", random_state=1)
    assert sets.get_params()["model__k"] == 2
    copy = clone(sets)
    assert copy.model is hinge  # fitted elsewhere, and kept so
    assert copy.get_params() == sets.get_params()
    assert copy.set_params(score="lac").score == "lac"
    assert repr(ConformalShortlist(LogisticRegression(), 0.95, score="aps")) == (
        "ConformalShortlist(confidence_level=0.95, model=LogisticRegression(),\n"
        "                   score='aps')"
    )


class TestErrors:
    X, y = Overlapping().draw(60)

    @pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, "0.9", None, True, float("nan")])
    def test_levels_out_of_range(self, level):
        with pytest.raises(ValueError, match="confidence_level must be a number between 0 and 1"):
            ConformalShortlist(GivenScores(6), level).conformalize(self.X, self.y)

    @pytest.mark.parametrize("size", [0, -1, 6.5, "3", True, float("nan")])
    def test_sizes_out_of_range(self, size):
        with pytest.raises(ValueError, match="average_size must be a number above 0 and at most 6"):
            ConformalShortlist(GivenScores(6), average_size=size).conformalize(self.X, self.y)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"confidence_level": 0.8, "average_size": 2}, "exclude each other"),
            ({"average_size": 2, "method": "clustered"}, "goes with method='marginal'"),
            ({"average_size": 2, "score": "raps"}, "needs raps_penalty and raps_places"),
            ({"score": "hinge"}, "score must be one of 'margin', 'lac', 'topk', 'aps', 'raps'"),
            ({"method": "mondrian"}, "method must be one of 'marginal'"),
            ({"method": "class_conditional", "rare_classes": "drop"}, "rare_classes must be one"),
            ({"score": "aps", "include_last_label": "random"}, "True, False or 'randomized'"),
            ({"score": "raps", "raps_penalty": -1}, "raps_penalty must be a number, zero or"),
            ({"score": "raps", "raps_places": 1.5}, "raps_places must be a whole number"),
            ({"method": "clustered", "n_clusters": 0}, "n_clusters must be a whole number, 1"),
        ],
    )
    def test_options_that_are_wrong(self, options, message):
        with pytest.raises(ValueError, match=message):
            ConformalShortlist(GivenScores(6), **options).conformalize(self.X, self.y)

    def test_no_level_beside_a_size(self):
        sets = ConformalShortlist(GivenScores(6), None, average_size=2)
        assert sets.conformalize(self.X, self.y).predict_set(self.X).sum() == 120

    def test_before_calibration(self):
        sets = ConformalShortlist(GivenScores(6))
        for ask in (sets.predict_set, sets.predict_lists):
            with pytest.raises(NotFittedError, match=r"call conformalize\(X, y\)"):
                ask(self.X)
        for ask in (sets.coverage_report, sets.coverage_curve):
            with pytest.raises(NotFittedError, match=r"call conformalize\(X, y\)"):
                ask(self.X, self.y)

    def test_models_that_are_none(self):
        with pytest.raises(NotFittedError, match="LogisticRegression instance is not fitted"):
            ConformalShortlist(LogisticRegression()).conformalize(self.X, self.y)
        with pytest.raises(TypeError, match="a fitted classifier, got the class"):
            ConformalShortlist(LogisticRegression).conformalize(self.X, self.y)
        scaler = StandardScaler().fit(self.X)
        with pytest.raises(TypeError, match="StandardScaler is none"):
            ConformalShortlist(scaler).conformalize(self.X, self.y)
        several = TopKClassifier("hinge").fit(self.X, np.eye(6, dtype=int)[self.y])
        with pytest.raises(ValueError, match="trained on several right labels"):
            ConformalShortlist(several).conformalize(self.X, self.y)
        with pytest.raises(ValueError, match="a single class"):
            ConformalShortlist(GivenScores(1)).conformalize(self.X[:, :1], 0 * self.y)

    def test_labels_the_model_does_not_know(self):
        sets = ConformalShortlist(GivenScores(6))
        y = np.where(self.y == 5, 9, self.y)
        told = rf"not trained on: 9 \({(y == 9).sum()} of 60 examples\)"
        with pytest.raises(ValueError, match=told):
            sets.conformalize(self.X, y)
        with pytest.raises(ValueError, match=told):
            sets.conformalize(self.X, self.y).coverage_report(self.X, y)
        with pytest.raises(TypeError, match="y holds text but labels holds numbers"):
            sets.conformalize(self.X, self.y.astype(str))

    def test_shapes_that_do_not_fit(self, hinge):
        sets = ConformalShortlist(GivenScores(6))
        with pytest.raises(ValueError, match="y has 59 labels but X has 60 rows"):
            sets.conformalize(self.X, self.y[:59])
        with pytest.raises(ValueError, match="returns 5 columns for 6 classes"):
            sets.conformalize(self.X[:, :5], self.y)
        with pytest.raises(
            ValueError, match="X has 6 features, but TopKClassifier is expecting 64"
        ):
            ConformalShortlist(hinge).conformalize(self.X, self.y)

    def test_scores_that_are_no_numbers(self):
        X = self.X.copy()
        X[3, 2] = np.nan
        with pytest.raises(ValueError, match="decision_function of GivenScores returns NaN"):
            ConformalShortlist(GivenScores(6)).conformalize(X, self.y)

    def test_a_failure_leaves_the_threshold_as_it_was(self):
        sets = ConformalShortlist(GivenScores(6)).conformalize(self.X, self.y)
        before = sets.threshold_
        with pytest.raises(ValueError, match="needs at least"):
            sets.conformalize(self.X[:5], self.y[:5])
        assert sets.threshold_ == before

    def test_a_model_fitted_again_with_other_classes(self):
        model = GivenScores(6)
        sets = ConformalShortlist(model).conformalize(self.X, self.y)
        model.classes_ = np.arange(1, 7)
        with pytest.raises(ValueError, match="fitted again with other classes"):
            sets.predict_set(self.X)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("method", ["marginal", "class_conditional", "clustered"])
def test_saved_sets_are_the_same(tmp_path, digits, hinge, score, method):
    X, y = digits
    sets = ConformalShortlist(
        hinge, 0.9, score, method=method, include_last_label="randomized", random_state=0
    ).conformalize(X[600:1300], y[600:1300])
    shortlist.save(sets, tmp_path / "sets")
    loaded = shortlist.load(tmp_path / "sets")
    for level in (None, 0.8):
        expected = sets.predict_set(X[1300:], level).toarray()
        np.testing.assert_array_equal(loaded.predict_set(X[1300:], level).toarray(), expected)
    np.testing.assert_array_equal(loaded.threshold_, sets.threshold_)
    assert repr(loaded) == repr(sets)


def test_sets_around_a_foreign_model_are_not_saved(tmp_path):
    X, y = Overlapping().draw(60)
    sets = ConformalShortlist(LogisticRegression().fit(X, y)).conformalize(X, y)
    with pytest.raises(TypeError, match=r"model cannot be saved: a LogisticRegression is not"):
        shortlist.save(sets, tmp_path / "sets")


def test_probabilities_come_from_the_model_or_else_from_its_scores():
    data = Overlapping()
    X, y = data.draw_probabilities(100)
    own = ConformalShortlist(GivenProbabilities(6), score="lac").conformalize(X, y)
    np.testing.assert_allclose(own.calibration_scores_, 1 - X[np.arange(100), y])
    softened = ConformalShortlist(GivenScores(6), score="lac").conformalize(np.log(X), y)
    np.testing.assert_allclose(softened.calibration_scores_, own.calibration_scores_)


def test_reports_are_plain_data():
    X, y = Overlapping().draw(100)
    sets = ConformalShortlist(GivenScores(6, list("abcdef"))).conformalize(
        X, np.array(list("abcdef"))[y]
    )
    report = sets.coverage_report(X, np.array(list("abcdef"))[y])
    told = json.loads(json.dumps(plain(report)))
    assert told["worst_classes"][0]["label"] in "abcdef"
