"""Quantiles, ties, groups and sizes: each threshold is the order statistic it says it is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.conformal import ConformalShortlist
from shortlist.conformal._calibration import (
    NO_GROUP,
    Calibration,
    rank_of_level,
    samples_needed,
    threshold_for_size,
    upper_quantile,
)
from shortlist.conformal._scores import MarginScore, TopKScore, places_and_mass
from tests.conformal.models import GivenScores, Overlapping


@pytest.mark.parametrize(
    ("n", "level", "rank"),
    [(9, 0.9, 9), (10, 0.9, 10), (99, 0.55, 55), (99, 0.07, 7), (999, 0.29, 290), (19, 0.95, 19)],
)
def test_ranks_are_exact_in_decimals(n, level, rank):
    """In doubles 100 * 0.55 and 100 * 0.07 are above 55 and 7, and would be rounded up."""
    assert rank_of_level(n, level) == rank


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.995, 0.123])
def test_needed_examples_are_the_least_number_that_works(level):
    needed = samples_needed(level)
    assert rank_of_level(needed, level) <= needed
    assert rank_of_level(needed - 1, level) > needed - 1


def test_too_few_examples_is_an_error_that_says_how_many():
    X, y = Overlapping().draw(18)
    sets = ConformalShortlist(GivenScores(6), 0.95)
    with pytest.raises(ValueError, match=r"0\.95 needs at least 19 calibration examples; got 18"):
        sets.conformalize(X, y)
    X, y = Overlapping().draw(19)
    assert sets.conformalize(X, y).threshold_ == sets.calibration_scores_.max()


@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    level=st.sampled_from([0.1, 0.5, 0.55, 0.8, 0.9]),
)
def test_a_quantile_covers_enough_scores_and_no_smaller_one_does(scores, level):
    scores = np.array(scores, dtype=float)
    threshold = upper_quantile(scores, level)
    rank = rank_of_level(len(scores), level)
    if rank > len(scores):
        assert threshold == math.inf
    else:
        assert (scores <= threshold).sum() >= rank
        assert (scores < threshold).sum() < rank


@given(
    rows=st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=20),
    size=st.sampled_from([0.3, 1, 1.5, 2, 3]),
    n_chunks=st.integers(1, 4),
)
def test_a_threshold_for_a_size_is_the_largest_that_keeps_it(rows, size, n_chunks):
    values = np.array(rows, dtype=float)
    threshold = threshold_for_size(np.array_split(values, n_chunks), len(values), size)
    assert (values <= threshold).sum() <= size * len(values)
    larger = values[values > threshold]
    if len(larger):
        assert (values <= larger.min()).sum() > size * len(values)
    else:
        assert threshold == math.inf


@pytest.mark.parametrize("score", ["margin", "lac", "aps", "raps", "topk"])
@pytest.mark.parametrize("size", [1, 2.5, 4])
def test_average_size_is_kept_on_the_calibration_examples(score, size):
    X, y = Overlapping(seed=3).draw(800)
    options = {"raps_penalty": 0.05, "raps_places": 2} if score == "raps" else {}
    sets = ConformalShortlist(
        GivenScores(6), score=score, average_size=size, random_state=0, **options
    ).conformalize(X, y)
    mean = sets.predict_set(X).sum() / 800
    wanted = math.floor(size) if score == "topk" else size
    assert mean == pytest.approx(wanted, abs=0.01)
    report = sets.coverage_report(X, y)
    assert (report["confidence_level"], report["average_size"]) == (None, size)
    assert report["expected_interval"] is None
    assert 0.4 < report["coverage"] < 1


def test_a_size_that_only_empty_sets_have_is_an_error():
    X, y = Overlapping().draw(50)
    sets = ConformalShortlist(GivenScores(6), score="topk", average_size=0.5)
    with pytest.raises(ValueError, match=r"mean size of at most 0\.5"):
        sets.conformalize(X, y)
    # The margin tells sure examples from unsure ones, and may leave the latter without a label.
    half = ConformalShortlist(GivenScores(6), average_size=0.5).conformalize(X, y)
    assert half.predict_set(X).sum() == 25


def test_all_labels_for_the_largest_size():
    X, y = Overlapping().draw(50)
    sets = ConformalShortlist(GivenScores(6), average_size=6).conformalize(X, y)
    assert sets.predict_set(10 * X).sum() == 300


def test_margins_and_places_by_hand():
    scores = np.array([[3.0, 1.0, 0.5], [2.0, 2.0, -1.0], [0.0, 0.0, 0.0]])
    no_draws = np.zeros(3)
    np.testing.assert_array_equal(
        MarginScore().candidates(scores, no_draws), [[-2, 2, 2.5], [0, 0, 3], [0, 0, 0]]
    )
    np.testing.assert_array_equal(
        TopKScore().candidates(scores, no_draws), [[1, 2, 3], [1, 1, 3], [1, 1, 1]]
    )


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=8))
def test_places_and_mass_before_them(rows):
    values = np.array(rows, dtype=float)
    larger = values[:, None, :] > values[:, :, None]  # [row, label, other]
    places, above = places_and_mass(values)
    np.testing.assert_array_equal(places, 1 + larger.sum(axis=2))
    np.testing.assert_array_equal(above, (larger * values[:, None, :]).sum(axis=2))


def test_labels_that_tie_are_in_a_set_together():
    random = np.random.default_rng(0)
    X = random.integers(0, 3, (300, 5)).astype(float)
    y = random.integers(0, 5, 300)
    for score in ("margin", "lac", "aps", "topk"):
        for last in (True, False, "randomized"):
            sets = ConformalShortlist(
                GivenScores(5), 0.6, score, include_last_label=last, random_state=0
            ).conformalize(X, y)
            inside = sets.predict_set(X).toarray()
            tied = X[:, :, None] == X[:, None, :]
            assert not (tied & (inside[:, :, None] != inside[:, None, :])).any()


class TestGroups:
    scores = np.arange(1.0, 41)
    columns = np.repeat([0, 1, 2], [20, 17, 3])

    def thresholds(self, fallback, groups=(0, 1, 2, 3)):
        return Calibration(self.scores, self.columns, np.array(groups), fallback).thresholds(0.9)

    def test_each_class_has_its_own_quantile_and_rare_ones_are_in_every_set(self):
        assert self.thresholds("include").tolist() == [19, 37, math.inf, math.inf]

    def test_rare_classes_pooled_have_one_together(self):
        counts = Calibration(
            self.scores, np.repeat([0, 1, 2, 3], [20, 10, 5, 5]), np.arange(4), "pool"
        )
        assert counts.thresholds(0.9).tolist() == [19, 30, 40, 40]
        # Three examples are too few even together.
        assert self.thresholds("pool").tolist() == [19, 37, math.inf, math.inf]

    def test_classes_without_a_cluster_take_the_marginal_threshold(self):
        assert self.thresholds("marginal", (0, 0, NO_GROUP, 1)).tolist() == [35, 35, 37, 37]


def test_rare_classes_are_told_of_and_may_be_pooled():
    weights = np.array([0.01, 0.01, 0.01, 0.01, 0.48, 0.48])
    X, y = Overlapping(seed=1, weights=weights).draw(300)
    counts = np.bincount(y)
    assert (counts[:4] < 9).all()
    assert counts[:4].sum() >= 9
    sets = ConformalShortlist(GivenScores(6), 0.9, method="class_conditional")
    with pytest.warns(UserWarning, match="4 of 6 classes have fewer than 9 calibration examples"):
        sets.conformalize(X, y)
    assert sets.predict_set(X)[:, :4].sum() == 4 * len(y)
    sets.set_params(rare_classes="pool").conformalize(X, y)
    assert len(set(sets.threshold_[:4])) == 1
    assert sets.threshold_[0] == sets.calibration_scores_[y < 4].max()
