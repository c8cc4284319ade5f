"""Several right labels: the gap closes in every storage and precision, and is true."""

import numpy as np
import pytest

from shortlist.losses.labels import label_rows
from shortlist.solvers.kernels.support import support_rows
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs
from shortlist.solvers.strategy.path import carry_over
from shortlist.solvers.strategy.train import train
from shortlist.solvers.threads import Crew
from tests.instances import by_id
from tests.multilabel import Case, closed_value, conjugate
from tests.solvers.problems import (
    STORAGES,
    check_bound,
    make_costs,
    make_storage,
    primal_weights,
    with_bias,
)

BIAS = 0.5
ROUNDING = {np.float32: 1e-6, np.float64: 1e-13}
CASES = [
    Case("hinge", m=6),
    Case("hinge", m=7, k=3, variant="alpha"),
    Case("hinge", m=7, k=3, variant="beta"),
    Case("smooth_hinge", m=6, smoothing=1.0),
    Case("smooth_hinge", m=7, k=3, variant="alpha", smoothing=0.5),
    Case("smooth_hinge", m=7, k=3, variant="beta", smoothing=0.5),
    Case("entropy", m=6),
]


def make_data(case, dtype, n=40, d=5):
    """Examples of overlapping clusters, with the labels of all clusters that are near."""
    rng = np.random.default_rng([n, d, case.m])
    centres = rng.normal(size=(case.m, d))
    X = centres[rng.integers(0, case.m, size=n)] + 0.7 * rng.normal(size=(n, d))
    X[rng.random((n, d)) < 1 / 3] = 0.0
    distances = ((X[:, None] - centres) ** 2).sum(axis=2).argsort(axis=1).argsort(axis=1)
    right = distances < rng.integers(1, case.m - case.k + 1, size=(n, 1))
    return X.astype(dtype), right.astype(int)


def make_problem(case, storage, X, right, cost, bias=BIAS):
    rows = make_storage(storage, X, bias)
    return Problem(rows, Costs(label_rows(right), cost), case.m, case.loss())


@pytest.mark.parametrize(
    ("storage", "dtype"), [*((storage, np.float64) for storage in STORAGES), ("dense", np.float32)]
)
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_gap_closes_and_is_true(case, dtype, storage):
    X, right = make_data(case, dtype)
    cost = make_costs(len(X))
    problem = make_problem(case, storage, X, right, cost)
    tol = 1e-4 if dtype == np.float32 else 1e-9 if case.smooth else 1e-6

    solution = train(problem, tol=tol, max_epochs=5000, seed=0)

    result, loss = solution.result, case.loss()
    assert result.status == "converged"
    rounding = ROUNDING[dtype]
    assert 0 <= result.relative_gap <= tol
    W = primal_weights(storage, solution.weights, X, BIAS)
    scores = with_bias(X, BIAS) @ W
    if case.name == "smooth_hinge":
        values = loss.value(scores, right)
    else:
        values = [closed_value(case, *row) for row in zip(scores, right, strict=True)]
    primal = 0.5 * (W**2).sum() + cost @ np.asarray(values)
    assert result.primal == pytest.approx(primal, rel=rounding)
    duals = solution.state.duals.astype(np.float64)
    own = -with_bias(X, BIAS).T @ (cost[:, None] * duals)
    conjugates = [conjugate(case, *row) for row in zip(duals, right, strict=True)]
    dual = -0.5 * (own**2).sum() - cost @ np.asarray(conjugates)
    check_bound(result, dual, storage, dtype, tol, rounding)
    assert np.isfinite(loss.conjugate(solution.state.duals, right)).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("case", [c for c in CASES if c.name != "entropy"], ids=by_id)
def test_support_visits_never_lose_ground(case, storage):
    """A visit on the support maximises the dual over it, all right labels included."""
    X, right = make_data(case, np.float64)
    cost = make_costs(len(X))
    problem = make_problem(case, storage, X, right, cost)
    state = problem.zero_state()
    every_example = np.flatnonzero(cost > 0)
    for _ in problem.storage.epoch(problem.loss, every_example, state, problem.costs, 1, Crew()):
        pass
    before = problem.certify(state).dual
    rising = [before]
    for _ in range(5):
        rows = support_rows(state.duals, cost, np.empty(case.m))
        support = problem.storage.open_support(rows, state, problem.costs)
        support.visit(problem.loss, support.order)
        problem.storage.close_support(support, state, problem.costs)
        rising.append(problem.certify(state).dual)
        np.testing.assert_allclose(
            state.weights, problem.storage.rebuild(state.duals, cost), atol=1e-12
        )
    assert np.isfinite(case.loss().conjugate(state.duals, right)).all()
    assert (np.diff(rising) >= -1e-12 * abs(before)).all()
    assert rising[-1] > before


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_a_start_carried_over_from_another_C_is_feasible_and_better_than_none(case):
    X, right = make_data(case, np.float64)
    cost = make_costs(len(X))
    first = train(make_problem(case, "dense", X, right, cost), tol=1e-4, seed=0)
    problem = make_problem(case, "dense", X, right, 30.0 * cost)
    state = carry_over(problem, first.state, 30.0)
    assert np.isfinite(case.loss().conjugate(state.duals, right)).all()
    np.testing.assert_allclose(
        state.weights, problem.storage.rebuild(state.duals, 30.0 * cost), atol=1e-9
    )
    found = problem.certify(state)
    assert found.primal >= found.dual > problem.certify(problem.zero_state()).dual


def test_many_labels_and_classes_in_blocks():
    """W too large for one kernel, so blocks; more than a few labels each."""
    rng = np.random.default_rng(0)
    case = Case("smooth_hinge", m=130, k=5, smoothing=1.0)
    X = rng.normal(size=(90, 140))
    right = np.zeros((90, 130), int)
    for row in right:
        row[rng.choice(130, size=rng.integers(1, 40), replace=False)] = 1
    for loss_case in (case, Case("entropy", m=130)):
        problem = make_problem(loss_case, "dense", X, right, np.full(90, 0.01))
        result = train(problem, tol=1e-4, max_epochs=500, seed=0).result
        assert result.status == "converged"
        assert -1e-6 <= result.relative_gap <= 1e-4
