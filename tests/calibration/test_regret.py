"""Regret bounds against an exhaustive grid, closed forms, and what is proved."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.calibration import (
    bayes_risk,
    bayes_topk_error,
    expected_loss,
    regret_bound,
    worst_topk_error,
)
from shortlist.calibration._families import infimum
from shortlist.calibration._theorems import proved_excess_risk
from tests.calibration.distributions import describe

LOSSES = [
    losses.get("softmax"),
    losses.get("entropy", k=2),
    losses.get("entropy", k=2, variant="beta"),
    losses.get("truncated_entropy", k=2),
    losses.get("smooth_hinge", smoothing=0.3),
    losses.get("smooth_hinge", smoothing=3.0),
    losses.get("smooth_hinge", k=2, variant="beta", smoothing=2.0),
    losses.get("smooth_hinge", k=2, variant="alpha", smoothing=4.0),
    losses.get("smooth_hinge", k=2, variant="printed", smoothing=2.0),
    losses.get("smooth_hinge", k=2, variant="beta", smoothing=2.0, rank_weights=(0.6, 0.4)),
    losses.get("smooth_hinge", k=2, variant="alpha", smoothing=2.0, rank_weights=(0.6, 0.4)),
    losses.get("ova_logistic"),
    losses.get("ova_smooth_hinge", smoothing=0.5),
    losses.get("hinge"),
    losses.get("hinge", k=2, variant="printed"),
]


def excess_on_a_grid(loss, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Excess error and excess risk of the shortlist of the first k labels, for all p on a grid.

    Every shortlist is this one after renaming; labels of the same kind are taken in order.
    """
    listed = np.arange(3) < loss.k
    errors, risks = [], []
    for first in range(n + 1):
        for second in range(n + 1 - first):
            p = np.array([first, second, n - first - second]) / n
            excess = 1 - p[listed].sum() - bayes_topk_error(p, loss.k)
            in_order = p[0] >= p[1] if loss.k == 2 else p[1] >= p[2]
            if in_order and excess > 1e-9:
                errors.append(excess)
                risks.append(infimum(loss, p, listed).risk - infimum(loss, p).risk)
    return np.array(errors), np.array(risks)


@pytest.mark.parametrize("loss", LOSSES, ids=describe)
def test_three_classes_against_a_grid_of_all_distributions(loss):
    # The bounds of these change more quickly with p.
    beyond = loss.variant == "printed" or loss.rank_weights is not None
    errors, risks = excess_on_a_grid(loss, n=20 if beyond else 10)
    for epsilon in (0.2, 0.6):
        bound = regret_bound(loss, epsilon, n_classes=3, n_random=4, n_descents=1)
        on_grid = risks[errors >= epsilon - 1e-9].min()
        assert bound.value <= on_grid + 1e-9
        # What lies between the points of the grid is not worth more than this.
        assert bound.value >= on_grid * 0.6
        assert bound.proved <= bound.value


