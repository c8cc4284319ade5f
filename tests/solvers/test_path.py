"""The path over C: a warm start is never worse than a cold one, whatever the step."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.duals import as_array
from shortlist.solvers.strategy.conditioning import has_small_scores
from shortlist.solvers.strategy.path import Path, carry_over, state_from_duals
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.solvers.problems import make_costs, make_data, make_problem, naive_dual, naive_primal

BIAS = 0.5
TOL, MAX_EPOCHS = 1e-3, 1000
LOSSES = [
    Instance("entropy", m=4),
    Instance("smooth_hinge", m=4, smoothing=1.0),
    Instance("hinge", m=4),
]
STEPS = pytest.mark.parametrize("step", [3.0, 30.0, 1000.0])
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])


def setting(row, storage, cost=1.0):
    X, y = make_data(n=80, d=6, m=row.m)
    return X, y, make_problem(storage, row.loss(), X, y, cost, BIAS)


@pytest.mark.parametrize("first", [0.003, 0.3, 30.0])
@STEPS
@pytest.mark.parametrize("up", [True, False])
@STORAGES
@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_warm_starts_are_never_worse_than_cold_ones(row, storage, up, step, first):
    X, y, problem = setting(row, storage)
    there = first * step if up else first / step
    path = Path(problem, TOL, MAX_EPOCHS, seed=0)
    path.solve(first)
    warm = path.solve(there)
    cold = train(path.at(there), tol=TOL, max_epochs=MAX_EPOCHS, seed=0)
    assert warm.result.status == "converged" or cold.result.status != "converged"
    # No worse a solution.
    assert warm.result.primal <= cold.result.primal * (1 + TOL)
    assert warm.result.dual >= cold.result.dual - TOL * cold.result.primal
    cost = np.full(len(y), there)
    primal = naive_primal(row, warm.weights, X, y, cost, BIAS)
    assert warm.result.primal == pytest.approx(primal, rel=1e-9)


@STEPS
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_what_is_carried_over_is_feasible_and_better_than_nothing(row, up, step):
    X, y, problem = setting(row, "dense", make_costs(80))
    state = train(problem, tol=1e-4, seed=0).state
    ratio = step if up else 1 / step
    path = Path(problem, TOL, MAX_EPOCHS, seed=0)
    state = carry_over(path.at(ratio), state, ratio)
    assert np.isfinite(row.loss().conjugate(state.duals, y)).all()
    cost = ratio * problem.costs.cost
    np.testing.assert_allclose(
        state.weights, problem.storage.rebuild(state.duals, cost), rtol=1e-9, atol=1e-12
    )
    dual = naive_dual(row, as_array(state.duals), X, y, cost, BIAS)
    assert dual >= 0.0
    assert path.at(ratio).certify(state).dual == pytest.approx(dual, rel=1e-9, abs=1e-12)


@STEPS
@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_duals_of_any_other_costs_are_a_start(row, step):
    X, y, problem = setting(row, "csr", make_costs(80))
    solved = train(problem, tol=1e-4, seed=0).state
    rng = np.random.default_rng(0)
    cost = step * rng.choice([0.0, 0.1, 1.0, 10.0], size=80)
    other = make_problem("csr", row.loss(), X, y, cost, BIAS)
    state = state_from_duals(other, solved.duals.copy(), solved.starts.copy())
    np.testing.assert_allclose(
        state.weights, other.storage.rebuild(state.duals, cost), rtol=1e-9, atol=1e-12
    )
    assert naive_dual(row, as_array(state.duals), X, y, cost, BIAS) >= 0.0
    # Descents decide here, whose number of steps is not ordered by their starts.
    again = train(other, tol=TOL, max_epochs=2 * MAX_EPOCHS, seed=0, state=state)
    cold = train(other, tol=TOL, max_epochs=MAX_EPOCHS, seed=0)
    assert again.result.status == "converged" or cold.result.status != "converged"


@pytest.mark.parametrize("storage", ["dense", "csr", "gram"])
def test_a_path_can_be_asked_in_any_order_and_again(storage):
    _, _, problem = setting(LOSSES[0], storage)
    path = Path(problem, 1e-5, MAX_EPOCHS, seed=0)
    for C in (1.0, 0.01, 3.0, 3.0, 0.2):
        found = path.solve(C).result
        alone = train(path.at(C), tol=1e-5, max_epochs=MAX_EPOCHS, seed=0).result
        assert found.status == alone.status == "converged"
        assert found.primal == pytest.approx(alone.primal, rel=2e-5)
    assert path.last_C == 0.2


def test_the_same_C_again_is_already_solved():
    _, _, problem = setting(LOSSES[1], "dense")
    path = Path(problem, TOL, MAX_EPOCHS, seed=0)
    first = path.solve(1.0)
    assert first.result.epochs > 0
    assert path.solve(1.0).result.epochs == 0


def test_the_costs_of_a_path_are_those_at_one():
    _, _, problem = setting(LOSSES[0], "dense", make_costs(80))
    path = Path(problem, TOL, MAX_EPOCHS, seed=0)
    np.testing.assert_array_equal(path.at(7.0).costs.cost, 7.0 * make_costs(80))
    assert path.at(7.0).costs.y is problem.costs.y
    assert path.at(7.0).at_zero == pytest.approx(7.0 * make_costs(80).sum() * np.log(4))


def test_a_loss_that_is_not_convex_is_carried_over_by_its_start():
    loss = losses.get("truncated_entropy", k=2)
    X, y = make_data(n=80, d=6, m=4)
    path = Path(make_problem("dense", loss, X, y, 1.0, BIAS), TOL, MAX_EPOCHS, seed=0)
    for C in (0.1, 1.0):
        found = path.solve(C).result
        assert found.status == "converged"
        alone = train(path.at(C), tol=TOL, max_epochs=MAX_EPOCHS, seed=0).result
        assert found.primal == pytest.approx(alone.primal, rel=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["softmax", "ova_logistic"])
def test_small_values_take_an_evaluation_each_and_are_certified(name, dtype):
    """Against optima in double, up to values that SDCA and Newton's steps are left with."""
    X, y = make_data(n=500, d=40, m=30, dtype=np.float32)
    loss = losses.get(name)
    path = Path(make_problem("dense", loss, X.astype(dtype), y, 1.0, BIAS), TOL, MAX_EPOCHS, seed=0)
    wide = make_problem("dense", loss, X.astype(np.float64), y, 1.0, BIAS)
    for C in (1e-6, 2e-6, 1e-4, 3e-4, 0.1, 10.0, 1e-6):
        before = path.last_C
        solution = path.solve(C)
        result, problem = solution.result, Path(wide, TOL, MAX_EPOCHS, seed=0).at(C)
        best = train(problem, tol=1e-8, max_epochs=2000, seed=0).result
        primal = problem.primal(solution.weights.astype(np.float64))
        assert result.status == "converged"
        assert result.primal == pytest.approx(primal, rel=1e-6)
        slack = 1e-12 * primal
        assert result.dual <= best.primal + slack
        assert result.gap >= primal - best.primal - slack
        assert result.gain_gap <= TOL
        assert has_small_scores(path.at(C)) == (C < 0.01)
        if C < 0.01:
            assert result.solver == "l-bfgs"
            # A step from zero, or one from the last weights and a look.
            assert result.epochs <= (1 if before < C else 2)
