"""The check of top-k calibration: the paper's propositions, its evidence, the table, bad input."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.calibration import (
    bayes_optimal_scores,
    bayes_risk,
    bayes_topk_error,
    calibration_table,
    expected_loss,
    is_bayes_optimal,
    is_topk_calibrated,
    optimal_shortlists,
)
from tests.calibration.distributions import distributions


class TestPropositionsOfThePaper:
    @pytest.mark.parametrize("k", [1, 2])
    def test_ova_svm_is_not_calibrated(self, k):
        check = is_topk_calibrated("ova_hinge", [0.4, 0.3, 0.3], k)
        assert not check
        assert check.gap == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(check.witness, [-1, -1, -1], atol=1e-9)
        assert check.excess_error == pytest.approx(0.1)

    @pytest.mark.parametrize("p", distributions(4), ids=str)
    def test_ova_logistic_softmax_and_smooth_ova_svm_are_calibrated(self, p):
        calibrated = [losses.get("ova_logistic"), losses.get("softmax")]
        calibrated += [losses.get("ova_smooth_hinge", smoothing=g) for g in (0.3, 1.0, 2.0)]
        for loss in calibrated:
            # Strictly increasing in p, hence calibrated for every k at once.
            np.testing.assert_array_equal(np.argsort(bayes_optimal_scores(loss, p)), np.argsort(p))
            for k in (1, 2, 3, 4):
                assert is_topk_calibrated(loss, p, k)

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_multiclass_svm_is_not_calibrated(self, k):
        undecided = is_topk_calibrated("hinge", [0.45, 0.3, 0.15, 0.1], k)
        assert not undecided
        assert undecided.risk == pytest.approx(1)
        np.testing.assert_allclose(undecided.witness, 0, atol=1e-9)
        # With a majority label the top-1 prediction is right, and nothing beyond it.
        majority = is_topk_calibrated("hinge", [0.6, 0.25, 0.1, 0.05], k)
        assert bool(majority) == (k == 1)
        assert majority.risk == pytest.approx(2 * (1 - 0.6))

    @pytest.mark.parametrize("p", distributions(5, 4), ids=str)
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_truncated_entropy_is_calibrated_from_its_k_on(self, k, p):
        loss = losses.get("truncated_entropy", k=k)
        for s in range(k, 6):
            assert is_topk_calibrated(loss, p, s)
        # The k - 1 labels at infinity are the right ones, in no particular order.
        for s in range(1, k):
            assert bool(is_topk_calibrated(loss, p, s)) == (s == k - 1)

    def test_labels_of_probability_zero(self):
        p = [0.5, 0.3, 0.2, 0.0]
        for name in ("softmax", "ova_logistic", "ova_smooth_hinge"):
            for k in (1, 2, 3):
                assert is_topk_calibrated(name, p, k)
        assert not is_topk_calibrated("ova_hinge", p, 2)


def test_check_returns_its_evidence():
    check = is_topk_calibrated("softmax", [0.5, 0.3, 0.2], 2)
    assert check.calibrated is True
    assert check.risk == pytest.approx(bayes_risk("softmax", check.p))
    # The cheapest wrong scores tie the second and the third label.
    assert check.witness[1] == check.witness[2]
    assert check.wrong_risk == pytest.approx(expected_loss("softmax", check.witness, check.p))
    assert check.gap > 1e-3
    assert (check.bayes_error, check.witness_error) == pytest.approx((0.2, 0.3))
    assert check.method == "convex minimisation"


def test_nothing_can_go_wrong_where_every_shortlist_is_optimal():
    for p, k in (([0.25] * 4, 2), ([0.5, 0.3, 0.2], 3)):
        check = is_topk_calibrated("ova_hinge", p, k)
        assert check
        assert check.witness is None
        assert check.gap == np.inf
        assert check.excess_error == 0


def test_table_agrees_with_the_paper_where_it_decides():
    rows = calibration_table(2, n_trials=24)
    assert len(rows) == 20
    for row in rows:
        if row.paper in ("yes", "no"):
            assert row.calibrated == (row.paper == "yes"), row.method
        if row.calibrated:
            assert row.verdict.startswith("yes: no counterexample among")
            assert row.n_checked > 10
        else:
            assert row.verdict.startswith("no: p = (")
            assert not is_topk_calibrated(row.loss, row.counterexample.p, 2)
    verdicts = {row.method: row.calibrated for row in rows if row.paper not in ("yes", "no")}
    assert verdicts == {
        "Top-k hinge (alpha)": False,
        "Top-k hinge (beta)": False,
        "Smooth top-k hinge (alpha)": True,
        "Smooth top-k hinge (beta)": True,
        "Top-k entropy (alpha)": True,
        "Top-k entropy (beta)": True,
        "Top-k hinge (alpha as printed)": False,
        "Smooth top-k hinge (printed)": True,
        "Hinge, weights of ranks (alpha)": False,
        "Hinge, weights of ranks (beta)": False,
        "Smooth hinge, weights of ranks (alpha)": True,
        "Smooth hinge, weights of ranks (beta)": True,
        "Mixture of smooth top-1 to top-k hinges (alpha)": True,
        "Mixture of top-1 to top-k entropies (alpha)": True,
    }
    # Several numbers of classes take part.
    refuted = [row.counterexample.p for row in rows if not row.calibrated]
    assert len({len(p) for p in refuted}) > 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bayes_topk_error([0.5, 0.6], 1), ValueError, r"p must sum to 1, got .*1\.1"),
        (lambda: bayes_topk_error([1.5, -0.5], 1), ValueError, "p must be finite and nonnegative"),
        (lambda: bayes_topk_error([np.nan, 1], 1), ValueError, "p must be finite"),
        (lambda: bayes_topk_error([1.0], 1), ValueError, "2 classes or more"),
        (lambda: bayes_topk_error(["a", "b"], 1), TypeError, "p must be an array"),
        (
            lambda: bayes_topk_error([0.5, 0.5], 3),
            ValueError,
            r"k must lie .*2 \(the number of classes\); got 3",
        ),
        (lambda: bayes_topk_error([0.5, 0.5], 1.0), TypeError, "k must be an integer"),
        (lambda: optimal_shortlists([[0.5, 0.5]], 1), ValueError, "p must be a vector"),
        (lambda: is_bayes_optimal([1], [0.5, 0.5], 1), ValueError, r"scores .*shape \(2,\)"),
        (lambda: is_bayes_optimal([1, np.nan], [0.5, 0.5], 1), ValueError, "scores contains NaN"),
        (lambda: expected_loss("softmax", [1], [0.5, 0.5]), ValueError, r"scores .*shape \(2,\)"),
        (
            lambda: bayes_risk(losses.get("hinge", k=2, multilabel=True), [0.5, 0.3, 0.2]),
            ValueError,
            "one right label; hinge takes several",
        ),
        (
            lambda: is_topk_calibrated(losses.get("hinge", k=3), [0.5, 0.3, 0.2]),
            ValueError,
            "k=3 with 3 classes",
        ),
        (lambda: calibration_table(4, n_classes=4), ValueError, "n_classes - 1 = 3, got 4"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