@pytest.mark.parametrize("loss", LOSSES, ids=describe)
def test_the_witness_has_this_excess_error_and_risk(loss):
    bound = regret_bound(loss, 0.3, n_classes=4, n_random=4, n_descents=1)
    error = worst_topk_error(bound.scores, bound.p, loss.k)
    assert error - bayes_topk_error(bound.p, loss.k) >= 0.3 - 1e-12
    scores = np.clip(bound.scores, -100, 100)
    excess = expected_loss(loss, scores, bound.p) - bayes_risk(loss, bound.p)
    assert excess == pytest.approx(bound.value, abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_two_labels_are_the_worst_for_softmax_and_logistic(epsilon):
    halves = np.array([1 + epsilon, 1 - epsilon]) / 2
    divergence = np.log(2) + (halves * np.log(halves)).sum()
    softmax = regret_bound("softmax", epsilon, n_classes=4)
    assert softmax.value == pytest.approx(divergence, rel=1e-9)
    # Theorem 1 is sharp: the divergence is epsilon^2/2 + epsilon^4/12 + ...
    assert softmax.proved == pytest.approx(epsilon**2 / 2)
    assert softmax.proved < softmax.value < softmax.proved * (1 + epsilon**2 / 2)
    assert regret_bound("ova_logistic", epsilon).value == pytest.approx(2 * divergence, rel=1e-9)
    np.testing.assert_allclose(np.sort(softmax.p)[2:], np.sort(halves), atol=1e-9)


@pytest.mark.parametrize("smoothing", [0.25, 0.5, 2.0, 4.0])
def test_smooth_multiclass_hinge_is_best_at_smoothing_one(smoothing):
    at_one = regret_bound(losses.get("smooth_hinge"), 0.1, n_classes=3).value
    bound = regret_bound(losses.get("smooth_hinge", smoothing=smoothing), 0.1, n_classes=3)
    assert bound.value < at_one
    # For small errors, of three classes.
    limit = 9 / 8 * smoothing if smoothing < 1 else 2 / (5 * smoothing)
    assert bound.value == pytest.approx(limit * 0.1**2, rel=0.2)


def excess_of_a_tie(loss, p):
    """What it costs to list label 1 instead of label 0."""
    listed = np.arange(len(p)) == 1
    return infimum(loss, np.array(p), listed).risk - infimum(loss, np.array(p)).risk


@pytest.mark.parametrize("m", [3, 4, 6])
def test_the_limits_for_small_errors_are_approached(m):
    epsilon, others = 1e-3, m - 2
    for smoothing in (0.2, 0.9):
        loss = losses.get("smooth_hinge", smoothing=smoothing)
        uniform = [1 / m + epsilon / 2, 1 / m - epsilon / 2, *[1 / m] * others]
        limit = smoothing * m**2 / (4 * (m - 1) * (m - 2))
        assert excess_of_a_tie(loss, uniform) == pytest.approx(limit * epsilon**2, rel=1e-2)
    for smoothing in (1.5, 2.0, 5.0):
        loss = losses.get("smooth_hinge", smoothing=smoothing)
        limit = 2 / (smoothing * (m + 2))
        # Probable enough that their shares stay above zero along the change.
        rare = 3 * 2 * epsilon / ((m + 2) * smoothing)
        half = (1 - others * rare) / 2
        p = [half + epsilon / 2, half - epsilon / 2, *[rare] * others]
        excess = excess_of_a_tie(loss, p)
        assert excess == pytest.approx(limit * epsilon**2, rel=2e-2)
        if smoothing >= 2:
            proved = proved_excess_risk(loss, epsilon, 1, m)
            assert proved == pytest.approx(limit * epsilon**2, rel=1e-12)
            assert excess >= proved - 1e-14


def test_plain_hinges_have_none_for_small_errors():
    for loss in (losses.get("hinge"), losses.get("hinge", k=2), losses.get("ova_hinge")):
        assert regret_bound(loss, 0.1, n_random=0, n_descents=0).value <= 2e-8
    # Below a half the multiclass hinge may be constant.
    assert regret_bound("hinge", 0.6, n_random=4, n_descents=1).value > 0.1


@pytest.mark.parametrize("epsilon", [0.1, 0.6])
def test_alpha_hinge_at_the_largest_k_costs_the_excess_error(epsilon):
    bound = regret_bound(losses.get("hinge", k=2), epsilon, n_classes=3, n_random=4, n_descents=1)
    assert bound.value == pytest.approx(epsilon, abs=1e-8)


def test_a_longer_list_than_the_loss_is_made_for():
    bound = regret_bound("softmax", 0.2, k=2, n_random=4, n_descents=1)
    assert bound.k == 2
    # Two pairs of labels take the place of the two labels at k = 1.
    assert bound.proved < bound.value <= regret_bound("softmax", 0.2).value + 1e-12


def test_curves_increase():
    values = [
        regret_bound(losses.get("entropy", k=2), e, n_random=0, n_descents=1).value
        for e in (0.1, 0.3, 0.6)
    ]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must lie above 0"),
        ({"epsilon": 1.5}, "at most at 1, got 1.5"),
        ({"epsilon": 0.1, "k": 4}, "all 4 classes cannot be wrong"),
        ({"epsilon": 0.1, "k": 5}, r"k must lie between 1 and 4 \(the number of classes\); got 5"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        regret_bound("softmax", **options)
