"""What a run records: gaps, the two measures of them, and plain data that reads back."""

import json
import math

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers import Evaluation, Result, StopTraining
from shortlist.solvers.records.certificate import Certificate, distance_to_optimum
from shortlist.solvers.records.run import Run
from shortlist.solvers.strategy.train import train
from tests.solvers.problems import make_data, make_problem


def result(primal=2.0, dual=1.9, at_zero=2.4, **changes):
    fields = {"epochs": 3.0, "seconds": 0.1, "status": "converged", "solver": "sdca", **changes}
    return Result(primal, dual, at_zero=at_zero, **fields)


def test_gaps():
    found = result()
    assert found.gap == pytest.approx(0.1)
    assert found.relative_gap == pytest.approx(0.05)
    # Of the 0.5 that training can gain at most, 0.1 may be left.
    assert found.gain_gap == pytest.approx(0.2)
    assert not found.within(0.1)
    assert found.within(0.2001)


def test_gaps_are_never_negative():
    found = result(dual=2.0 + 1e-12)
    assert found.gap == found.relative_gap == found.gain_gap == 0.0
    assert found.within(0.0)


def test_nothing_to_gain_leaves_the_share_of_the_objective():
    assert result(primal=1.0, dual=1.0, at_zero=1.0).gain_gap == 0.0
    assert result(primal=0.0, dual=0.0, at_zero=0.0).relative_gap == 0.0


def test_without_a_dual_there_is_no_gap():
    found = result(dual=math.nan)
    assert math.isnan(found.gap)
    assert not found.within(1.0)


def test_plain_data_reads_back():
    history = (Evaluation(1.0, 0.05, 2.1, 1.5, 2.4), Evaluation(3.0, 0.1, 2.0, 1.9, 2.4, 0.75))
    found = result(history=history, distance=0.4, solver="sdca + l-bfgs", by_descent=True)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["gain_gap"] == found.gain_gap
    assert Result.from_dict(data) == found
    # Files of earlier versions have no distance: the gap alone bounds it.
    del data["distance"]
    assert Result.from_dict(data).distance == pytest.approx(math.sqrt(0.2))
    # Nor do they tell of a descent; the solver's name does.
    del data["by_descent"]
    assert Result.from_dict(data).by_descent
    assert not Result.from_dict({**data, "solver": "sdca"}).by_descent


@pytest.mark.parametrize("apart", [0.0, 0.3, 1.0, 1.4, 5.0, math.inf])
def test_the_distance_is_the_largest_that_the_gap_allows(apart):
    gap = 0.8
    # W(v) is anywhere within ``apart`` of W, on a line with the optimum where it helps most.
    distance, of_duals = np.meshgrid(np.linspace(0, 2, 2001), np.linspace(0, 2, 2001))
    allowed = distance**2 + of_duals**2 <= 2 * gap
    allowed &= np.abs(distance - of_duals) <= apart + 1e-9
    assert distance_to_optimum(gap, apart) == pytest.approx(distance[allowed].max(), abs=2e-3)


def test_a_record_of_other_weights_forgets_the_distance_of_those_before():
    run = new_run()
    weights = run.state.weights
    run.record(Certificate(2.0, 1.9, 0.0, 0.0, 1.9, apart=0.0), weights)
    assert run.result("converged").distance == pytest.approx(math.sqrt(0.1))
    # From elsewhere: nothing is known of its duals.
    run.record(Certificate(1.95, 1.9, 0.0, 0.0, 1.9), weights + 1.0)
    assert run.result("converged").distance == pytest.approx(math.sqrt(2 * 0.05))
    # A worse model with a better bound.
    run.record(Certificate(2.5, 1.94, 0.0, 0.0, 1.94, apart=0.0), weights)
    assert run.result("converged").distance == pytest.approx(math.sqrt(2 * 0.01))


def new_run(**options):
    X, y = make_data()
    problem = make_problem("dense", losses.get("softmax"), X, y, 1.0, 0.5)
    return Run(problem, problem.zero_state(), 1e-3, 10, **options)


def pair(primal, dual, doubt=0.0):
    return Certificate(primal, dual, rounding=0.0, doubt=doubt, alone=dual - doubt)


def test_a_run_keeps_the_best_of_everything():
    run = new_run()
    first, second = np.zeros((6, 4)), np.ones((6, 4))
    run.record(pair(50.0, 10.0), first)
    run.record(pair(60.0, 30.0), second)
    run.record(pair(55.0, 40.0), second, trusted=False)
    found = run.result("max_epochs")
    assert (found.primal, found.dual) == (50.0, pytest.approx(30.0, rel=1e-12))
    np.testing.assert_array_equal(run.weights, first)
    assert [e.primal for e in found.history] == [50.0, 50.0, 50.0]
    assert [e.dual for e in found.history] == pytest.approx([10.0, 30.0, 40.0], rel=1e-12)
    first += 1  # the run has a copy
    assert not run.weights.any()


def test_a_bound_of_another_pair_gives_way_to_doubts_about_the_primal():
    run = new_run()
    weights = np.zeros((6, 4))
    run.record(pair(50.0, 10.0, doubt=0.25), weights)
    assert run.result("max_epochs").gap == 40.0  # the gap of a pair allows for rounding
    run.record(pair(60.0, 30.0), weights)
    found = run.result("max_epochs")
    assert (found.primal, found.dual) == (50.0, pytest.approx(29.75, rel=1e-12))
    assert run.result("max_epochs").dual == found.dual  # once


def test_zero_is_a_bound_from_the_start():
    run = new_run()
    run.record(pair(50.0, -1e6), np.zeros((6, 4)))
    assert run.result("max_epochs").relative_gap == 1.0


def test_the_gap_wanted_is_a_share_of_the_objective_and_of_the_gain():
    run = new_run()
    at_zero = 40 * math.log(4)
    assert run.at_zero == pytest.approx(at_zero)
    assert run.wanted == pytest.approx(1e-3 * at_zero)
    run.record(pair(50.0, 45.0), np.zeros((6, 4)))
    assert run.wanted == pytest.approx(1e-3 * (at_zero - 45.0))


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_callback_that_says_yes_ends_training(answer):
    with pytest.raises(StopTraining):
        new_run(callback=lambda _: answer).notify()


@pytest.mark.parametrize("answer", [None, False, 1, "stop", 0.5])
def test_other_answers_do_not(answer):
    new_run(callback=lambda _: answer).notify()


def test_users_see_plain_strings():
    """Not members of an enumeration, whose repr differs and which other programs cannot read."""
    X, y = make_data()
    solution = train(make_problem("dense", losses.get("entropy"), X, y), tol=1e-3, seed=0)
    assert type(solution.result.status) is str
    assert {"status": "converged"}.items() <= solution.result.to_dict().items()
