"""The method of multipliers: dual steps near given duals, Newton's steps, and where they lead."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.solvers.kernels.centred import add_slopes, step_near
from shortlist.solvers.kernels.curvature import unpack_hessian
from shortlist.solvers.records.run import Run, StopTraining
from shortlist.solvers.strategy import descents, multipliers, starts
from shortlist.solvers.strategy import train as training
from shortlist.solvers.strategy.train import train
from tests import references
from tests.instances import Instance, by_id
from tests.solvers.problems import make_costs, make_data, make_problem, naive_dual, naive_primal

BIAS = 0.5
M = 5
HINGES = [
    Instance("hinge", m=M),
    Instance("hinge", m=M, k=2, variant="alpha"),
    Instance("hinge", m=M, k=3, variant="beta"),
    Instance("ova_hinge", m=M),
]


def near(row, scores, y, cost, gamma, centre):
    """Maximisers, their sums, and C_i times them."""
    v, weighted = np.empty_like(scores), np.empty_like(scores)
    starts = np.zeros((len(scores), 2))
    sums = step_near(row.loss().spec, scores, y, cost, gamma, centre, starts, v, weighted)
    assert_allclose(weighted, cost[:, None] * v, rtol=1e-15)
    return v, *sums


def some_duals(row, rng, y):
    return np.stack([references.random_dual(row, rng, label) for label in y])


def cases(row, scale):
    rng = np.random.default_rng([3, row.k])
    n = 12
    y = rng.integers(0, M, n)
    scores = scale * rng.normal(size=(n, M))
    scores[:4] = np.round(scores[:4] / scale) * scale  # ties
    return scores, y, rng.uniform(0.1, 2.0, n), some_duals(row, rng, y)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_steps_maximise_near_the_centre(row, scale, gamma):
    """No other dual does better: not the centre, not random ones, not mixtures with them."""
    scores, y, cost, centre = cases(row, scale)
    v, maxima, conjugates = near(row, scores, y, cost, gamma, centre)
    rng = np.random.default_rng(0)

    def objective(i, u):
        quadratic = 0.5 * gamma * float((u - centre[i]) @ (u - centre[i]))
        return float(scores[i] @ u) - references.conjugate(row, u, y[i]) - quadratic

    values = np.array([objective(i, v[i]) for i in range(len(y))])
    assert np.isfinite(values).all()  # the maximisers are feasible
    size = cost @ (1.0 + np.abs(values) + np.abs(scores).max(axis=1))
    assert maxima == pytest.approx(cost @ values, abs=1e-13 * size)
    expected = sum(c * references.conjugate(row, u, j) for c, u, j in zip(cost, v, y, strict=True))
    assert conjugates == pytest.approx(expected, abs=1e-13 * size)
    for i in range(len(y)):
        slack = 1e-12 * (1.0 + abs(values[i]) + np.abs(scores[i]).max())
        for u in (centre[i], *some_duals(row, rng, [y[i]] * 20)):
            for share in (1.0, 1e-2, 1e-4):
                assert objective(i, v[i] + share * (u - v[i])) <= values[i] + slack


@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_the_hessian_is_the_derivative_of_the_gradient(row):
    X, y = make_data(n=60, d=3, m=M)
    x = np.column_stack([X, np.full(len(X), BIAS)])
    cost = make_costs(len(y))
    rng = np.random.default_rng(1)
    W, centre, gamma = 0.3 * rng.normal(size=(4, M)), some_duals(row, rng, y), 0.5

    def gradient(flat):
        scores = x @ flat.reshape(M, 4).T
        v, *_ = near(row, scores, y, cost, gamma, centre)
        return (flat.reshape(M, 4).T + x.T @ (cost[:, None] * v)).T.reshape(-1)

    flat = W.T.reshape(-1)
    h = 1e-7
    expected = np.stack(
        [(gradient(flat + h * e) - gradient(flat - h * e)) / (2 * h) for e in np.eye(flat.size)]
    )
    v, *_ = near(row, x @ W, y, cost, gamma, centre)
    packed = np.zeros((M * (M + 1) // 2, 10))
    loss = row.loss()
    given = (loss.spec, x, x @ W, y, cost, gamma, centre, v, 1e-6 * gamma, loss.fewest_classes)
    add_slopes(*given, packed)
    hessian = np.empty((flat.size, flat.size))
    unpack_hessian(packed, M, 4, hessian)
    upper = np.triu_indices(flat.size)
    assert_allclose(hessian[upper], expected[upper], atol=1e-4 * np.abs(expected).max())
    assert np.abs(expected - np.eye(flat.size)).max() > 0.1  # there is curvature to get wrong


@njit
def _both_slopes(loss, q, y, eta, v, step, own, differences, work):
    kernels.slope(loss, q, y, eta, v, step, own, work)
    kernels.differences_of_steps(loss, q, y, eta, v, step, differences, work)


@pytest.mark.parametrize("row", HINGES[:3], ids=by_id)
def test_slopes_are_those_of_differences(row):
    rng = np.random.default_rng(row.k)
    curved = 0
    for _ in range(400):
        q, y, eta = rng.normal(size=M), int(rng.integers(M)), float(rng.uniform(0.1, 3.0))
        v = row.loss().dual_step(q, y, eta)
        own, differences = np.empty((M, M)), np.empty((M, M))
        spec = row.loss().spec
        _both_slopes(spec, q, y, eta, v, 1e-7, own, differences, np.empty((2, M)))
        assert_allclose(own, differences, atol=1e-6 / eta)
        curved += own.any()
    assert curved > 100


def by_multipliers(monkeypatch, problem, **options):
    """Train with the method of multipliers from the first look on that SDCA does not pass."""
    monkeypatch.setattr(training, "EPOCHS_BEFORE_MULTIPLIERS", 0.0)
    return train(problem, seed=0, **options)


def degenerate(kind):
    X, y = make_data(n=60, d=4, m=M)
    cost = make_costs(len(y))
    if kind == "tied":
        X, y, cost = np.repeat(X, 2, axis=0), np.r_[y, y], np.r_[cost, cost]
        y[::2] = y[0]
    if kind == "constant":
        X[:, 1:] = 1.0
    if kind == "huge":
        X = 1e4 * X
    if kind == "tiny":
        X = 1e-3 * X
    if kind == "zero":
        X = np.zeros_like(X)
    if kind == "mixed":
        X = X * np.array([1e-3, 1.0, 1e2, 1e4])
    return X, y, 100.0 * cost


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("kind", ["random", "tied", "constant", "huge", "tiny", "zero", "mixed"])
@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_the_optimum_is_certified(row, kind, storage, monkeypatch):
    X, y, cost = degenerate(kind)
    problem = make_problem(storage, row.loss(), X, y, cost, BIAS)
    solution = by_multipliers(monkeypatch, problem, tol=1e-6, max_epochs=3000)
    result = solution.result
    assert result.status == "converged"
    primal = naive_primal(row, solution.weights, X, y, cost, BIAS)
    dual = naive_dual(row, solution.state.duals, X, y, cost, BIAS)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual <= dual * (1 + 1e-9)
    assert primal - dual <= 1e-6 * primal * (1 + 1e-6)


@pytest.mark.parametrize("row", HINGES[:3], ids=by_id)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_training_ends_where_nothing_can_be_gained(row, C, monkeypatch):
    """Every example has every label once: W = 0 is the solution."""
    X = np.repeat(np.random.default_rng(0).standard_normal((120, 4)), M, axis=0)
    y = np.tile(np.arange(M), 120)
    problem = make_problem("dense", row.loss(), X, y, np.full(len(y), C), BIAS)
    result = by_multipliers(monkeypatch, problem, max_epochs=1000).result
    assert result.status == "converged"
    assert result.epochs < 150
    assert result.primal == pytest.approx(result.at_zero, rel=1e-12)


@pytest.mark.parametrize("row", HINGES[:3], ids=by_id)
def test_coordinate_steps_end_where_little_can_be_gained(row):
    """Features that are all but equal: more digits of the gap are worth nothing."""
    random = np.random.default_rng(0)
    X, y = 1.0 + 1e-6 * random.standard_normal((300, 4)), random.integers(0, M, 300)
    problem = make_problem("dense", row.loss(), X, y, 0.01, BIAS)
    result = train(problem, seed=0, max_epochs=1000).result
    assert result.status == "converged"
    assert result.epochs < 100
    assert result.relative_gap <= 1e-6


@pytest.mark.parametrize("row", [*HINGES, Instance("softmax", m=M)], ids=by_id)
def test_the_gradient_at_zero_promises_no_less_than_can_be_gained(row):
    X, y = make_data(n=60, d=4, m=M)
    cost = 0.01 * make_costs(len(y))
    problem = make_problem("dense", row.loss(), X, y, cost, BIAS)
    result = train(problem, tol=1e-6, seed=0).result
    assert problem.promised_gain <= problem.at_zero
    gain = problem.at_zero - result.primal
    assert gain <= problem.promised_gain * (1 + 1e-6)
    if row.loss().smooth:  # the only gradient there is
        _, gradient = problem.primal_gradient(np.zeros((5, M)))
        assert problem.promised_gain == pytest.approx(0.5 * np.vdot(gradient, gradient))


def test_what_is_tiny_is_solved_all_the_same():
    """Little can be gained from tiny features, but it is all there is."""
    X, y = make_data(n=60, d=4, m=M)
    problem = make_problem("dense", Instance("hinge", m=M).loss(), 1e-5 * X, y)
    result = train(problem, seed=0).result
    assert result.status == "converged"
    assert result.relative_gap < 1e-10
    assert result.gain_gap <= 1e-3


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", ["smooth_hinge", "ova_smooth_hinge"])
def test_smooth_hinges_go_on_with_multipliers_where_lbfgs_is_slow(name, storage, monkeypatch):
    monkeypatch.setattr(training, "_descend_at_once", lambda *_: True)
    monkeypatch.setattr(descents, "MAX_EVALUATIONS_BEFORE_ANOTHER", 2)
    row = Instance(name, m=M, smoothing=1.0)
    X, y = make_data(n=300, d=4, m=M)
    problem = make_problem(storage, row.loss(), X, y, 100.0, BIAS)
    solution = train(problem, tol=1e-6, seed=0)
    result = solution.result
    assert (result.status, result.solver) == ("converged", "l-bfgs + newton")
    primal = naive_primal(row, solution.weights, X, y, problem.costs.cost, BIAS)
    dual = naive_dual(row, solution.state.duals, X, y, problem.costs.cost, BIAS)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert primal - dual <= 1e-6 * primal * (1 + 1e-6)


def test_a_smooth_hinge_resumes_with_multipliers(monkeypatch):
    monkeypatch.setattr(training, "_descend_at_once", lambda *_: True)
    monkeypatch.setattr(descents, "MAX_EVALUATIONS_BEFORE_ANOTHER", 2)
    X, y = make_data(n=300, d=4, m=M)
    loss = Instance("smooth_hinge", m=M, smoothing=1.0).loss()
    problem = make_problem("dense", loss, X, y, 100.0)
    kept = []

    class Keeper:
        def due(self):
            return True

        def keep(self, snapshot):
            kept.append(snapshot)

    train(problem, tol=1e-6, seed=0, keeper=Keeper())
    last = next(s for s in kept if s.stage.name == "smoothed")
    monkeypatch.setattr(descents, "descend", None)  # not called again
    again = train(problem, tol=1e-6, seed=0, resume=last).result
    assert (again.status, again.solver) == ("converged", "l-bfgs + newton")


def test_single_precision_ends_at_the_same_optimum(monkeypatch):
    X, y = make_data(n=400, d=4, m=M, dtype=np.float32)
    row = Instance("hinge", m=M)
    single = by_multipliers(monkeypatch, make_problem("dense", row.loss(), X, y, 10.0), tol=1e-4)
    double = train(make_problem("dense", row.loss(), X.astype(float), y, 10.0), tol=1e-9, seed=0)
    assert single.result.status == "converged"
    assert single.result.dual <= double.result.primal <= single.result.primal * (1 + 1e-6)
    assert single.result.relative_gap <= 1e-4


def test_near_the_solution_little_is_left_to_do(monkeypatch):
    """From duals and weights of the optimum, one problem near them is solved at once."""
    X, y = make_data(n=300, d=4, m=M)
    problem = make_problem("dense", Instance("hinge", m=M).loss(), X, y, 10.0)
    solved = by_multipliers(monkeypatch, problem, tol=1e-9, max_epochs=3000)
    run = Run(problem, solved.state, tol=1e-6, max_epochs=1000.0)
    assert multipliers.solve_by_multipliers(run, solved.weights) == "converged"
    assert run.epochs == 1


def test_dual_objectives_rise(monkeypatch):
    """Solved exactly, each problem near the last duals has better ones."""
    X, y = make_data(n=300, d=4, m=M)
    row = Instance("hinge", m=M)
    problem = make_problem("dense", row.loss(), X, y, 10.0)
    found = []
    minimise = multipliers._minimise

    def exactly(run, near, weights, wanted):
        point = minimise(run, near, weights, 1e-12 * wanted)
        found.append(naive_dual(row, point.duals, X, y, problem.costs.cost))
        return point

    monkeypatch.setattr(multipliers, "_minimise", exactly)
    by_multipliers(monkeypatch, problem, tol=1e-6, max_epochs=3000)
    assert len(found) > 2
    assert np.all(np.diff(found) >= -1e-9 * np.abs(found[-1]))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, StopTraining])
def test_a_run_that_is_cut_keeps_the_last_step(stop, monkeypatch):
    X, y = make_data(n=300, d=4, m=M)
    problem = make_problem("dense", Instance("hinge", m=M).loss(), X, y, 10.0)
    calls = []

    def callback(progress):
        calls.append(progress.epoch)
        if len(calls) == 3:
            raise stop

    monkeypatch.setattr(training, "_descend_at_once", lambda *_: True)
    result = train(problem, tol=1e-6, seed=0, callback=callback).result
    assert result.status == ("interrupted" if stop is KeyboardInterrupt else "stopped")
    assert result.solver == "newton"
    assert result.primal < 0.7 * result.at_zero


def test_least_squares_are_those_of_numpy():
    X, y = make_data(n=80, d=4, m=M)
    cost = make_costs(len(y))
    x = np.column_stack([X, np.full(len(X), BIAS)])
    root = np.sqrt(cost)[:, None]
    targets = np.eye(M)[y] - 1.0 / M
    stacked = np.vstack([root * x, np.eye(5)])
    expected = np.linalg.lstsq(stacked, np.vstack([root * targets, np.zeros((5, M))]))[0]
    problem = make_problem("dense", Instance("hinge", m=M).loss(), X, y, cost, BIAS)
    assert_allclose(starts.least_squares(problem), starts.MARGIN_OF_SQUARES * expected, atol=1e-10)


def test_what_suits():
    X, y = make_data(n=60, d=5, m=4)
    hinge = Instance("hinge", m=4).loss()
    assert multipliers.suits_multipliers(make_problem("dense", hinge, X, y))
    assert multipliers.suits_multipliers(make_problem("csr", hinge, X, y))
    assert not multipliers.suits_multipliers(make_problem("gram", hinge, X, y))
    smooth = Instance("smooth_hinge", m=4, smoothing=1.0).loss()
    assert not multipliers.suits_multipliers(make_problem("dense", smooth, X, y))
    assert multipliers.allows_multipliers(make_problem("dense", smooth, X, y))
    softmax = Instance("softmax", m=4).loss()
    assert not multipliers.allows_multipliers(make_problem("dense", softmax, X, y))
    wide = np.zeros((60, 400))
    assert not multipliers.suits_multipliers(make_problem("dense", hinge, wide, y))
