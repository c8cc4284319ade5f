"""A worker's round changes its duals, and sends the change of W that belongs to them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("ray")

from shortlist import losses
from shortlist.distributed.rounds import Rounds, Sigma
from shortlist.distributed.worker import Worker
from shortlist.solvers.storage import State, open_storage
from tests.solvers.problems import make_data, with_bias

BIAS = 0.7
SIGMA = Sigma(1.3, 1.8)


def worker_of(X, y, cost) -> Worker:
    worker = Worker()
    worker.storage, worker.number = open_storage(X, BIAS), 0
    worker.set_costs(y, cost)
    duals = worker.storage.zero_duals(4, False)
    worker.state = State(worker.storage.zero_weights(4), duals, np.zeros((len(y), 2)))
    return worker


@pytest.mark.parametrize("kind", ["epoch", "polish"])
@pytest.mark.parametrize("matrix", [np.asarray, csr_matrix], ids=["dense", "csr"])
def test_the_change_is_that_of_the_duals(matrix, kind):
    """Whatever sigma is, for features and intercept."""
    X, y = make_data(40)
    cost, loss = np.linspace(0.5, 1.5, 40), losses.get("smooth_hinge")
    worker = worker_of(matrix(X), y, cost)
    first = Rounds("epoch", 0, 2, SIGMA, 1)
    weights = worker.visit_round(first, loss, np.zeros((6, 4)), 1)[1]
    before = worker.state.duals.copy()
    rounds = Rounds(kind, 1, 2, SIGMA, 1)
    report, change = worker.visit_round(rounds, loss, weights, 1)
    moved = worker.state.duals - before
    assert np.abs(moved).max() > 1e-3
    expected = -with_bias(X, BIAS).T @ (cost[:, None] * moved)
    np.testing.assert_allclose(change, expected, atol=1e-12)
    assert report.features == pytest.approx((expected[:-1] ** 2).sum())
    assert report.intercept == pytest.approx((expected[-1] ** 2).sum())
    np.testing.assert_allclose(
        weights, -with_bias(X, BIAS).T @ (cost[:, None] * before), atol=1e-12
    )


def test_steps_are_as_long_as_sigma_asks():
    """One example's dual step, with sigma |x|^2 of features and intercept in |x|^2's place."""
    X, y = make_data(1)
    loss, cost = losses.get("smooth_hinge"), np.array([0.8])
    worker = worker_of(X, y, cost)
    weights = np.random.default_rng(0).normal(size=(6, 4))
    worker.visit_round(Rounds("epoch", 0, 2, SIGMA, 1), loss, weights, 1)
    eta = cost[0] * (SIGMA.features * (X[0] @ X[0]) + SIGMA.intercept * BIAS**2)
    expected = loss.dual_step(with_bias(X, BIAS) @ weights, y, eta)
    np.testing.assert_allclose(worker.state.duals, expected, atol=1e-9)
