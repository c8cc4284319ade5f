"""L-BFGS alone: it decreases at every step and reaches the minimum."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from shortlist.solvers.records.certificate import Point
from shortlist.solvers.strategy.lbfgs import lbfgs

EPS = float(np.finfo(np.float64).eps)


def quadratic(d=30, condition=1e3, seed=0):
    """1/2 (w - best)' A (w - best), eigenvalues spread over ``condition``."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    A = basis @ (np.geomspace(1.0, condition, d)[:, None] * basis.T)
    best = rng.normal(size=d)

    def objective(w):
        gradient = A @ (w - best)
        return Point(w, 0.5 * float((w - best) @ gradient), gradient)

    return objective, best


def logistic(n=60, d=6, C=10.0, seed=0):
    """1/2 |w|^2 + C sum log(1 + exp(-y x'w))."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)

    def objective(w):
        margins = y * (X @ w)
        value = 0.5 * float(w @ w) + C * float(np.logaddexp(0.0, -margins).sum())
        return Point(w, value, w - C * X.T @ (y * expit(-margins)))

    return objective


def points(objective, start, most=500, noise=2 * EPS):
    return list(islice(lbfgs(objective, objective(start), noise), most))


def test_a_quadratic():
    objective, best = quadratic()
    start = np.zeros(30)
    found = points(objective, start)
    values = [objective(start).value, *(point.value for point in found)]
    assert (np.diff(values) <= 2 * EPS * np.array(values[:-1])).all()
    np.testing.assert_allclose(found[-1].place, best, atol=1e-6)
    for point in found:
        assert point.value == objective(point.place).value
        np.testing.assert_array_equal(point.gradient, objective(point.place).gradient)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_a_logistic_problem(C):
    objective = logistic(C=C)
    start = np.zeros(6)
    reference = minimize(
        lambda w: (objective(w).value, objective(w).gradient),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    found = points(objective, start)
    values = np.array([objective(start).value, *(point.value for point in found)])
    assert (np.diff(values) <= 2 * EPS * values[:-1]).all()
    assert found[-1].value <= reference.fun * (1 + 1e-12)
    # P - 1/2 |grad P|^2 bounds the optimum from below: it is reached.
    gradient = found[-1].gradient
    assert 0.5 * float(gradient @ gradient) <= 1e-10 * found[-1].value


def test_it_ends_by_itself_where_nothing_is_left_to_gain():
    objective, best = quadratic(d=5, condition=10.0)
    assert len(points(objective, np.zeros(5), most=10_000)) < 1000
    assert points(objective, best) == []


def test_single_precision_goes_to_its_last_digits():
    objective, best = quadratic(d=10, condition=100.0)

    def single(w):
        point = objective(w.astype(np.float64))
        # A constant, so that values are rounded as those of training are.
        return Point(w, 1.0 + point.value, point.gradient.astype(np.float32))

    noise = 2 * float(np.finfo(np.float32).eps)
    found = points(single, np.zeros(10, np.float32), noise=noise)
    assert all(point.place.dtype == np.float32 for point in found)
    np.testing.assert_allclose(found[-1].place, best, atol=1e-2)
    values = np.array([point.value for point in found])
    assert (np.diff(values) <= 2 * noise * values[:-1]).all()


def test_an_objective_that_overflows_is_stepped_back_from():
    """exp(w) + exp(-w) far from its minimum, infinite a long step away."""

    def objective(w):
        with np.errstate(over="ignore", invalid="ignore"):
            return Point(w, float(np.cosh(w).sum()), np.sinh(w))

    found = points(objective, np.array([30.0, -20.0]))
    np.testing.assert_allclose(found[-1].place, 0.0, atol=1e-6)
    assert (np.diff([point.value for point in found]) <= 2 * EPS * found[0].value).all()
