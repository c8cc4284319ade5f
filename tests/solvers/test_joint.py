"""Joint steps along the last changes: feasible, an ascent by as much as they say, and faster."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, GramStorage
from shortlist.solvers.storage.support import rows_on_support, support_epoch
from shortlist.solvers.threads import Crew
from tests.instances import Instance, by_id
from tests.solvers.problems import make_costs

# Linear and quadratic conjugates, all families of hinges.
HINGES = [
    Instance("hinge", m=10),
    Instance("hinge", m=10, k=3),
    Instance("hinge", m=10, margins=(0.5, 2.0, 1.0, 0.0, 1.5) * 2),
    Instance("smooth_hinge", m=10, k=3, variant="beta", smoothing=1.0),
    Instance("ova_hinge", m=10),
    Instance("ova_smooth_hinge", m=10, smoothing=0.5),
]
N, BIAS = 300, 0.5


def open_after_an_epoch(row, dtype=np.float64):
    """The support of digits with the Gaussian kernel after an epoch."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:N] / 16, y[:N].astype(np.int64)
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(axis=2)).astype(dtype)
    costs = Costs(y, 10.0 * make_costs(N))
    storage = GramStorage(lambda rows: K[rows], K.diagonal(), K.dtype, BIAS, K)
    problem = Problem(storage, costs, row.m, row.loss())
    state = problem.zero_state()
    order = np.flatnonzero(costs.cost)
    for _ in storage.epoch(problem.loss, order, state, costs, 1, Crew()):
        pass
    support = storage.open_support(rows_on_support(state.duals, costs.cost), state, costs)
    return K + BIAS**2, problem, state, support


def dual(problem, K, state):
    """D as the formula reads."""
    costs = problem.costs
    conjugates = problem.loss.conjugate(state.duals, costs.y)
    norm = np.vdot(state.weights, K @ state.weights)
    return -0.5 * norm - float(np.sum(costs.cost * conjugates))


@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_a_joint_step_rises_by_what_it_says_and_keeps_duals_and_scores_together(row):
    K, problem, state, support = open_after_an_epoch(row)
    assert support.step_jointly(problem.loss) == 0.0  # there is no last change yet
    random = np.random.default_rng(0)
    rises = []
    for _ in range(8):
        zero = support.duals == 0
        support.least_change = 0.0
        support_epoch(support, problem.loss, random.permutation(support.order))
        support.put_back()
        before = dual(problem, K, state)
        rises.append(support.step_jointly(problem.loss))
        support.put_back()
        after = dual(problem, K, state)
        assert after - before == pytest.approx(rises[-1], rel=1e-6, abs=1e-10 * abs(after))
        assert np.isfinite(after)
        # Zero entries stay zero, but for the label's.
        outside = zero.copy()
        outside[np.arange(len(zero)), support.y] = False
        assert not support.duals[outside].any()
        scores = K @ state.weights
        listed = support.duals != 0
        np.testing.assert_allclose(
            support.by_class.T[listed], scores[support.numbers][listed], rtol=1e-9, atol=1e-9
        )
    assert np.count_nonzero(rises) >= 4, rises


@pytest.mark.parametrize("row", HINGES[:1], ids=by_id)
def test_without_changes_there_is_no_step(row):
    _, problem, _, support = open_after_an_epoch(row)
    for _ in range(2):
        support.step_jointly(problem.loss)
    kept, scores = support.duals.copy(), support.by_class.copy()
    assert support.step_jointly(problem.loss) == 0.0
    np.testing.assert_array_equal(support.duals, kept)
    np.testing.assert_array_equal(support.by_class, scores)


@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 1e-5), (np.float32, 1e-3)])
@pytest.mark.parametrize("row", HINGES[:1], ids=by_id)
def test_joint_steps_spare_rounds_of_visits(row, dtype, share):
    """To the same gap on the support."""
    rounds = []
    for jointly in (False, True):
        _, problem, _, support = open_after_an_epoch(row, dtype)
        random = np.random.default_rng(0)
        first = None
        count = 0
        for _ in range(400):
            gap, _, _ = support_epoch(support, problem.loss, random.permutation(support.order))
            first = gap if first is None else first
            if gap <= share * first:
                break
            if jointly:
                support.step_jointly(problem.loss)
            count += 1
        rounds.append(count)
    assert 5 < rounds[1] <= 0.6 * rounds[0], rounds
