"""The gap closes for every convex loss, precision and storage, and is what it says it is."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.strategy.train import train
from tests import references
from tests.instances import CONVEX, DUAL, Instance, by_id
from tests.solvers.problems import (
    STORAGES,
    check_bound,
    make_costs,
    make_data,
    make_problem,
    naive_dual,
    naive_primal,
    primal_weights,
    with_bias,
)

BIAS = 0.5
# What rounding may do to objectives that are sums of a few dozen terms.
ROUNDING = {np.float32: 1e-6, np.float64: 1e-13}
OF_PAPER = [row for row in CONVEX if not row.beyond]
MIXED = [row for row in CONVEX if row.mixed]
# In single precision every loss is trained on dense rows, and a loss of each kind in each storage:
# what a storage does does not depend on the loss, and each pair takes seconds to compile.
KINDS = ("hinge-m5-k1", "smooth_hinge-m6-k3-alpha-gamma1", "entropy-m5-k1", "ova_logistic-m5")
IN_SINGLE = [
    (row, storage)
    for row in OF_PAPER
    for storage in STORAGES
    if storage == "dense" or row.id in KINDS
]


def tolerance_for(row: Instance, dtype: type, storage: str) -> float:
    if dtype == np.float32:
        # Bounds on rounding are wide for inner products in single precision.
        return 1e-3 if storage == "gram" else 1e-4
    return 1e-9 if row.smooth else 1e-6


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("row", OF_PAPER, ids=by_id)
def test_gap_closes_and_is_true(row, storage):
    check_gap(row, np.float64, storage)


@pytest.mark.parametrize(
    ("row", "storage"), IN_SINGLE, ids=lambda value: getattr(value, "id", value)
)
def test_gap_closes_in_single_precision(row, storage):
    check_gap(row, np.float32, storage)


@pytest.mark.parametrize("row", [row for row in DUAL if row.beyond], ids=by_id)
def test_gap_closes_beyond_alpha_and_beta(row):
    check_gap(row, np.float64, "dense")


def check_gap(row, dtype, storage):
    X, y = make_data(m=row.m, dtype=dtype)
    cost = make_costs(len(y))
    problem = make_problem(storage, row.loss(), X, y, cost, BIAS)
    tol = tolerance_for(row, dtype, storage)

    solution = train(problem, tol=tol, max_epochs=5000, seed=0)

    result = solution.result
    assert result.status == "converged"
    rounding = ROUNDING[dtype]
    assert 0 <= result.relative_gap <= tol
    W = primal_weights(storage, solution.weights, X, BIAS)
    assert result.primal == pytest.approx(naive_primal(row, W, X, y, cost, BIAS), rel=rounding)
    dual = naive_dual(row, solution.state.duals, X, y, cost, BIAS)
    check_bound(result, dual, storage, dtype, tol, rounding)
    assert np.isfinite(row.loss().conjugate(solution.state.duals, y)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["dense", "blocks", "csr"])
@pytest.mark.parametrize("row", MIXED, ids=by_id)
def test_a_mixture_certifies_by_its_gradient(row, storage, dtype):
    """Its duals are the parts' gradients, whose conjugates are those of the parts."""
    X, y = make_data(m=row.m, dtype=dtype)
    cost = make_costs(len(y))
    problem = make_problem(storage, row.loss(), X, y, cost, BIAS)
    tol = tolerance_for(row, dtype, storage)
    solution = train(problem, tol=tol, max_epochs=5000, seed=0)
    result = solution.result
    assert result.status == "converged"
    assert result.solver == "l-bfgs"
    assert 0 <= result.relative_gap <= tol
    W = solution.weights.astype(np.float64)
    assert result.primal == pytest.approx(
        naive_primal(row, W, X, y, cost, BIAS), rel=ROUNDING[dtype]
    )
    # Every part is a loss of its own, with C times its share: so is its dual.
    scores = with_bias(X, BIAS) @ W
    v, conjugates = np.zeros_like(scores), 0.0
    for share, part in row.parts:
        own = part.loss().gradient(scores, y)
        v += share * own
        values = [references.conjugate(part, u, label) for u, label in zip(own, y, strict=True)]
        conjugates += share * float(cost @ np.array(values))
    dual = -0.5 * float(np.sum((with_bias(X, BIAS).T @ (cost[:, None] * v)) ** 2)) - conjugates
    # A descent may have met a better bound than that of its last weights.
    assert result.dual >= dual - ROUNDING[dtype] * abs(dual)
    finer = train(problem, tol=0.01 * tol, max_epochs=5000, seed=1).result
    assert result.dual <= finer.primal * (1 + ROUNDING[dtype])


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", ["entropy", "smooth_hinge", "hinge", "ova_logistic"])
def test_single_precision_gaps_are_never_negative_beyond_rounding(name, storage):
    """Asked for more than it can have, float32 goes on to its last digits and stays honest."""
    X, y = make_data(dtype=np.float32)
    problem = make_problem(storage, losses.get(name), X, y, 1.0, BIAS)
    result = train(problem, tol=1e-12, max_epochs=300, seed=0).result
    # A bound on rounding is part of the gap.
    assert 0 <= result.relative_gap <= 2e-5
    assert all(e.relative_gap >= -1e-6 for e in result.history)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("name", "tol"), [("hinge", 1e-4), ("smooth_hinge", 1e-8), ("entropy", 1e-8)]
)
def test_zero_rows_cost_their_loss_and_nothing_else(name, tol, storage):
    """Scores of a zero row are zero whatever W: the optimum is that without it, plus C L(0)."""
    X, y = make_data()
    X[::3] = 0.0
    loss = losses.get(name, k=2)
    with_zeros = train(make_problem(storage, loss, X, y), tol=tol, seed=0).result
    kept = X.any(axis=1)
    without = train(make_problem(storage, loss, X[kept], y[kept]), tol=tol, seed=0).result
    assert with_zeros.status == without.status == "converged"
    constant = float(np.sum(loss.value(np.zeros((np.sum(~kept), 4)), y[~kept])))
    assert with_zeros.primal == pytest.approx(without.primal + constant, rel=2 * tol)


def test_scores_of_zero_everywhere_are_solved_at_once():
    """All rows zero: W = 0 is optimal and every example pays L(0)."""
    y = np.arange(6) % 3
    problem = make_problem("dense", losses.get("softmax"), np.zeros((6, 2)), y)
    solution = train(problem, seed=0)
    assert solution.result.status == "converged"
    assert not solution.weights.any()
    assert solution.result.primal == pytest.approx(6 * np.log(3))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_feature_scale_and_C_trade_off(storage, scale):
    """Scaling X by t and C by 1/t^2 leaves the optimal value per C unchanged."""
    X, y = make_data()
    loss = losses.get("smooth_hinge", k=2)
    plain = train(make_problem(storage, loss, X, y, 1.0), tol=1e-8, seed=0).result
    scaled = train(make_problem(storage, loss, X * scale, y, scale**-2), tol=1e-8, seed=0).result
    assert scaled.status == "converged"
    assert scaled.primal * scale**2 == pytest.approx(plain.primal, rel=1e-7)


@pytest.mark.parametrize(
    "row", [Instance("hinge", m=9, k=5, variant="beta"), Instance("ova_hinge", m=9)], ids=by_id
)
def test_hinges_reach_the_last_digits(row):
    X, y = make_data(n=600, d=12, m=9)
    problem = make_problem("dense", row.loss(), X, y, 0.5, 1.0)
    result = train(problem, tol=1e-6, max_epochs=3000, seed=0).result
    assert result.status == "converged"
    assert result.relative_gap <= 1e-6
