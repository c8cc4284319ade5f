"""The circle: draws, models, and the headline."""

import numpy as np
import pytest

from shortlist.experiments.descents import Primal
from shortlist.experiments.table2 import KS, DrawTask, best_of_starts, scores

N_TEST = 20_000


def task(method, draw=0, seed=0, **changes):
    changes = {"exponents": (-6, -2, 0, 2, 4, 6), **changes}
    return DrawTask(method, draw, seed, 200, N_TEST, **changes)


def train(method, draw=0, **changes):
    return task(method, draw, **changes).run()


def draw_part(part, draw, seed=0):
    return task("lr-multi", draw, seed).part(part)


def test_draws_differ_but_share_the_test_points():
    a, b = (draw_part("train", draw)[0] for draw in (0, 1))
    assert not np.array_equal(a, b)
    assert not np.array_equal(a, draw_part("val", 0)[0])
    assert not np.array_equal(a, draw_part("train", 0, seed=1)[0])
    assert np.array_equal(a, draw_part("train", 0)[0])
    assert np.array_equal(draw_part("test", 0)[0], draw_part("test", 1)[0])


def test_headline_truncated_entropy_beats_softmax_at_the_top_two():
    for draw in range(2):
        softmax = train("lr-multi", draw).chosen[2].test[1]
        truncated = train("trunc-ent:2", draw, starts=6).chosen[2].test[1]
        assert truncated > 93.0
        assert softmax < 90.0


def test_chosen_models_are_scored_as_their_weights_say():
    chosen = train("smooth-topk-svm:1").chosen
    X, y = draw_part("test", 0)
    assert len(y) == N_TEST
    for k in KS:
        weights = np.array(chosen[k].weights)
        assert weights.shape == (3, 3)
        assert not weights[-1].any()  # no intercept
        ranks = (scores(X, weights) > scores(X, weights)[np.arange(len(y)), y][:, None]).sum(1)
        expected = [100 * (ranks < size).mean() for size in KS]
        assert chosen[k].test == pytest.approx(expected, abs=1e-6)


def test_the_multiclass_svm_ties_two_classes_where_softmax_does_not():
    tied = train("svm-multi", exact_C=1.0, exponents=(0,)).nearest_at_optimum
    apart = train("lr-multi", exact_C=1.0, exponents=(0,)).nearest_at_optimum
    assert tied < 1e-3 < 0.05 < apart


def test_several_starts_are_never_worse_than_one():
    from shortlist import losses

    X, y = draw_part("train", 3)
    C = 8.0
    loss = losses.get("truncated_entropy", k=2)

    def objective(weights):
        return 0.5 * (weights**2).sum() + C * loss.value(scores(X, weights), y).sum()

    first = np.vstack([np.random.default_rng(0).normal(size=(2, 3)), np.zeros((1, 3))])
    both = [best_of_starts(2, X, y, C, first, n, np.random.default_rng(1)) for n in (1, 6)]
    assert all(converged for _, converged in both)
    found = [objective(weights) for weights, _ in both]
    assert found[1] <= found[0] * (1 + 1e-9) <= objective(first)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_that_did_not_converge_are_not_eligible():
    """In two epochs the small values of C converge, and the others do not."""
    both = train("smooth-topk-svm:1", exponents=(-12, 10), max_epochs=2)
    assert {both.chosen[k].C for k in KS} == {2.0**-12}
    with pytest.raises(ValueError, match=r"no model of smooth top-1 SVM on draw 1 met .* of 0.001"):
        train("smooth-topk-svm:1", exponents=(10,), max_epochs=2)


def test_a_descent_that_did_not_converge_is_told(monkeypatch):
    X, y = draw_part("train", 0)
    first = np.vstack([np.ones((2, 3)), np.zeros((1, 3))])
    minimised = Primal.minimised

    def cut_short(self, start, **how):
        return minimised(self, start, options={"maxiter": 1}, **how)

    monkeypatch.setattr(Primal, "minimised", cut_short)
    assert not best_of_starts(2, X, y, 8.0, first, 1, np.random.default_rng(1))[1]
