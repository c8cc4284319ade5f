"""MAPIE's sets where both use the same score, on handwritten digits made hard by noise."""

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit

from shortlist.conformal import ConformalShortlist
from tests.conformal.models import noisy_digits

SEED = 3


@pytest.fixture(scope="module")
def digits():
    X, y = noisy_digits(0.35)
    model = LogisticRegression().fit(X[:500], y[:500])
    return model, (X[500:1100], y[500:1100]), X[1100:]


def mapie_sets(model, calibration, X, score, level, **options):
    sets = SplitConformalClassifier(
        model, confidence_level=level, conformity_score=score, random_state=SEED
    ).conformalize(*calibration)
    return sets, sets.predict_set(X, options)[1][:, :, 0]


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(("score", "theirs"), [("lac", "lac"), ("topk", "top_k"), ("aps", "aps")])
def test_the_same_sets(digits, score, theirs, level):
    model, calibration, X = digits
    ours = ConformalShortlist(model, level, score, random_state=SEED).conformalize(*calibration)
    _, expected = mapie_sets(model, calibration, X, theirs, level)
    assert 1 < expected.sum(axis=1).mean() < 9
    np.testing.assert_array_equal(ours.predict_set(X).toarray(), expected)


def test_randomised_sets_with_the_same_draws(digits):
    model, calibration, X = digits
    ours = ConformalShortlist(
        model, 0.9, "aps", include_last_label="randomized", random_state=SEED
    ).conformalize(*calibration)
    theirs, _ = mapie_sets(model, calibration, X, "aps", 0.9)
    # MAPIE draws for new examples what it drew for calibration. Give it our draws.
    theirs._mapie_classifier.conformity_score_function_.random_state = ours._seed
    expected = theirs.predict_set(X, {"include_last_label": "randomized"})[1][:, :, 0]
    np.testing.assert_array_equal(ours.predict_set(X).toarray(), expected)
    assert ours.coverage_report(X, model.predict(X))["share_empty"] > 0


def test_raps_with_the_same_penalty_on_the_same_examples(digits):
    model, (X_cal, y_cal), X = digits
    theirs, expected = mapie_sets(model, (X_cal, y_cal), X, "raps", 0.9)
    score = theirs._mapie_classifier.conformity_score_function_
    split = StratifiedShuffleSplit(n_splits=1, random_state=SEED)  # as MAPIE splits
    rest, _ = next(split.split(X_cal, y_cal))
    ours = ConformalShortlist(
        model,
        0.9,
        "raps",
        raps_penalty=float(score.lambda_star),
        raps_places=int(score.k_star[0]),
        random_state=SEED,
    ).conformalize(X_cal[rest], y_cal[rest])
    assert score.lambda_star > 0
    np.testing.assert_array_equal(ours.predict_set(X).toarray(), expected)
