"""The estimators among scikit-learn's tools: pipelines, searches, calibration, frames, routing."""

import numpy as np
import pandas
import polars
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from shortlist.metrics import topk_accuracy, topk_scorer

ESTIMATORS = {
    "linear": TopKClassifier("smooth_hinge", k=2, C=0.1, random_state=0),
    "cross-validated": TopKClassifierCV(
        Cs=[0.01, 0.1], ks=(1, 2), cv=2, max_extensions=0, random_state=0
    ),
    "kernel": KernelTopKClassifier("smooth_hinge", k=2, random_state=0),
}
FOLDS = StratifiedKFold(3)


@pytest.fixture(params=ESTIMATORS, name="model")
def model_of(request):
    return clone(ESTIMATORS[request.param])


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        150, 8, n_informative=6, n_classes=5, n_clusters_per_class=1, random_state=0
    )
    return X * np.arange(1, 9), np.array(list("abcde"))[y]


@pytest.fixture(scope="module")
def weight(data):
    return np.random.default_rng(0).integers(0, 4, len(data[1])).astype(float)


def test_a_pipeline_is_its_steps(model, data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(model).fit(scaled, y)
    np.testing.assert_array_equal(pipeline.decision_function(X), alone.decision_function(scaled))
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    assert pipeline.score(X, y) == alone.score(scaled, y)
    np.testing.assert_array_equal(
        pipeline[-1].predict_topk(pipeline[:-1].transform(X), 3), alone.predict_topk(scaled, 3)
    )


def test_a_grid_search_over_a_pipeline_with_top_k_scorers(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), TopKClassifier("smooth_hinge", random_state=0))
    grid = {"topkclassifier__C": [1e-4, 1e-2, 1.0], "topkclassifier__k": [1, 3]}
    scoring = {"top1": topk_scorer(1), "top3": topk_scorer(3)}
    search = GridSearchCV(pipeline, grid, scoring=scoring, refit="top3", cv=FOLDS).fit(X, y)
    for row, params in enumerate(search.cv_results_["params"]):
        for k in (1, 3):
            scores = []
            for train, test in FOLDS.split(X, y):
                fitted = clone(pipeline).set_params(**params).fit(X[train], y[train])
                shortlists = np.argsort(-fitted.decision_function(X[test]), axis=1)[:, :k]
                hits = fitted.classes_[shortlists] == y[test, None]
                scores.append(hits.any(axis=1).mean())
            assert search.cv_results_[f"mean_test_top{k}"][row] == pytest.approx(np.mean(scores))
    best = np.argmax(search.cv_results_["mean_test_top3"])
    assert search.best_params_ == search.cv_results_["params"][best]
    assert search.best_params_["topkclassifier__C"] == search.best_estimator_[-1].C


@pytest.mark.parametrize("within", [False, True])
def test_a_search_over_k_in_other_processes_is_warned_of_too(within, data, recwarn, monkeypatch):
    """What scores warn of in other processes is lost; the refit is in the user's own."""
    X, y = data
    monkeypatch.setattr("shortlist.estimators.shortlists.is_called_from", lambda package: False)
    model = TopKClassifier("smooth_hinge", C=0.1, random_state=0)
    prefix = "topkclassifier__" if within else ""
    model = make_pipeline(StandardScaler(), model) if within else model
    GridSearchCV(model, {f"{prefix}k": [1, 3]}, cv=2, scoring="accuracy").fit(X / 8, y)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"the largest k wins.*topk_scorer"):
        GridSearchCV(model, {f"{prefix}k": [1, 3]}, cv=2).fit(X / 8, y)


@pytest.mark.parametrize("within", [False, True])
def test_a_search_over_k_is_warned_of_scores_at_its_own_k(within, data, recwarn):
    X, y = data
    model = TopKClassifier("smooth_hinge", C=0.1, random_state=0)
    prefix = "topkclassifier__" if within else ""
    model = make_pipeline(StandardScaler(), model) if within else model
    with pytest.warns(UserWarning, match=r"the largest k wins.*topk_scorer"):
        search = GridSearchCV(model, {f"{prefix}k": [1, 3]}, cv=2).fit(X / 8, y)
    assert search.best_params_ == {f"{prefix}k": 3}
    recwarn.clear()
    # One k for all, no k at all, and a model of one's own are fine.
    GridSearchCV(model, {f"{prefix}k": [1, 3]}, cv=2, scoring=topk_scorer(2)).fit(X / 8, y)
    GridSearchCV(model.set_params(**{f"{prefix}k": 2}), {f"{prefix}C": [1.0]}, cv=2).fit(X / 8, y)
    model.fit(X / 8, y).score(X / 8, y)
    assert not recwarn.list


def test_the_searching_estimator_works_inside_cross_validation(data):
    X, y = data
    scores = cross_val_score(
        ESTIMATORS["cross-validated"], X / 8, y, scoring=topk_scorer(2), cv=FOLDS
    )
    assert scores.shape == (3,)
    assert (scores > 0.4).all()  # chance is 2 in 5


