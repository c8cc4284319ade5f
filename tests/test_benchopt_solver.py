"""The solver for benchopt minimises that benchmark's objective. Benchopt itself is not needed."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

FILE = Path(__file__).parent.parent / "benchmarks" / "benchopt" / "shortlist_sdca.py"


@pytest.fixture
def solver(monkeypatch):
    criteria = SimpleNamespace(SufficientProgressCriterion=lambda **options: options)
    monkeypatch.setitem(sys.modules, "benchopt", SimpleNamespace(BaseSolver=object))
    monkeypatch.setitem(sys.modules, "benchopt.stopping_criterion", criteria)
    spec = importlib.util.spec_from_file_location("shortlist_sdca", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Solver()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_finds_what_logistic_regression_finds(solver, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.where(X[:, 0] + 0.5 + rng.normal(size=200) > 0, 1, -1)
    solver.set_objective(X, y, lmbd=0.5, fit_intercept=fit_intercept)
    solver.run(1e-8)
    theirs = LogisticRegression(C=2.0, fit_intercept=fit_intercept, tol=1e-10).fit(X, y)
    expected = theirs.coef_.ravel()
    if fit_intercept:
        expected = np.r_[expected, theirs.intercept_]
    np.testing.assert_allclose(solver.get_result()["beta"], expected, atol=1e-3)
