"""Where an update begins: weights, multiples of them, duals between others; whom it visits."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.losses.domains import feasible
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage.base import State
from shortlist.solvers.strategy import changed_data
from shortlist.solvers.strategy.changed_data import (
    GAP_SHARE_LEFT_OUT,
    MAX_GRADIENT_SHARE_LEFT,
    STEP_OF_MULTIPLE,
    WANTED_SHARE_LEFT_OUT,
    best_shortened,
    holders_of_gap,
    smooth_relative,
    train_new_classes,
)
from shortlist.solvers.strategy.starts import move_towards
from shortlist.solvers.threads import Crew
from tests.solvers.problems import make_costs, make_data, make_problem

NEW = np.array([1, 4])
LOSSES = ["softmax", "smooth_hinge", "hinge", "ova_logistic", "ova_hinge"]


def problem_of(name: str, storage: str = "dense", C: float = 1.0) -> Problem:
    X, y = make_data(n=120, d=5, m=6)
    return make_problem(storage, losses.get(name), X, y, C, bias=1.0)


def some_weights(problem: Problem) -> np.ndarray:
    shape = problem.storage.zero_weights(problem.n_classes).shape
    return np.random.default_rng(0).normal(size=shape)


def with_loss(problem: Problem, loss: losses.Loss) -> Problem:
    return Problem(problem.storage, problem.costs, problem.n_classes, loss)


def dual_objective(problem: Problem, state: State) -> float:
    conjugates = problem.loss.row_conjugates(state.duals, problem.costs.y)
    return float(-0.5 * np.sum(state.weights**2) - problem.costs.cost @ conjugates)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", LOSSES)
def test_new_classes_have_their_best_weights_and_others_stay(name, storage):
    problem = problem_of(name, storage)
    weights = some_weights(problem)
    weights[:, NEW] = 0.0
    before = weights.copy()
    smooth = smooth_relative(problem.loss)
    assert smooth is not None
    whole = with_loss(problem, smooth)
    first = whole.primal_gradient(before)[1][:, NEW]
    assert train_new_classes(problem, weights, NEW)
    np.testing.assert_array_equal(np.delete(weights, NEW, 1), np.delete(before, NEW, 1))
    left = whole.primal_gradient(weights)[1][:, NEW]
    assert np.linalg.norm(left) <= 1.0001 * MAX_GRADIENT_SHARE_LEFT * np.linalg.norm(first)
    assert whole.primal(weights) < whole.primal(before)


def test_without_rows_or_memory_nothing_is_trained(monkeypatch):
    given, gram = problem_of("softmax"), problem_of("softmax", "gram")
    weights = some_weights(given)
    before = weights.copy()
    assert not train_new_classes(gram, weights, NEW)
    assert best_shortened(gram, weights) is weights
    monkeypatch.setattr(changed_data, "CHUNK_BYTES", 1)
    assert not train_new_classes(given, weights, NEW)
    assert best_shortened(given, weights) is weights
    np.testing.assert_array_equal(weights, before)


def test_a_loss_that_is_not_convex_has_the_gradients_of_the_one_it_starts_from():
    loss = losses.get("truncated_entropy", k=2)
    assert smooth_relative(loss) == loss.dual_loss
    problem = with_loss(problem_of("softmax"), loss)
    weights = some_weights(problem)
    assert best_shortened(problem, weights) is weights


@pytest.mark.parametrize("factor", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_the_best_shortened_is_the_best_of_the_ray(name, factor):
    problem = problem_of(name)
    weights = factor * some_weights(problem)
    found = best_shortened(problem, weights)
    t = float(np.vdot(found, weights) / np.vdot(weights, weights))
    np.testing.assert_allclose(found, t * weights, atol=1e-12)
    steps = np.arange(0.0, 1.0 + 0.5 * STEP_OF_MULTIPLE, STEP_OF_MULTIPLE)
    primals = [problem.primal(step * weights) for step in steps]
    assert problem.primal(found) == pytest.approx(min(primals), rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_duals_move_as_far_as_the_dual_objective_rises(name):
    """From zero, from gradients at some weights, and to them."""
    problem = problem_of(name, C=0.01)
    smooth = smooth_relative(problem.loss)
    assert smooth is not None
    gradients = problem.zero_state()
    with_loss(problem, smooth).fill_duals(0.1 * some_weights(problem), gradients)
    ends = dual_objective(problem, problem.zero_state()), dual_objective(problem, gradients)
    values = []
    for start, other in ((problem.zero_state(), gradients), (gradients, problem.zero_state())):
        state = State(start.weights.copy(), start.duals.copy(), start.starts)
        move_towards(problem, state, other.duals.copy())
        own = State(state.weights, state.duals, state.starts)
        problem.rebuild(own)
        np.testing.assert_allclose(state.weights, own.weights, atol=1e-12)
        values.append(dual_objective(problem, state))
    assert min(values) >= max(ends)
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert max(ends) < max(values)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["dense", "csr", "gram"])
@pytest.mark.parametrize("name", LOSSES)
def test_shares_of_the_gap_are_those_of_the_formula(name, storage, dtype):
    """C_i (L + L* - <s, v>); none is negative, and they add up to the gap."""
    X, y = make_data(n=60, d=5, m=6, dtype=dtype)
    cost = make_costs(60)
    problem = make_problem(storage, losses.get(name), X, y, cost)
    state = problem.zero_state()
    for _ in problem.storage.epoch(problem.loss, np.arange(30), state, problem.costs, 1, Crew()):
        pass
    shares = np.zeros(60)
    found = problem.certify(state, shares=shares)
    # In single precision duals are moved into their domain for a certificate in double.
    v = feasible(problem.loss.spec, state.duals.astype(np.float64), y)
    scores = X.astype(np.float64) @ (X.T.astype(np.float64) @ (-cost[:, None] * v))
    conjugates = problem.loss.row_conjugates(v, y)
    formula = problem.loss.value(scores, y) + conjugates - np.sum(scores * v, axis=1)
    np.testing.assert_allclose(shares, cost * formula, atol=1e-12 if dtype is np.float64 else 1e-5)
    assert shares.sum() == pytest.approx(found.primal - found.dual - found.rounding, rel=1e-6)


@pytest.mark.parametrize("wanted", [1e-3, 10.0])
def test_the_fewest_examples_that_hold_the_gap(wanted):
    shares = np.random.default_rng(0).permutation(0.9 ** np.arange(100.0))
    shares[::7] = -1e-9  # rounding
    rows = holders_of_gap(shares, wanted)
    left_out = np.delete(shares, rows)
    most = max(GAP_SHARE_LEFT_OUT * np.maximum(shares, 0.0).sum(), WANTED_SHARE_LEFT_OUT * wanted)
    assert np.maximum(left_out, 0.0).sum() <= most
    # One more would be too many, and those that stay hold more than any that is left out.
    assert np.maximum(left_out, 0.0).sum() + shares[rows].min() > most
    assert shares[rows].min() >= left_out.max()
    assert (np.diff(rows) > 0).all()


def test_nobody_holds_a_gap_that_is_small_enough():
    assert not holders_of_gap(np.full(10, 1e-3), 1.0).size
    assert not holders_of_gap(np.zeros(0), 1.0).size
    assert not holders_of_gap(np.zeros(10), 0.0).size
