"""Dual steps: a generic solver, and the optimality condition v in dL(q - eta v)."""

import numpy as np
import pytest

from tests import references
from tests.instances import DUAL, by_id
from tests.losses import oracles
from tests.losses.extremes import ETAS


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_dual_step_by_a_generic_solver(row):
    loss = row.loss()
    for seed, eta in ((9, 0.3), (10, 5.0)):
        q, y = row.scores(seed)[0], row.labels(seed)[0]
        np.testing.assert_allclose(
            loss.dual_step(q, y, eta), oracles.dual_step(row, q, y, eta), atol=2e-5
        )


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_fenchel_young_at_the_step(row, eta):
    """v minimises iff it is a subgradient at p = q - eta v, iff L(p) + L*(v) = <p, v>."""
    loss = row.loss()
    q, y = row.scores(11, n=20), row.labels(11, n=20)
    v = loss.dual_step(q, y, eta)
    p = q - eta * v
    gap = loss.value(p, y) + loss.conjugate(v, y) - (p * v).sum(axis=1)
    assert (np.abs(gap) <= 2e-14 * (1 + np.abs(p).max(axis=1) + np.abs(q).max(axis=1))).all()


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("row", [row for row in DUAL if row.smooth], ids=by_id)
def test_step_of_a_smooth_loss_is_the_gradient_where_it_leads(row, eta):
    """Sharper than the Fenchel-Young gap, which is of second order in the error."""
    loss = row.loss()
    q, y = row.scores(12, n=20), row.labels(12, n=20)
    v = loss.dual_step(q, y, eta)
    p = q - eta * v
    # p is known to rounding, and the gradient moves by at most (1/gamma or 1) times that.
    rounding = np.finfo(float).eps * (np.abs(q).max() + eta * np.abs(v).max())
    tolerance = 1e-13 * np.abs(v).max() + 8.0 * rounding / (row.smoothing or 1.0)
    np.testing.assert_allclose(v, loss.gradient(p, y), atol=tolerance, rtol=1e-9)


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_no_dual_point_does_better(row):
    loss, rng = row.loss(), np.random.default_rng(row.m)
    q, y = row.scores(13, n=5), row.labels(13, n=5)
    for eta in (0.0, 0.5, 50.0):
        v = loss.dual_step(q, y, eta)

        def objective(v, rows=slice(None), eta=eta):
            squares = 0.5 * eta * (v**2).sum(axis=-1)
            return loss.conjugate(v, y[rows]) - (q[rows] * v).sum(axis=-1) + squares

        best = objective(v)
        for i in range(5):
            for _ in range(20):
                other = references.random_dual(row, rng, int(y[i]))
                between = v[i] + rng.choice([1.0, 1e-2, 1e-4]) * (other - v[i])
                assert objective(between, i) >= best[i] - 1e-12


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_without_curvature_the_step_is_the_gradient(row):
    loss = row.loss()
    q, y = row.scores(14, n=10), row.labels(14, n=10)
    np.testing.assert_allclose(loss.dual_step(q, y, 0.0), loss.gradient(q, y), atol=1e-13)


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_one_eta_for_each_example(row):
    loss = row.loss()
    q, y = row.scores(15, n=4), row.labels(15, n=4)
    eta = np.array([0.0, 0.1, 3.0, 1e4])
    together = loss.dual_step(q, y, eta)
    for i in range(4):
        np.testing.assert_array_equal(together[i], loss.dual_step(q[i], y[i], eta[i]))
