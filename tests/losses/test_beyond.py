"""Beyond alpha and beta: the printed hinge, weights of ranks, margins, and their special cases."""

import pickle

import numpy as np
import pytest

from shortlist import losses
from shortlist.losses import ldam_margins, mixture_weights


def scores_and_labels(m, n=40, scale=2.0):
    """Half of the scores whole numbers, so that ties occur."""
    rng = np.random.default_rng(m)
    f = scale * rng.normal(size=(n, m))
    f[::2] = np.round(f[::2])
    return f, rng.integers(0, m, size=n)


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize(("m", "k"), [(4, 1), (6, 3), (6, 5), (200, 40)])
def test_equal_weights_are_the_topk_hinges(m, k, variant):
    f, y = scores_and_labels(m)
    plain, ordered = (
        losses.get("hinge", k=k, variant=variant, rank_weights=weights)
        for weights in (None, np.ones(k))
    )
    np.testing.assert_allclose(ordered.value(f, y), plain.value(f, y), rtol=1e-13, atol=1e-13)
    smooth, smooth_ordered = (
        losses.get("smooth_hinge", k=k, variant=variant, smoothing=0.3, rank_weights=weights)
        for weights in (None, np.ones(k))
    )
    np.testing.assert_allclose(smooth_ordered.value(f, y), smooth.value(f, y), atol=1e-13)
    np.testing.assert_allclose(smooth_ordered.gradient(f, y), smooth.gradient(f, y), atol=1e-13)
    for eta in (1e-6, 0.3, 100.0):
        expected = smooth.dual_step(f, y, eta)
        np.testing.assert_allclose(smooth_ordered.dual_step(f, y, eta), expected, atol=1e-13)


def test_a_mixture_of_beta_hinges_is_one_loss():
    f, y = scores_and_labels(9)
    shares = {1: 0.5, 3: 0.2, 5: 0.3}
    weights = mixture_weights(shares)
    np.testing.assert_allclose(weights.sum(), 1.0)
    mixture = losses.get("hinge", variant="beta", rank_weights=weights).value(f, y)
    parts = [s * losses.get("hinge", k=k, variant="beta").value(f, y) for k, s in shares.items()]
    np.testing.assert_allclose(mixture, np.sum(parts, axis=0), rtol=1e-13, atol=1e-14)
    # It bounds the mean of the top-k errors with these shares.
    own = f[np.arange(len(y)), y]
    errors = [s * (np.sort(f, axis=1)[:, -k] > own) for k, s in shares.items()]
    assert (mixture >= np.sum(errors, axis=0) - 1e-13).all()
    # Conversely, weights that do not increase are a mixture.
    ranks = np.sort(np.random.default_rng(0).random(6))[::-1]
    found = {k + 1: (k + 1) * drop for k, drop in enumerate(ranks - np.append(ranks[1:], 0.0))}
    np.testing.assert_allclose(mixture_weights(found), ranks)


def test_a_mixture_of_alpha_hinges_is_not_their_joint_loss():
    """The alphas keep a positive part each; the joint loss has one, and is never larger."""
    f, y = scores_and_labels(9)
    weights = mixture_weights({1: 0.5, 4: 0.5})
    joint = losses.get("hinge", variant="alpha", rank_weights=weights).value(f, y)
    parts = [0.5 * losses.get("hinge", k=k, variant="alpha").value(f, y) for k in (1, 4)]
    excess = np.sum(parts, axis=0) - joint
    assert excess.min() >= -1e-13
    assert excess.max() > 0.1


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({}, "shares of a mixture"),
        ({1.5: 1.0}, "every k of a mixture must be an integer"),
        ({0: 1.0}, "1 or larger; got 0"),
        ({2: -1.0}, "the share of k=2 must be zero or larger"),
        ({2: 0.0}, "not all zero"),
    ],
)
def test_mixtures_that_are_none(shares, message):
    with pytest.raises(ValueError, match=message):
        mixture_weights(shares)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge"])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_printed_lies_between_alpha_and_beta(name, k):
    f, y = scores_and_labels(8, n=200)
    alpha, printed, beta = (
        losses.get(name, k=k, variant=variant).value(f, y)
        for variant in ("alpha", "printed", "beta")
    )
    assert (alpha <= printed + 1e-13).all()
    assert (printed <= beta + 1e-13).all()
    assert (printed > alpha + 0.01).any()
    if k > 2:
        assert (printed < beta - 0.01).any()
    one = losses.get(name, k=1, variant="printed")
    np.testing.assert_array_equal(one.value(f, y), losses.get(name).value(f, y))


