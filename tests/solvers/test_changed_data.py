"""Where an update begins: weights of new classes, multiples of weights, duals between others."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage.base import State
from shortlist.solvers.strategy import changed_data
from shortlist.solvers.strategy.changed_data import (
    MAX_GRADIENT_SHARE_LEFT,
    STEP_OF_MULTIPLE,
    best_multiple,
    smooth_relative,
    train_new_classes,
)
from shortlist.solvers.strategy.starts import move_towards
from tests.solvers.problems import make_data, make_problem

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
    assert best_multiple(gram, weights) is weights
    monkeypatch.setattr(changed_data, "CHUNK_BYTES", 1)
    assert not train_new_classes(given, weights, NEW)
    assert best_multiple(given, weights) is weights
    np.testing.assert_array_equal(weights, before)


def test_a_loss_that_is_not_convex_has_the_gradients_of_the_one_it_starts_from():
    loss = losses.get("truncated_entropy", k=2)
    assert smooth_relative(loss) == loss.dual_loss
    problem = with_loss(problem_of("softmax"), loss)
    weights = some_weights(problem)
    assert best_multiple(problem, weights) is weights


@pytest.mark.parametrize("factor", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_the_best_multiple_is_the_best_of_the_ray(name, factor):
    problem = problem_of(name)
    weights = factor * some_weights(problem)
    found = best_multiple(problem, weights)
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
