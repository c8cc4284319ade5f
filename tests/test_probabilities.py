"""Temperature scaling: scikit-learn's temperature, the model's ranking, better probabilities."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import shortlist
from shortlist import TopKClassifier, _responses
from shortlist.probabilities import TemperatureScaling, expected_calibration_error
from tests.conformal.models import GivenScores, noisy_digits

MODELS = {
    "hinge": TopKClassifier("hinge", C=10.0, random_state=0),
    "top-3 hinge": TopKClassifier("smooth_hinge", k=3, random_state=0),
    "softmax": TopKClassifier("entropy", C=10.0, random_state=0),
    "ova_logistic": TopKClassifier("ova_logistic", C=10.0, random_state=0),
    "LogisticRegression": LogisticRegression(C=100, max_iter=1000),
    "LinearSVC": LinearSVC(C=10),
    "RandomForestClassifier": RandomForestClassifier(20, random_state=0),
    "GaussianNB": GaussianNB(),
    "Pipeline": make_pipeline(StandardScaler(), LinearSVC()),
}


@pytest.fixture(scope="module")
def digits():
    return noisy_digits(0.35)


@pytest.mark.parametrize("two_classes", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_scikit_learn(digits, name, two_classes):
    X, y = digits
    y = y > 4 if two_classes else y
    model = clone(MODELS[name])
    if two_classes and "top" in name:
        model.set_params(k=1)
    model.fit(X[:500], y[:500])
    if isinstance(model, TopKClassifier):
        assert model.result_.status == "converged"
    scaled = TemperatureScaling(model).fit(X[500:1100], y[500:1100])
    theirs = CalibratedClassifierCV(
        FrozenEstimator(model), method="temperature", ensemble=False
    ).fit(X[500:1100], y[500:1100])
    np.testing.assert_allclose(
        scaled.predict_proba(X[1100:]), theirs.predict_proba(X[1100:]), atol=1e-6
    )
    np.testing.assert_array_equal(scaled.classes_, model.classes_)


@pytest.mark.parametrize("name", ["hinge", "LogisticRegression", "RandomForestClassifier"])
def test_the_report_is_what_scikit_learn_measures(digits, name):
    X, y = digits
    model = clone(MODELS[name]).fit(X[:500], y[:500])
    scaled = TemperatureScaling(model).fit(X[500:1100], y[500:1100])
    if hasattr(model, "predict_proba"):
        before, source = model.predict_proba(X[1100:]), "predict_proba"
    else:
        before = softmax(model.decision_function(X[1100:]), axis=1)
        source = "softmax of decision_function"
    after = scaled.predict_proba(X[1100:])
    report = scaled.report(X[1100:], y[1100:])
    assert report["probabilities_before"] == source
    assert report["log_loss_before"] == pytest.approx(log_loss(y[1100:], before))
    assert report["log_loss"] == pytest.approx(log_loss(y[1100:], after))
    for key, values in (("_before", before), ("", after)):
        expected = expected_calibration_error(y[1100:], values)
        assert report[f"calibration_error{key}"] == pytest.approx(expected)
    assert report["log_loss"] < report["log_loss_before"]
    assert (report["temperature"], report["n_samples"]) == (scaled.temperature_, len(y) - 1100)
    assert scaled.report_["log_loss"] <= scaled.report_["log_loss_before"]
    assert scaled.report_["calibration_error"] < scaled.report_["calibration_error_before"]


def test_the_ranking_is_the_models(digits):
    X, y = digits
    model = clone(MODELS["top-3 hinge"]).fit(X[:500], y[:500])
    scaled = TemperatureScaling(model).fit(X[500:], y[500:])
    np.testing.assert_array_equal(scaled.predict(X), model.predict(X))
    np.testing.assert_array_equal(scaled.predict_topk(X), model.predict_topk(X))
    np.testing.assert_array_equal(scaled.predict_topk(X, 5), model.predict_topk(X, 5))
    np.testing.assert_array_equal(
        np.argsort(-scaled.predict_proba(X), axis=1),
        np.argsort(-model.decision_function(X), axis=1),
    )
    assert not hasattr(TemperatureScaling(LogisticRegression()), "predict_topk")


def test_scores_and_logarithms_agree_with_the_probabilities(digits):
    X, y = digits
    for labels in (y, y > 4):
        model = LinearSVC(C=10).fit(X[:500], labels[:500])
        scaled = TemperatureScaling(model).fit(X[500:], labels[500:])
        np.testing.assert_allclose(
            scaled.decision_function(X), model.decision_function(X) / scaled.temperature_
        )
        np.testing.assert_allclose(
            np.exp(scaled.predict_log_proba(X)), scaled.predict_proba(X), atol=1e-12
        )
    far = scaled.predict_log_proba(1e6 * X)
    assert np.isfinite(far).all()
    assert far.min() < -1000


def test_the_temperature_that_made_the_labels_is_found():
    random = np.random.default_rng(0)
    scores = random.normal(scale=4, size=(40000, 5))
    noise = random.gumbel(size=scores.shape)
    y = (scores / 2.5 + noise).argmax(axis=1)  # drawn with probabilities softmax(scores / 2.5)
    scaled = TemperatureScaling(GivenScores(5)).fit(scores, y)
    assert scaled.temperature_ == pytest.approx(2.5, rel=0.03)
    assert scaled.report_["calibration_error"] < 0.01 < scaled.report_["calibration_error_before"]
    # Scores in other units have a temperature in those units.
    for unit in (1e-6, 1e6):
        other = TemperatureScaling(GivenScores(5)).fit(unit * scores, y)
        assert other.temperature_ == pytest.approx(unit * scaled.temperature_, rel=1e-6)


def test_no_other_temperature_has_a_smaller_loss():
    random = np.random.default_rng(1)
    scores, y = random.normal(size=(300, 4)), random.integers(0, 4, 300)
    scores[np.arange(300), y] += 1
    best = TemperatureScaling(GivenScores(4)).fit(scores, y).temperature_

    def loss(temperature):
        return -log_softmax(scores / temperature, axis=1)[np.arange(300), y].mean()

    assert all(loss(best) < loss(factor * best) for factor in (0.5, 0.99, 1.01, 2))


def test_temperatures_at_the_bounds_are_told_of():
    random = np.random.default_rng(2)
    y = random.integers(0, 3, 50)
    right = np.eye(3)[y] + random.uniform(0, 0.5, (50, 3))
    with pytest.warns(UserWarning, match="ranks the label of every example first"):
        sure = TemperatureScaling(GivenScores(3)).fit(right, y)
    assert sure.predict_proba(right)[np.arange(50), y].min() > 0.99
    with pytest.warns(UserWarning, match="say nothing of the labels"):
        unsure = TemperatureScaling(GivenScores(3)).fit(-right, y)
    np.testing.assert_allclose(unsure.predict_proba(right), 1 / 3, atol=1e-3)
    with pytest.warns(UserWarning, match="all scores of each example are the same"):
        assert TemperatureScaling(GivenScores(3)).fit(0 * right, y).temperature_ == 1


def test_chunks_change_nothing(monkeypatch):
    random = np.random.default_rng(3)
    scores, y = random.normal(size=(100, 4)), random.integers(0, 4, 100)
    scores[np.arange(100), y] += 1
    whole = TemperatureScaling(GivenScores(4)).fit(scores, y)
    monkeypatch.setattr(_responses, "CHUNK_ELEMENTS", 28)
    model = GivenScores(4)
    parts = TemperatureScaling(model).fit(scores, y)
    assert max(model.asked) == 7
    assert parts.report_ == pytest.approx(whole.report_)


def test_conventions_and_errors(tmp_path, digits):
    X, y = digits
    model = clone(MODELS["hinge"]).fit(X[:500], y[:500])
    scaled = TemperatureScaling(model)
    with pytest.raises(NotFittedError, match="TemperatureScaling instance is not fitted"):
        scaled.predict_proba(X)
    with pytest.raises(NotFittedError, match="LogisticRegression instance is not fitted"):
        TemperatureScaling(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="labels that the model was not trained on: 12"):
        scaled.fit(X, y + 3 * (y == 9))
    with pytest.raises(ValueError, match="y has 1 labels but X has 1797 rows"):
        scaled.fit(X, y[:1])
    scaled.fit(X[500:], y[500:])
    assert clone(scaled).model is model
    assert not hasattr(clone(scaled), "temperature_")
    shortlist.save(scaled, tmp_path / "scaled")
    loaded = shortlist.load(tmp_path / "scaled")
    np.testing.assert_array_equal(loaded.predict_proba(X), scaled.predict_proba(X))
    assert loaded.report_ == scaled.report_


class TestCalibrationError:
    def test_by_hand(self):
        probabilities = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9]])
        # Two bins of two: (0.6 + 0.7 - 1) / 4 and (0.8 + 0.9 - 2) / 4, without signs.
        assert expected_calibration_error([0, 1, 1, 1], probabilities, 2) == pytest.approx(0.15)
        assert expected_calibration_error([0, 1, 1, 1], probabilities, 1) == pytest.approx(0.0)
        names = expected_calibration_error(list("abbb"), probabilities, 2, labels=["a", "b"])
        assert names == pytest.approx(0.15)

    def test_more_bins_than_examples(self):
        assert expected_calibration_error([0], [[0.7, 0.3]]) == pytest.approx(0.3)

    def test_refusals(self):
        with pytest.raises(ValueError, match="n_bins must be at least 1"):
            expected_calibration_error([0], [[0.7, 0.3]], 0)
