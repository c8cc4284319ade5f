"""Bad input is refused in the user's terms: the parameter, and what is allowed."""

import numpy as np
import pytest

from shortlist import losses
from tests.instances import INSTANCES, Instance, by_id

SCORES = np.zeros((3, 4))
LABELS = np.array([0, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "hinges"}, ValueError, r"unknown loss 'hinges'; choose one of .*smooth_hinge"),
        ({"name": None}, TypeError, r"by name"),
        ({"name": "hinge", "k": 0}, ValueError, r"k must be 1 or larger; got 0"),
        ({"name": "hinge", "k": -3}, ValueError, r"k must be 1 or larger; got -3"),
        ({"name": "hinge", "k": 1.5}, TypeError, r"k must be an integer; got 1.5"),
        ({"name": "hinge", "k": True}, TypeError, r"k must be an integer; got True"),
        ({"name": "softmax", "k": 2}, ValueError, r"softmax .* k=1; got k=2"),
        (
            {"name": "hinge", "variant": "gamma"},
            ValueError,
            r"variant must be 'alpha', 'beta' or 'printed'; got 'gamma'",
        ),
        (
            {"name": "entropy", "variant": "printed"},
            ValueError,
            r"variant must be 'alpha' or 'beta'",
        ),
        (
            {"name": "entropy", "margins": [1, 2]},
            ValueError,
            r"margins are for the losses hinge and smooth_hinge; got 'entropy'",
        ),
        (
            {"name": "ova_hinge", "rank_weights": [1, 1]},
            ValueError,
            r"rank_weights are for the losses hinge, smooth_hinge, mixed_smooth_hinge and "
            r"mixed_entropy; got 'ova_hinge'",
        ),
        (
            {"name": "hinge", "margins": [1, 2], "multilabel": True},
            ValueError,
            r"margins, .* are for one right label",
        ),
        (
            {"name": "hinge", "variant": "printed", "rank_weights": [1]},
            ValueError,
            r"rank_weights go with variant 'alpha' or 'beta'",
        ),
        (
            {"name": "hinge", "margins": [[1, 2, 3]]},
            ValueError,
            r"margins must be numbers.*\(1, 3\)",
        ),
        ({"name": "hinge", "margins": ["a", "b"]}, ValueError, r"margins must be numbers"),
        ({"name": "hinge", "margins": [1, -1]}, ValueError, r"margins must be .*zero or larger"),
        ({"name": "hinge", "margins": [1, np.nan]}, ValueError, r"margins must be finite"),
        ({"name": "hinge", "margins": np.eye(3)}, ValueError, r"margins .* not all zero"),
        ({"name": "hinge", "rank_weights": [1, 2]}, ValueError, r"rank_weights must not increase"),
        (
            {"name": "smooth_hinge", "smoothing": -1.0},
            ValueError,
            r"smoothing must be .*; got -1.0",
        ),
        (
            {"name": "smooth_hinge", "smoothing": np.nan},
            ValueError,
            r"smoothing must be .*; got nan",
        ),
        (
            {"name": "smooth_hinge", "smoothing": np.inf},
            ValueError,
            r"smoothing must be .*; got inf",
        ),
        ({"name": "smooth_hinge", "smoothing": "1"}, ValueError, r"smoothing must be .*; got '1'"),
    ],
)
def test_get(arguments, error, message):
    with pytest.raises(error, match=message):
        losses.get(**arguments)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge", "entropy", "truncated_entropy"])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_k_reaches_up_to_the_number_of_classes_less_one(name, m):
    losses.get(name, k=m - 1).value(np.zeros(m), 0)
    with pytest.raises(ValueError, match=rf"k must lie between 1 .* {m - 1}; got k={m}"):
        losses.get(name, k=m).value(np.zeros(m), 0)


def test_margins_and_weights_suit_the_number_of_classes():
    with pytest.raises(ValueError, match=r"at most 3 positive numbers.* got 4 with 4 classes"):
        losses.get("hinge", rank_weights=[4, 3, 2, 1]).value(np.zeros(4), 0)
    losses.get("hinge", rank_weights=[4, 3, 2, 0, 0]).value(np.zeros(4), 0)
    with pytest.raises(ValueError, match=r"margins are for 3 classes; there are 4"):
        losses.get("hinge", margins=[1, 1, 1]).value(np.zeros(4), 0)


