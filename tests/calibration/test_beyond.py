"""Calibration of the hinges beyond alpha and beta: linear programs, verdicts, counterexamples."""

from dataclasses import replace

import numpy as np
import pytest

from shortlist import losses
from shortlist.calibration import find_counterexample, is_topk_calibrated, regret_bound
from shortlist.calibration._families import infimum
from shortlist.calibration._minimise import risk_and_gradient
from tests.calibration.distributions import shortlists

WEIGHTS = (0.6, 0.4)
MARGINS = (0.2, 1.0, 1.0, 0.5)
BEYOND = {
    "printed": {"k": 2, "variant": "printed"},
    "ranks-alpha": {"variant": "alpha", "rank_weights": WEIGHTS},
    "ranks-beta": {"variant": "beta", "rank_weights": WEIGHTS},
    "margins": {"k": 2, "variant": "beta", "margins": MARGINS},
}


@pytest.mark.parametrize("name", BEYOND)
def test_linear_programs_are_the_limit_of_smooth_minimisation(name):
    """At most gamma/2 below, free and with a shortlist on top. The risk is that of the scores."""
    gamma = 1e-3
    hinge = losses.get("hinge", **BEYOND[name])
    smooth = losses.get("smooth_hinge", smoothing=gamma, **BEYOND[name])
    p = np.array([0.4, 0.3, 0.2, 0.1])
    for shortlist in (None, shortlists(4, 2)[3]):
        found = infimum(hinge, p, shortlist)
        near = infimum(smooth, p, shortlist)
        assert near.risk <= found.risk + found.accuracy
        assert found.risk <= near.risk + gamma / 2 + found.accuracy
        assert found.risk == pytest.approx(risk_and_gradient(hinge, found.scores, p)[0], abs=1e-8)


def test_a_loss_outside_the_table_is_minimised_from_a_smoother_one():
    known = losses.get("smooth_hinge", k=2, smoothing=1e-3)
    own = replace(known, name="a loss of one's own")
    p = np.array([0.4, 0.3, 0.2, 0.1])
    assert infimum(own, p).risk == infimum(known, p).risk


@pytest.mark.parametrize("name", ["printed", "ranks-alpha", "ranks-beta"])
def test_plain_hinges_fail_close_to_the_uniform_distribution(name):
    loss = losses.get("hinge", **BEYOND[name])
    for k in (1, 2, 3):
        p = [0.27, 0.26, 0.24, 0.23]
        assert not is_topk_calibrated(loss, p, k), k


def test_the_printed_hinge_fails_at_k_of_all_but_one():
    loss = losses.get("hinge", k=2, variant="printed")
    assert not is_topk_calibrated(loss, [0.42, 0.3, 0.28])


def test_a_mixture_is_calibrated_for_all_lengths_and_a_joint_loss_from_its_own_on():
    mixture = losses.get("smooth_hinge", variant="beta", rank_weights=WEIGHTS)
    joint = losses.get("smooth_hinge", variant="alpha", rank_weights=WEIGHTS)
    printed = losses.get("smooth_hinge", k=3, variant="printed")
    for loss, lengths in ((mixture, (1, 2, 3)), (joint, (2, 3)), (printed, (2, 3))):
        for k in lengths:
            found = find_counterexample(loss, k, n_classes=(4, 5), n_trials=12)
            assert not found.found, (loss.variant, k)
    # Below it fails where no more labels are possible than it has weights.
    assert not is_topk_calibrated(joint, [0.6, 0.4, 0.0, 0.0], 1)


@pytest.mark.parametrize("name", ["mixed_smooth_hinge", "mixed_entropy"])
def test_a_mixture_of_alphas_is_calibrated_from_its_smallest_k_on(name):
    from_one = losses.get(name, k=3)
    from_two = losses.get(name, rank_weights=losses.mixture_weights({2: 0.3, 3: 0.7}))
    for loss, lengths in ((from_one, (1, 2, 3)), (from_two, (2, 3))):
        for k in lengths:
            found = find_counterexample(loss, k, n_classes=(4, 5), n_trials=12)
            assert not found.found, (loss.rank_weights, k)
            bound = regret_bound(loss, 0.2, k=k, n_classes=4, n_random=4, n_descents=1)
            assert 0 < bound.proved <= bound.value
    # At most two possible labels and lists of one: all parts of k = 2 and 3 tend to zero.
    p = [0.6, 0.4, 0.0, 0.0]
    assert is_topk_calibrated(from_one, p, 1)
    assert not is_topk_calibrated(from_two, p, 1)
    # Theorem 3: with more possible labels than its smallest k it is calibrated there too.
    assert is_topk_calibrated(from_two, [0.5, 0.3, 0.2, 0.0], 1)


def test_margins_break_calibration():
    loss = losses.get("smooth_hinge", margins=MARGINS[:3])
    check = is_topk_calibrated(loss, [0.36, 0.34, 0.3], 1)
    assert not check
    assert check.scores.argmax() == 1
    equal = losses.get("smooth_hinge", margins=[2.0, 2.0, 2.0])
    assert is_topk_calibrated(equal, [0.36, 0.34, 0.3], 1)
    with pytest.raises(ValueError, match="must treat them alike"):
        regret_bound(loss, 0.1, n_classes=3)
