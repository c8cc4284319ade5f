"""However a fit ends, it returns the best primal, the best bound and the weights of the former."""

import numpy as np
import pytest

from shortlist.solvers import StopTraining
from shortlist.solvers.records.run import Run
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.solvers.problems import make_data, make_problem, naive_primal, primal_weights

BIAS = 0.5
LOSSES = [
    Instance("entropy", m=4),
    Instance("hinge", m=4),
    Instance("smooth_hinge", m=4, smoothing=1.0),
]
# Coordinate steps alone, and where a descent takes over.
STRENGTHS = pytest.mark.parametrize("C", [0.1, 300.0])
ROUNDING = {np.float32: 1e-6, np.float64: 1e-12}


@pytest.fixture
def measured(monkeypatch):
    """All that training measures: primals, and bounds that may be reported."""
    pairs = []
    record = Run.record

    def spy(self, found, weights, trusted=True):
        bounds = {} if trusted else {"dual": -np.inf, "alone": -np.inf}
        pairs.append((self, found._replace(**bounds)))
        return record(self, found, weights, trusted)

    monkeypatch.setattr(Run, "record", spy)
    return pairs


def of_inner_products(A, X):
    """What rounding the inner products, which are the data here, may change in |W|^2 / 2."""
    sizes = np.abs(X.astype(np.float64) @ X.T.astype(np.float64) + BIAS**2)
    A = np.abs(A.astype(np.float64))
    return 0.5 * float(np.finfo(X.dtype).eps) * float(np.sum(A * (sizes @ A)))


def check(row, storage, dtype, solution, measured, X, y, C):
    """A descent on smoothed hinges measures their objectives too: those are not reported."""
    result = solution.result
    own = [pair for run, pair in measured if run.problem.loss == row.loss()]
    rounding = ROUNDING[dtype]
    assert result.primal == pytest.approx(min(pair.primal for pair in own), rel=rounding)
    assert result.primal == pytest.approx(min(e.primal for e in result.history), rel=rounding)
    bound = max(0.0, *(pair.dual for pair in own))
    # A bound from another evaluation than the primal leaves room for the rounding of both.
    alone = max(0.0, *(pair.alone for pair in own))
    mixed = 64 * np.finfo(dtype).eps * max(pair.primal for pair in own)
    assert min(alone, result.primal) - mixed <= result.dual <= min(bound, result.primal)
    assert result.dual <= max(e.dual for e in result.history)
    assert 0 <= result.relative_gap <= 1
    assert result.gain_gap >= 0
    W = primal_weights(storage, solution.weights, X, BIAS)
    cost = np.full(len(y), C)
    rounded = rounding + (of_inner_products(solution.weights, X) if storage == "gram" else 0.0)
    assert result.primal == pytest.approx(
        naive_primal(row, W, X, y, cost, BIAS), rel=rounding, abs=rounded
    )
    primals = [e.primal for e in result.history]
    duals = [e.dual for e in result.history]
    # A descent in single precision is confirmed in double, which may be larger by rounding.
    assert (np.diff(primals) <= (rounding if dtype == np.float32 else 0) * max(primals)).all()
    assert (np.diff([e.epoch for e in result.history]) >= 0).all()
    if dtype == np.float64:
        doubt = max(pair.dual - pair.alone for pair in own if np.isfinite(pair.dual))
        last_places = 4 * np.finfo(dtype).eps * max(duals)
        assert (np.diff(duals) >= -mixed - doubt - last_places).all()


def setting(row, storage, dtype, C):
    X, y = make_data(n=60, m=row.m, dtype=dtype)
    return X, y, make_problem(storage, row.loss(), X, y, C, BIAS)


@pytest.mark.parametrize("max_epochs", [1, 2, 3])
@STRENGTHS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr", "gram"])
@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_few_epochs(row, storage, dtype, C, max_epochs, measured):
    X, y, problem = setting(row, storage, dtype, C)
    solution = train(problem, tol=1e-10, max_epochs=max_epochs, seed=0)
    assert solution.result.status == "max_epochs"
    check(row, storage, dtype, solution, measured, X, y, C)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, StopTraining])
@pytest.mark.parametrize("call", [1, 2, 5, 30])
@STRENGTHS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_a_stop_at_any_time(row, dtype, C, call, stop, measured):
    X, y, problem = setting(row, "dense", dtype, C)
    calls = []

    def callback(progress):
        calls.append(progress.epoch)
        if len(calls) == call:
            raise stop

    solution = train(problem, tol=1e-12, max_epochs=1000, seed=0, callback=callback)
    result = solution.result
    if len(calls) == call:
        assert result.status == ("interrupted" if stop is KeyboardInterrupt else "stopped")
    check(row, "dense", dtype, solution, measured, X, y, C)


@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_a_long_descent_ends_with_its_best(row, measured):
    X, y, problem = setting(row, "dense", np.float32, 1e4)
    solution = train(problem, tol=1e-3, max_epochs=120, seed=0)
    check(row, "dense", np.float32, solution, measured, X, y, 1e4)