def test_one_vs_all_losses_do_not_depend_on_k():
    for name in ("ova_hinge", "ova_smooth_hinge", "ova_logistic"):
        assert losses.get(name, k=9).value([0.5, -0.25], 0) == losses.get(name).value(
            [0.5, -0.25], 0
        )


@pytest.mark.parametrize(
    ("scores", "y", "error", "message"),
    [
        (np.zeros(1), 0, ValueError, r"at least 2 classes; got 1"),
        (np.zeros((2, 3, 4)), 0, ValueError, r"scores must have shape \(m,\) or \(n, m\)"),
        (3.0, 0, ValueError, r"scores must have shape"),
        (SCORES, 0, ValueError, r"y must have shape \(3,\) to match scores; got \(\)"),
        (SCORES, LABELS[:2], ValueError, r"y must have shape \(3,\) .* got \(2,\)"),
        (SCORES[0], LABELS, ValueError, r"y must have shape \(\)"),
        (SCORES, [0, 1, 4], ValueError, r"y must lie between 0 and 3.* from 0 to 4"),
        (SCORES, [0, -1, 2], ValueError, r"y must lie between 0 and 3.* from -1 to 2"),
        (SCORES, [0.5, 1, 2], TypeError, r"y must be integer labels"),
        (SCORES, [np.nan, 1, 2], TypeError, r"y must be integer labels"),
        (SCORES, ["a", "b", "c"], TypeError, r"y must be integer labels"),
        (SCORES + 1j, LABELS, TypeError, r"scores must be real numbers"),
        ([["a", "b"]], [0], TypeError, r"scores must be real numbers"),
        (np.full((3, 4), np.nan), LABELS, ValueError, r"scores must be finite.* NaN"),
        (np.full((3, 4), np.inf), LABELS, ValueError, r"scores must be finite.* infinite"),
    ],
)
def test_scores_and_labels(scores, y, error, message):
    loss = losses.get("hinge", k=1)
    for method in (loss.value, loss.gradient, loss.value_and_gradient):
        with pytest.raises(error, match=message):
            method(scores, y)


def test_dual_points_and_residual_scores():
    loss = losses.get("hinge", k=1)
    with pytest.raises(ValueError, match=r"v must be finite.* NaN"):
        loss.conjugate([0.0, np.nan], 0)
    with pytest.raises(ValueError, match="q must be finite"):
        loss.dual_step([0.0, np.inf], 0, 1.0)
    with pytest.raises(ValueError, match=r"v must have shape"):
        loss.conjugate(0.0, 0)


@pytest.mark.parametrize(
    ("eta", "message"),
    [
        (-1.0, "eta must be finite and zero or larger"),
        (np.nan, "eta must be finite"),
        (np.inf, "eta must be finite"),
        ([1.0, 2.0], r"eta must be a number or have shape \(3,\); got \(2,\)"),
    ],
)
def test_eta(eta, message):
    with pytest.raises(ValueError, match=message):
        losses.get("hinge").dual_step(SCORES, LABELS, eta)


def test_truncated_entropy_says_it_has_no_dual():
    loss = losses.get("truncated_entropy", k=2)
    assert not loss.convex
    with pytest.raises(TypeError, match=r"truncated_entropy has no conjugate here.*by a descent"):
        loss.conjugate(np.zeros(4), 0)
    with pytest.raises(TypeError, match=r"truncated_entropy has no dual step here"):
        loss.dual_step(np.zeros(4), 0, 1.0)
    # At k = 1 it is softmax, which has both.
    np.testing.assert_array_equal(
        losses.get("truncated_entropy", k=1).dual_step(SCORES, LABELS, 1.0),
        losses.get("softmax").dual_step(SCORES, LABELS, 1.0),
    )


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_a_loss_knows_its_parameters(row):
    loss = row.loss()
    assert (loss.name, loss.convex, loss.smooth) == (
        row.name,
        row.convex,
        row.smooth or row.id == "truncated_entropy-m5-k1",
    )
    assert loss.k == row.k
    assert loss.smoothing == row.smoothing


def test_a_loss_is_immutable():
    with pytest.raises(AttributeError):
        Instance("hinge", m=3).loss().k = 2