def test_the_paper_s_example_of_the_printed_formula():
    """Margins 3 and -5 at k = 2: the label's zero stands in for the -5."""
    assert losses.get("hinge", k=2, variant="printed").value([0.0, 2.0, -6.0], 0) == 1.5


@pytest.mark.parametrize("parameters", [{"k": 2}, {"k": 2, "variant": "printed"}])
def test_margins_are_units_of_the_scores(parameters):
    """All margins c: c times the hinge at the scores over c. Margins of 1 are the hinge."""
    f, y = scores_and_labels(5)
    plain = losses.get("hinge", **parameters)
    for c in (1.0, 0.25, 3.0):
        scaled = losses.get("hinge", margins=np.full(5, c), **parameters)
        np.testing.assert_allclose(scaled.value(f, y), c * plain.value(f / c, y), rtol=1e-13)


def test_margins_of_classes_are_those_of_pairs_with_equal_rows():
    f, y = scores_and_labels(5)
    margins = np.array([0.5, 2.0, 1.0, 0.0, 1.5])
    classes, pairs = (
        losses.get("smooth_hinge", k=2, margins=table)
        for table in (margins, np.repeat(margins[:, None], 5, axis=1))
    )
    np.testing.assert_allclose(classes.value(f, y), pairs.value(f, y), atol=1e-13)
    np.testing.assert_allclose(classes.gradient(f, y), pairs.gradient(f, y), atol=1e-13)
    v = classes.gradient(f, y)
    np.testing.assert_allclose(classes.conjugate(v, y), pairs.conjugate(v, y), atol=1e-13)
    expected = pairs.dual_step(f, y, 0.7)
    np.testing.assert_allclose(classes.dual_step(f, y, 0.7), expected, atol=1e-13)
    assert not classes.labels_alike
    np.testing.assert_allclose(classes.values_at_zero(5), classes.value(np.zeros((5, 5)), range(5)))


def test_costs_bound_the_cost_of_the_decision():
    """max_j c_yj + u_j is at least c_yj of the label with the largest score."""
    f, y = scores_and_labels(5, n=200)
    costs = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    value = losses.get("hinge", margins=costs).value(f, y)
    assert (value >= costs[y, f.argmax(axis=1)] - 1e-13).all()


def test_ldam_margins():
    np.testing.assert_allclose(ldam_margins([16, 1, 81]), [1 / 2, 1.0, 1 / 3])
    np.testing.assert_allclose(ldam_margins([32.0, 0.0, 2.0]), [1 / 2, 1.0, 1.0])
    for totals in ([0, 0], [-1, 2], [[1, 2]], [np.nan, 1]):
        with pytest.raises(ValueError, match="totals must be numbers of examples"):
            ldam_margins(totals)


def test_losses_with_arrays_are_compared_hashed_and_pickled():
    one, same, other = (
        losses.get("hinge", margins=[1, 2, 3], rank_weights=[2, last]) for last in (1, 1, 2)
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != losses.get("hinge", margins=[1, 2, 4], rank_weights=[2, 1])
    assert one != losses.get("hinge")
    assert pickle.loads(pickle.dumps(one)) == one
    smoothed = one.smoother(0.5)
    assert smoothed.smooth
    np.testing.assert_array_equal(smoothed.margins, one.margins)
