"""The best multiple of the weights."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from shortlist import TopKClassifier, losses
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, CsrStorage, DenseStorage
from shortlist.solvers.strategy import multiples
from shortlist.solvers.strategy.multiples import best_multiple
from shortlist.solvers.strategy.train import train

N, D, M = 300, 12, 5


def make_problem(loss, storage=DenseStorage, C=3.0, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((N, D))
    y = random.integers(M, size=N)
    cost = C * random.uniform(0.5, 1.5, N)
    rows = csr_array(x) if storage is CsrStorage else x
    return Problem(storage(rows, bias=0.7), Costs(y, cost), M, loss), x, random


def objective(problem, x, weights):
    """P(W), as the formula reads."""
    scores = x @ weights[:-1] + 0.7 * weights[-1]
    values = problem.loss.value(scores, problem.costs.y)
    return 0.5 * (weights**2).sum() + problem.costs.cost @ values


@pytest.mark.parametrize("storage", [DenseStorage, CsrStorage])
@pytest.mark.parametrize("size", [0.7, 0.99, 1.0, 1.001, 2.0])
@pytest.mark.parametrize(
    ("name", "k"), [("hinge", 1), ("hinge", 3), ("ova_hinge", 1), ("smooth_hinge", 1)]
)
def test_it_minimises_the_objective_along_the_ray(name, k, size, storage):
    problem, x, random = make_problem(losses.get(name, k=k), storage)
    noise = 0.02 * random.standard_normal((D + 1, M))
    weights = size * (train(problem, tol=1e-4, seed=0).weights + noise)
    t, fall = best_multiple(problem, weights)
    at = lambda scale: objective(problem, x, scale * weights)  # noqa: E731
    assert fall == pytest.approx(at(1.0) - at(t), rel=1e-9, abs=1e-9)
    assert fall >= 0.0
    best = minimize_scalar(at, bounds=(0.4, 1.6), method="bounded", options={"xatol": 1e-9}).fun
    # The search ends short of the minimum, with most of what can be gained.
    assert at(t) - best <= 0.05 * (at(1.0) - best) + 1e-9 * best


def test_weights_of_zero_stay():
    problem, _, _ = make_problem(losses.get("hinge"))
    assert best_multiple(problem, np.zeros((D + 1, M))) == (1.0, 0.0)


def test_a_sample_of_the_examples_chooses_nearly_the_same(monkeypatch):
    problem, x, _ = make_problem(losses.get("hinge"))
    weights = 0.8 * train(problem, tol=1e-4, seed=0).weights
    best = best_multiple(problem, weights)[0]
    monkeypatch.setattr(multiples, "MAX_SCORES", N * M // 4)
    t, _ = best_multiple(problem, weights)
    gained = objective(problem, x, weights) - objective(problem, x, t * weights)
    possible = objective(problem, x, weights) - objective(problem, x, best * weights)
    assert gained >= 0.5 * possible


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_that_is_cut_short_returns_the_better_weights(dtype, monkeypatch):
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 40)).astype(dtype)
    y = (X[:, :6] + 0.3 * random.standard_normal((200, 6))).argmax(axis=1)
    given = {"C": 1e3, "max_epochs": 3, "random_state": 0, "fit_intercept": False}

    def fit():
        with pytest.warns(UserWarning, match="gap"):
            return TopKClassifier("hinge", **given).fit(X, y)

    scaled = fit()
    monkeypatch.setattr(multiples, "multiples_help", lambda problem: False)
    plain = fit()
    assert scaled.result_.primal < plain.result_.primal
    # The bound is lowered by what rounding may do to a primal that it does not belong to.
    assert plain.result_.dual - scaled.result_.dual <= 1e-4 * scaled.result_.primal
    scores = X.astype(np.float64) @ scaled.coef_.astype(np.float64).T
    values = losses.get("hinge").value(scores, y)
    own = 0.5 * (scaled.coef_.astype(np.float64) ** 2).sum() + 1e3 * values.sum()
    assert scaled.result_.primal == pytest.approx(own, rel=1e-6 if dtype == np.float32 else 1e-12)
