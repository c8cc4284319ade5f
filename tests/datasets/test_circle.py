"""The circle's sampler against the distribution it states, and the choice of its segments' mass."""

from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from scipy import stats

from shortlist.datasets import (
    circle_bayes_accuracy,
    circle_class_probabilities,
    circle_segment,
    make_circle,
)
from shortlist.experiments import paper

LENGTHS = np.array([1, 1, 1, 3, 1])
PROBABILITIES = np.array([[0, 1, 0.4, 0.3, 0], [1, 0, 0.1, 0.7, 0], [0, 0, 0.5, 0, 1]])
N = 50_000


@pytest.fixture(scope="module")
def sample():
    return make_circle(N, random_state=0)


def positions(X):
    """Return where on [0, 7] each point lies."""
    return np.mod(np.arctan2(X[:, 1], X[:, 0]), 2 * np.pi) * 7 / (2 * np.pi)


def test_points_lie_on_the_unit_circle(sample):
    X, y = sample
    assert X.shape == (N, 2)
    np.testing.assert_allclose(np.hypot(*X.T), 1, rtol=1e-12)
    assert set(y.tolist()) == {0, 1, 2}


def test_segments_have_equal_mass(sample):
    segment = np.digitize(positions(sample[0]), np.cumsum(LENGTHS))
    assert stats.chisquare(np.bincount(segment, minlength=5)).pvalue > 1e-4


def test_points_are_uniform_within_each_segment(sample):
    t = positions(sample[0])
    for start, length in zip(np.cumsum(LENGTHS) - LENGTHS, LENGTHS, strict=True):
        inside = t[(t >= start) & (t < start + length)]
        assert stats.kstest((inside - start) / length, "uniform").pvalue > 1e-4


def test_classes_of_each_segment_have_the_papers_probabilities(sample):
    X, y = sample
    segment = np.digitize(positions(X), np.cumsum(LENGTHS))
    for s in range(5):
        counts = np.bincount(y[segment == s], minlength=3)
        possible = PROBABILITIES[:, s] > 0
        assert counts[~possible].sum() == 0
        if possible.sum() > 1:
            expected = PROBABILITIES[possible, s] * counts.sum()
            assert stats.chisquare(counts[possible], expected).pvalue > 1e-4


def test_class_does_not_depend_on_the_place_within_a_segment(sample):
    X, y = sample
    t = positions(X)
    fourth = (t >= 3) & (t < 6)
    first_half, second_half = y[fourth & (t < 4.5)] == 0, y[fourth & (t >= 4.5)] == 0
    assert abs(first_half.mean() - second_half.mean()) < 0.04


def test_class_probabilities_of_points(sample):
    X, _ = sample
    t = positions(X[:1000])
    segment = np.digitize(t, np.cumsum(LENGTHS))
    np.testing.assert_array_equal(circle_segment(X[:1000]), segment)
    np.testing.assert_array_equal(circle_class_probabilities(X[:1000]), PROBABILITIES[:, segment].T)


@pytest.mark.parametrize(("k", "expected"), [(1, 0.84), (2, 0.98), (3, 1.0)])
def test_bayes_accuracy(sample, k, expected):
    assert circle_bayes_accuracy(k) == pytest.approx(expected, abs=1e-12)
    X, y = sample
    best = np.argsort(-circle_class_probabilities(X), axis=1)[:, :k]
    measured = np.mean((best == y[:, None]).any(axis=1))
    assert measured == pytest.approx(expected, abs=4 * np.sqrt(0.25 / N))


@pytest.mark.parametrize("k", [0, 4])
def test_bayes_accuracy_refuses_other_k(k):
    with pytest.raises(ValueError, match="between 1 and 3"):
        circle_bayes_accuracy(k)


def test_seeds():
    first, again, other = (make_circle(50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, True])
def test_refuses_other_sizes(n_samples):
    with pytest.raises(ValueError, match="positive integer"):
        make_circle(n_samples)


def best_linear_accuracy(mass, k):
    """Best top-k accuracy (k = 1, 2) of a linear classifier through the origin, by enumeration.

    Three linear scores cut the circle into at most three arcs of at most half a turn, one for
    each class that is best (k = 1) or worst (k = 2). The accuracy is linear in the arcs' ends
    between the segments' ends and their opposites, so multiples of half a unit suffice.
    """
    cells = 14
    segment = np.digitize((np.arange(cells) + 0.5) / 2, np.cumsum(LENGTHS))
    joint = PROBABILITIES[:, segment] * (mass / LENGTHS)[segment] / 2
    gain = joint if k == 1 else joint.sum(axis=0) - joint
    at = np.arange(cells)
    best = 0.0
    for a, b, c in combinations_with_replacement(range(cells), 3):
        if max(b - a, c - b, cells - (c - a)) <= cells // 2:
            arc = np.where((at >= a) & (at < b), 0, np.where((at >= b) & (at < c), 1, 2))
            for order in permutations(range(3)):
                best = max(best, gain[np.array(order)[arc], at].sum())
    return best


def test_only_equal_mass_allows_what_the_paper_reports():
    reported = paper.accuracy("circle", "smooth-topk-svm:1", 1) / 100
    by_length = best_linear_accuracy(LENGTHS / 7, 1)
    equal = best_linear_accuracy(np.full(5, 0.2), 1)
    assert by_length < reported < equal
    assert by_length == pytest.approx(4.5 / 7)
    assert equal == pytest.approx(0.71)
    assert best_linear_accuracy(np.full(5, 0.2), 2) == pytest.approx(circle_bayes_accuracy(2))
