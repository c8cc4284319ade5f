"""Weak regularisation: descents take over from coordinate steps, and certify what they reach."""

import numpy as np
import pytest

from shortlist import TopKClassifier, losses
from shortlist.solvers import memory
from shortlist.solvers.records.certificate import STANDARD_DEVIATIONS
from shortlist.solvers.records.run import Run
from shortlist.solvers.strategy import conditioning, descent
from shortlist.solvers.strategy import train as training
from shortlist.solvers.strategy.hessian import make_model
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.solvers.problems import (
    make_data,
    make_problem,
    naive_dual,
    naive_primal,
    primal_weights,
)

BIAS = 0.5
C = 100_000.0
HINGES = [
    Instance("hinge", m=4),
    Instance("hinge", m=4, k=2, variant="alpha"),
    Instance("hinge", m=4, k=2, variant="beta"),
    Instance("ova_hinge", m=4),
    Instance("smooth_hinge", m=4, smoothing=1.0),
    Instance("smooth_hinge", m=4, k=2, smoothing=1.0),
    Instance("ova_smooth_hinge", m=4, smoothing=1.0),
]


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_hinges_converge_where_coordinate_steps_crawl(row, storage):
    X, y = make_data(n=60, d=5, m=4)
    cost = np.full(len(y), C)
    problem = make_problem(storage, row.loss(), X, y, C, BIAS)
    solution = train(problem, tol=1e-3, max_epochs=3000, seed=0)
    result = solution.result
    assert result.status == "converged"
    assert result.by_descent
    W = primal_weights(storage, solution.weights, X, BIAS)
    assert result.primal == pytest.approx(naive_primal(row, W, X, y, cost, BIAS), rel=1e-9)
    dual = naive_dual(row, solution.state.duals, X, y, cost, BIAS)
    assert result.dual == pytest.approx(dual, rel=1e-9)
    assert 0 <= result.relative_gap <= 1e-3


def test_the_optimum_is_that_of_coordinate_steps(monkeypatch):
    X, y = make_data(n=30, d=5, m=4)  # few enough for coordinate steps to get there
    row = Instance("hinge", m=4)
    quick = train(make_problem("dense", row.loss(), X, y, C, BIAS), tol=1e-3, seed=0).result
    assert quick.by_descent
    monkeypatch.setattr(training, "_patience", lambda *_: np.inf)
    slow = train(
        make_problem("dense", row.loss(), X, y, C, BIAS), tol=5e-5, max_epochs=10**5, seed=0
    ).result
    assert (slow.solver, slow.status) == ("sdca", "converged")
    assert slow.dual <= quick.primal * (1 + 1e-12)
    assert quick.dual <= slow.primal * (1 + 1e-12)


def test_history_is_of_the_hinge_itself():
    X, y = make_data(n=60, d=5, m=4)
    row = Instance("hinge", m=4)
    seen = []
    problem = make_problem("dense", row.loss(), X, y, C, BIAS)
    result = train(problem, tol=1e-3, seed=0, callback=lambda p: seen.append(p.last)).result
    recorded = [*result.history, None]
    assert all(entry in recorded for entry in seen)
    optimum = result.dual
    assert all(entry.primal >= optimum * (1 - 1e-12) for entry in result.history)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge"])
def test_an_interrupted_descent_keeps_its_model(name):
    X, y = make_data(n=60, d=5, m=4)
    row = Instance(name, m=4, smoothing=1.0 if name == "smooth_hinge" else 0.0)
    cost = np.full(len(y), C)
    whole = train(make_problem("dense", row.loss(), X, y, C, BIAS), tol=1e-3, seed=0).result

    def interrupt(progress):
        if progress.epoch > 0.7 * whole.epochs:
            raise KeyboardInterrupt

    problem = make_problem("dense", row.loss(), X, y, C, BIAS)
    solution = train(problem, tol=1e-3, seed=0, callback=interrupt)
    assert solution.result.status == "interrupted"
    primal = naive_primal(row, solution.weights, X, y, cost, BIAS)
    assert solution.result.primal == pytest.approx(primal, rel=1e-9)
    assert solution.result.dual <= whole.primal
    # What is kept can be gone on from.
    again = train(problem, tol=1e-3, seed=0, state=solution.state)
    assert again.result.status == "converged"


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge"])
def test_descents_leave_lists_of_duals(name, monkeypatch):
    X, y = make_data(n=60, d=5, m=4)
    models = []
    for limit in (memory.MAX_DENSE_DUAL_BYTES, 0):
        monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", limit)
        models.append(
            TopKClassifier(name, C=C, random_state=0, warm_start=True, tol=1e-3).fit(X, y)
        )
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[1].result_.by_descent
    kept, listed = (model._last.solution.state.duals for model in models)
    np.testing.assert_array_equal(kept, listed.toarray())