def test_temperature_calibration_scales_the_scores(model, data):
    X, y = data
    X = X / 8
    if model.loss == "entropy":
        model.set_params(loss="hinge")  # one that has no probabilities of its own
    calibrated = CalibratedClassifierCV(model, method="temperature", cv=FOLDS, ensemble=False)
    calibrated.fit(X, y)
    alone = clone(model).fit(X, y)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    # One temperature for all: probabilities are the softmax of scores times a common factor.
    scores = alone.decision_function(X)
    logits = np.log(probabilities)
    centred = logits - logits.mean(axis=1, keepdims=True)
    plain = scores - scores.mean(axis=1, keepdims=True)
    factor = np.vdot(centred, plain) / np.vdot(plain, plain)
    assert factor > 0
    np.testing.assert_allclose(softmax(factor * scores, axis=1), probabilities, atol=1e-5)
    np.testing.assert_array_equal(calibrated.predict(X), alone.predict(X))


def test_temperature_calibration_lowers_the_log_loss(data):
    X, y = data
    X = X / 8
    train, test = next(iter(StratifiedKFold(2).split(X, y)))
    base = TopKClassifier("smooth_hinge", C=10, random_state=0)
    calibrated = CalibratedClassifierCV(base, method="temperature", cv=3, ensemble=False)
    calibrated.fit(X[train], y[train])
    naive = softmax(base.fit(X[train], y[train]).decision_function(X[test]), axis=1)
    assert log_loss(y[test], calibrated.predict_proba(X[test])) < log_loss(y[test], naive)


def frames(X, y):
    names = [f"feature {j}" for j in range(X.shape[1])]
    yield pandas.DataFrame(X, columns=names), pandas.Series(y, name="label")
    yield pandas.DataFrame(X, columns=names), pandas.Series(y, dtype="category")
    yield polars.DataFrame(X, schema=names), polars.Series("label", y.tolist())


def test_frames_give_what_arrays_give_and_their_names_are_kept(model, data):
    X, y = data
    X = X / 8
    alone = clone(model).fit(X, y)
    for frame, labels in frames(X, y):
        fitted = clone(model).fit(frame, labels)
        assert fitted.feature_names_in_.tolist() == list(frame.columns)
        assert fitted.classes_.tolist() == list("abcde")
        # A frame's columns are stored one by one, which sums them in another order.
        np.testing.assert_allclose(
            fitted.decision_function(frame), alone.decision_function(X), atol=1e-9
        )
        np.testing.assert_array_equal(fitted.predict_topk(frame, 2), alone.predict_topk(X, 2))
        assert fitted.score(frame, labels) == alone.score(X, y)
        swapped = frame[[frame.columns[1], frame.columns[0], *frame.columns[2:]]]
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(swapped)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            fitted.predict(X)


def test_a_chosen_model_knows_the_names_too(data):
    X, y = data
    frame, labels = next(frames(X / 8, y))
    search = clone(ESTIMATORS["cross-validated"]).fit(frame, labels)
    np.testing.assert_array_equal(search.estimators_[1].predict(frame), search.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        search.estimators_[1].predict(frame.rename(columns={"feature 0": "other"}))


def test_a_validation_frame_is_checked_like_any_other(data):
    X, y = data
    (frame, labels), *_ = frames(X / 8, y)
    search = clone(ESTIMATORS["cross-validated"])
    search.fit(frame[:100], labels[:100], X_val=frame[100:], y_val=labels[100:])
    renamed = frame[100:].rename(columns={"feature 0": "other"})
    with pytest.raises(ValueError, match="feature names"):
        search.fit(frame[:100], labels[:100], X_val=renamed, y_val=labels[100:])


def weighted_scores(model, X, y, weight, k):
    """What cross-validation with weights in fit and score should give, fold by fold."""
    scores = []
    for train, test in FOLDS.split(X, y):
        fitted = clone(model).fit(X[train], y[train], sample_weight=weight[train])
        scores.append(
            topk_accuracy(
                y[test],
                fitted.decision_function(X[test]),
                k,
                labels=fitted.classes_,
                sample_weight=weight[test],
            )
        )
    return scores


def test_weights_are_routed_through_cross_validation(model, data, weight):
    X, y = data
    X = X / 8
    with config_context(enable_metadata_routing=True):
        asking = model.set_fit_request(sample_weight=True)
        scorer = topk_scorer(2).set_score_request(sample_weight=True)
        found = cross_validate(
            asking, X, y, scoring=scorer, cv=FOLDS, params={"sample_weight": weight}
        )
    np.testing.assert_allclose(found["test_score"], weighted_scores(model, X, y, weight, 2))


def test_weights_are_routed_through_pipelines_and_searches(model, data, weight):
    X, y = data
    X = X / 8
    with config_context(enable_metadata_routing=True):
        asking = model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        pipeline.fit(X, y, sample_weight=weight)
        scaled = StandardScaler().fit_transform(X)
        alone = clone(model).fit(scaled, y, sample_weight=weight)
        np.testing.assert_array_equal(
            pipeline.decision_function(X), alone.decision_function(scaled)
        )
        name = pipeline.steps[-1][0]
        search = GridSearchCV(pipeline, {f"{name}__tol": [1e-2, 1e-4]}, cv=FOLDS)
        search.fit(X, y, sample_weight=weight)
        folds = [
            clone(asking)
            .set_params(tol=1e-4)
            .fit(scaler.transform(X[train]), y[train], weight[train])
            .score(scaler.transform(X[test]), y[test], weight[test])
            for train, test in FOLDS.split(X, y)
            for scaler in [StandardScaler().fit(X[train])]
        ]
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(folds))


def test_weights_that_nobody_asked_for_are_refused(model, data, weight):
    X, y = data
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            pipeline.fit(X, y, sample_weight=weight)
