"""The promised coverage, by simulation: many calibration sets, bounds of the binomial kind.

Each trial draws its own calibration and test examples, so that hits are independent over trials.
Bounds leave a probability of about one in a million for a false alarm; seeds are fixed anyway.
"""

import numpy as np
import pytest
from scipy.stats import betabinom, norm

from shortlist.conformal import ConformalShortlist
from tests.conformal.models import GivenProbabilities, GivenScores, Overlapping

SCORES = ["margin", "lac", "aps", "raps", "topk"]
FEW_CHANCES = 1e-6


def trials(n_trials, n_calibration, n_test, level, score, seed=0, **options):
    """Hits per trial, and the sizes of all sets."""
    data = Overlapping(seed=seed)
    hits, sizes = [], []
    for trial in range(n_trials):
        X, y = data.draw(n_calibration)
        sets = ConformalShortlist(
            GivenScores(data.n_classes), level, score, random_state=trial, **options
        ).conformalize(X, y)
        X, y = data.draw(n_test)
        report = sets.coverage_report(X, y)
        hits.append(round(report["coverage"] * n_test))
        sizes.append(report["mean_length"])
    return np.array(hits), np.array(sizes)


def chances(hits, n_calibration, n_test, level):
    """Probabilities of so few, and of so many, hits in all if coverage is exact."""
    rank = int(np.ceil(round((n_calibration + 1) * level, 9)))
    law = betabinom(n_test, rank, n_calibration + 1 - rank)
    error = np.sqrt(len(hits) * law.var())
    deviation = (hits.sum() - len(hits) * law.mean()) / error
    return norm.cdf(deviation), norm.sf(deviation)


@pytest.mark.parametrize("level", [0.7, 0.9])
@pytest.mark.parametrize("score", SCORES)
def test_marginal_coverage(score, level):
    hits, sizes = trials(150, 60, 200, level, score)
    few, _ = chances(hits, 60, 200, level)
    assert few > FEW_CHANCES
    assert sizes.mean() < 5.5  # coverage is not bought with sets of everything


@pytest.mark.parametrize(
    ("score", "options"),
    [
        ("margin", {}),
        ("lac", {}),
        ("aps", {"include_last_label": "randomized"}),
        ("aps", {"include_last_label": False}),
        ("raps", {"include_last_label": "randomized", "raps_penalty": 0.1, "raps_places": 2}),
    ],
)
def test_coverage_is_exact_where_scores_do_not_tie(score, options):
    hits, _ = trials(200, 39, 200, 0.9, score, seed=1, **options)
    few, many = chances(hits, 39, 200, 0.9)
    assert min(few, many) > 1e-4


def test_always_including_the_last_label_covers_more():
    exact, _ = trials(50, 60, 200, 0.8, "aps", include_last_label="randomized")
    more, _ = trials(50, 60, 200, 0.8, "aps", include_last_label=True)
    assert more.sum() > exact.sum() + 200


def test_ties_never_cost_coverage():
    """Rounded scores tie often, within an example and between examples."""
    data, hits, n = Overlapping(seed=2), 0, 0
    for trial in range(100):
        X, y = data.draw(40)
        for score in ("margin", "topk"):
            sets = ConformalShortlist(GivenScores(6), 0.9, score, random_state=trial)
            sets.conformalize(np.round(X / 3), y)
            X_new, y_new = data.draw(100)
            found = sets.predict_set(np.round(X_new / 3)).toarray()
            hits += found[np.arange(100), y_new].sum()
            n += 100
    assert hits / n > 0.9


def per_class_coverage(method, n_trials=60, n_calibration=900, **options):
    data = Overlapping(seed=4)
    found, counts = np.zeros(6), np.zeros(6)
    for trial in range(n_trials):
        X, y = data.draw(n_calibration)
        sets = ConformalShortlist(
            GivenScores(6), 0.9, method=method, random_state=trial, **options
        ).conformalize(X, y)
        X, y = data.draw(600)
        table = sets.coverage_report(X, y)["per_class"]
        found += table["coverage"] * table["n_samples"]
        counts += table["n_samples"]
    return found / counts


def test_class_conditional_coverage_holds_for_every_class():
    conditional = per_class_coverage("class_conditional")
    # Calibration sets of about 150 examples a class: the spread of 60 of them is about 0.005.
    assert (np.abs(conditional - 0.9) < 0.02).all()
    assert per_class_coverage("marginal").min() < 0.85


def test_clusters_bring_the_classes_closer_to_the_level():
    clustered = per_class_coverage("clustered", n_clusters=3)
    marginal = per_class_coverage("marginal")
    assert np.abs(clustered - 0.9).mean() < 0.5 * np.abs(marginal - 0.9).mean()


def test_clusters_of_classes_with_alike_scores():
    """Two kinds of classes, easy and hard, are told apart; a class that never occurs is in none."""
    random = np.random.default_rng(0)
    y = random.integers(0, 30, 9000)
    scores = random.normal(size=(9000, 31))
    scores[np.arange(9000), y] += np.where(y < 15, 6.0, 1.0)
    sets = ConformalShortlist(GivenScores(31), 0.9, method="clustered", random_state=0)
    sets.conformalize(scores, y)
    easy, hard = sets.clusters_[:15], sets.clusters_[15:30]
    assert set(easy).isdisjoint(hard)
    assert sets.clusters_[30] == -1
    assert sets.threshold_[:15].max() < sets.threshold_[15:30].min()
    assert sets.threshold_[30] == pytest.approx(
        np.sort(sets.calibration_scores_)[int(np.ceil((sets.n_calibration_ + 1) * 0.9)) - 1]
    )


def test_probabilities_without_scores_are_enough():
    data = Overlapping(seed=5)
    for score in SCORES:
        X, y = data.draw_probabilities(2000)
        sets = ConformalShortlist(GivenProbabilities(6), 0.9, score, random_state=0)
        sets.conformalize(X, y)
        X, y = data.draw_probabilities(4000)
        report = sets.coverage_report(X, y)
        low, _ = report["expected_interval"]
        assert report["coverage"] >= low