def test_smoothed_versions():
    for row in HINGES[:4]:
        loss = row.loss().smoother(0.25)
        assert loss.smooth
        assert (loss.k, loss.variant, loss.smoothing) == (row.loss().k, row.loss().variant, 0.25)


def test_drift_between_weights_and_duals_is_certified_as_it_is():
    """The primal is that of the weights, the dual that of the duals, if the drift is known."""
    X, y = make_data(n=60, d=5, m=4)
    row = Instance("smooth_hinge", m=4, smoothing=1.0)
    cost = np.ones(len(y))
    problem = make_problem("dense", row.loss(), X, y, 1.0, BIAS)
    state = train(problem, tol=1e-6, seed=0).state
    settled = problem.certify(state)
    drift = 1e-3 * np.random.default_rng(0).normal(size=state.weights.shape)
    state.weights += drift
    unit = 0.5 * float(np.finfo(np.float64).eps)
    state.rounding = float(np.sum(drift**2)) / (STANDARD_DEVIATIONS * unit) ** 2
    drifted = naive_primal(row, state.weights, X, y, cost, BIAS)
    dual = naive_dual(row, state.duals, X, y, cost, BIAS)

    # Where the drift does not matter, the weights are left alone.
    found = problem.certify(state, wanted=settled.primal)
    assert found.primal == pytest.approx(drifted, rel=1e-12)
    assert found.dual == pytest.approx(dual, rel=1e-12)
    assert found.dual == pytest.approx(settled.dual, rel=1e-12)
    assert found.rounding == pytest.approx(0.5 * np.sum(drift**2), rel=1e-6)
    # Second order: no more than the curvature of the primal makes of it.
    curvature = 1.0 + (np.linalg.norm(X) ** 2 + len(y) * BIAS**2) * 2.0
    gap = settled.primal - settled.dual
    assert found.primal - found.dual <= gap + np.sqrt(2 * gap * curvature) * np.linalg.norm(
        drift
    ) + 0.5 * curvature * np.sum(drift**2)

    # Where it does, they are rebuilt.
    strict = problem.certify(state, wanted=1e-9)
    np.testing.assert_allclose(
        state.weights, problem.storage.rebuild(state.duals, cost), rtol=1e-12
    )
    assert strict.primal == pytest.approx(settled.primal, rel=1e-12)
    assert strict.dual == pytest.approx(settled.dual, rel=1e-12)


def test_coupled_models_grow_where_they_are_not_enough(monkeypatch):
    """Of 400 nearly separable examples few have curvature: a sample of 16 misses them."""
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 6))
    y = (X @ random.standard_normal((6, 4))).argmax(axis=1)
    problem = make_problem("dense", losses.get("softmax"), X, y, 1e4)
    monkeypatch.setattr(conditioning, "COUPLED_SAMPLES", 16)
    evaluations, samples = {}, []

    def noted(problem, place, chosen, share):
        samples.append(chosen.sample)
        return make_model(problem, place, chosen, share)

    monkeypatch.setattr(descent, "make_model", noted)
    for growth in (1, 2):
        monkeypatch.setattr(descent, "SAMPLE_GROWTH", growth)
        samples.clear()
        run = Run(problem, problem.zero_state(), 1e-6, 2000.0)
        status, _ = descent.descend(run, problem.zero_state().weights)
        assert status == "converged" or growth == 1
        evaluations[growth] = run.epochs
        assert set(samples) == {16} if growth == 1 else samples == sorted(samples)
    assert samples[-1] > 16
    assert evaluations[2] < 0.5 * evaluations[1]


@pytest.mark.parametrize("name", ["entropy", "ova_logistic"])
def test_tables_in_single_precision_go_on_in_double(name):
    """Features of very different sizes leave gradients in single precision few digits."""
    random = np.random.default_rng(0)
    raw = random.standard_normal((2000, 8))
    y = (raw @ random.standard_normal((8, 4)) + random.gumbel(size=(2000, 4))).argmax(axis=1)
    X = (raw * np.logspace(-4, 4, 8)).astype(np.float32)
    row = Instance(name, m=4)
    problem = make_problem("dense", row.loss(), X, y, 1e4)
    solution = train(problem, seed=0, max_epochs=500)
    result = solution.result
    assert (result.status, result.solver) == ("converged", "l-bfgs, in double")
    assert solution.weights.dtype == np.float32
    primal = naive_primal(row, solution.weights, X, y, problem.costs.cost)
    assert result.primal == pytest.approx(primal, rel=1e-6)
    exact = train(make_problem("dense", row.loss(), X.astype(float), y, 1e4), seed=0).result
    assert exact.dual <= primal
    assert result.dual <= exact.primal
