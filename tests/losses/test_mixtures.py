"""Mixtures over k: sums of their parts, from shares to weights of ranks and back."""

import pickle

import numpy as np
import pytest

from shortlist import losses
from shortlist.losses.mixture import equal_shares, shares_by_k
from tests.losses.test_beyond import scores_and_labels

NAMES = {"mixed_smooth_hinge": "smooth_hinge", "mixed_entropy": "entropy"}


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shares", [{1: 0.5, 4: 0.5}, {2: 0.2, 3: 0.3, 7: 0.5}])
def test_a_mixture_is_the_sum_of_its_parts(name, variant, shares):
    f, y = scores_and_labels(9)
    weights = losses.mixture_weights(shares)
    mixed = losses.get(name, variant=variant, smoothing=0.7, rank_weights=weights)
    parts = [
        (share, losses.get(NAMES[name], k=k, variant=variant, smoothing=0.7))
        for k, share in shares.items()
    ]
    value = sum(share * part.value(f, y) for share, part in parts)
    gradient = sum(share * part.gradient(f, y) for share, part in parts)
    np.testing.assert_allclose(mixed.value(f, y), value, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(mixed.gradient(f, y), gradient, atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_without_weights_every_length_up_to_k_has_an_equal_share(k):
    found = shares_by_k(equal_shares(k))
    assert list(found) == list(range(1, k + 1))
    np.testing.assert_allclose(list(found.values()), 1 / k, rtol=1e-12)
    np.testing.assert_allclose(equal_shares(k), losses.mixture_weights(dict.fromkeys(found, 1 / k)))


def test_shares_are_those_of_the_weights():
    shares = {1: 0.125, 3: 0.5, 10: 0.375}
    found = shares_by_k(losses.mixture_weights(shares))
    assert list(found) == list(shares)
    np.testing.assert_allclose(list(found.values()), list(shares.values()), rtol=1e-12)
    # Weights that differ by rounding only leave no share between them.
    assert list(shares_by_k(np.full(7, 1 / 7) * (1 + 1e-16 * np.arange(7, 0, -1)))) == [7]


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("name", NAMES)
def test_a_mixture_of_one_part_is_that_part(name, variant):
    f, y = scores_and_labels(6)
    for k in (1, 3):
        alone = losses.get(name, variant=variant, rank_weights=np.ones(k))
        part = losses.get(NAMES[name], k=k, variant=variant)
        assert alone.has_dual_step
        np.testing.assert_array_equal(alone.gradient(f, y), part.gradient(f, y))
        np.testing.assert_array_equal(alone.dual_step(f, y, 0.5), part.dual_step(f, y, 0.5))
    assert losses.get(name).has_probabilities == losses.get(NAMES[name]).has_probabilities
    assert not losses.get(name, k=2).has_probabilities


@pytest.mark.parametrize("name", ["mixed_smooth_hinge", "smooth_hinge"])
def test_smoothing_is_chosen_anew(name):
    loss = losses.get(name, k=3, smoothing=1.0)
    assert loss.with_smoothing(0.5) == losses.get(name, k=3, smoothing=0.5)
    assert loss.smoother is None  # it is smooth
    assert losses.get("mixed_entropy", k=3).with_smoothing is None


@pytest.mark.parametrize("name", NAMES)
def test_a_mixture_has_no_dual_step(name):
    mixed = losses.get(name, k=3)
    assert mixed.convex
    assert mixed.smooth
    assert not mixed.has_dual_step
    for call in (lambda: mixed.dual_step(np.zeros(5), 0, 1.0), lambda: mixed.conjugate(5 * [0], 0)):
        with pytest.raises(TypeError, match=rf"{name} has no [a-z ]+ here, only a value"):
            call()
    assert pickle.loads(pickle.dumps(mixed)) == mixed
    assert mixed != losses.get(name, k=4)
    assert mixed != losses.get(name, k=3, rank_weights=[3, 2, 1])


def test_how_far_a_mixture_of_smooth_betas_is_below_that_of_plain_ones():
    """Each part is below its hinge by gamma/(2k) at most."""
    f, y = scores_and_labels(9)
    weights = losses.mixture_weights({1: 0.5, 4: 0.5})
    mixed, plain = (
        losses.get(name, variant="beta", rank_weights=weights, smoothing=0.5).value(f, y)
        for name in ("mixed_smooth_hinge", "hinge")
    )
    assert (mixed <= plain + 1e-13).all()
    assert (plain - mixed <= 0.5 * (0.5 / 2 + 0.5 / 8) + 1e-13).all()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("mixed_smooth_hinge", {"smoothing": 0}, r"smoothing must be larger than 0: a mixture"),
        ("mixed_smooth_hinge", {"margins": [1, 2, 3]}, "margins are for the losses hinge and"),
        ("mixed_entropy", {"variant": "printed"}, "variant"),
        ("mixed_entropy", {"k": 2, "multilabel": True}, "takes one right label per example"),
        ("mixed_entropy", {"rank_weights": [1, 2]}, "must not increase"),
        ("entropy", {"rank_weights": [2, 1]}, "rank_weights are for the losses .*mixed_entropy"),
    ],
)
def test_what_a_mixture_refuses(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        losses.get(name, **parameters)


def test_classes_are_enough_for_every_part():
    mixed = losses.get("mixed_entropy", rank_weights=losses.mixture_weights({1: 0.5, 4: 0.5}))
    with pytest.raises(ValueError, match="rank_weights may hold at most 3 positive numbers"):
        mixed.value(np.zeros(4), 0)
    with pytest.raises(ValueError, match="k must lie between 1 and"):
        losses.get("mixed_entropy", k=4).value(np.zeros(4), 0)
