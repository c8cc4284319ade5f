"""Joint steps along the last changes: feasible, an ascent by as much as they say, and faster."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from shortlist.solvers.duals import SparseDuals, as_array, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, CsrStorage, DenseStorage, GramStorage, feature_support
from shortlist.solvers.storage.support import rows_on_support
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
        support.visit(problem.loss, random.permutation(support.order))
        support.settle()
        before = dual(problem, K, state)
        rises.append(support.step_jointly(problem.loss))
        support.settle()
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
            gap, _, _ = support.visit(problem.loss, random.permutation(support.order))
            first = gap if first is None else first
            if gap <= share * first:
                break
            if jointly:
                support.step_jointly(problem.loss)
            count += 1
        rounds.append(count)
    assert 5 < rounds[1] <= 0.6 * rounds[0], rounds


@pytest.fixture(autouse=True)
def few_examples_too(monkeypatch):
    monkeypatch.setattr(feature_support, "MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS", 0)


def open_features(row, kind, dtype=np.float64):
    """The support of digits after an epoch, by their features."""
    X, y = load_digits(return_X_y=True)
    X, y = (X[:N] / 16).astype(dtype), y[:N].astype(np.int64)
    costs = Costs(y, 10.0 * make_costs(N))
    storage = CsrStorage(csr_array(X), BIAS) if kind == "csr" else DenseStorage(X, BIAS)
    problem = Problem(storage, costs, row.m, row.loss())
    state = problem.zero_state()
    for _ in storage.epoch(problem.loss, np.flatnonzero(costs.cost), state, costs, 1, Crew()):
        pass
    if kind == "lists":
        duals = SparseDuals(N, row.m, np.dtype(dtype))
        store(duals, slice(0, N), y, state.duals)
        state.duals = duals
    support = storage.open_support(rows_on_support(state.duals, costs.cost), state, costs)
    return problem, state, support


def weights_and_dual(problem, state):
    """W(v), and D as the formula reads."""
    costs, v = problem.costs, as_array(state.duals).astype(np.float64)
    W = problem.storage.rebuild(state.duals, costs.cost)
    conjugates = problem.loss.conjugate(v, costs.y)
    return W, -0.5 * np.vdot(W, W) - float(np.sum(costs.cost * conjugates))


# Every hinge on dense rows, one on sparse rows, one that tells classes apart and one that does not
# on lists: what is read and written does not depend on the loss, and each pair takes seconds to
# compile.
OFTEN = {"csr": HINGES[:1], "lists": HINGES[:3:2]}
KINDS = [
    pytest.param(row, kind, id=f"{row.id}-{kind}", marks=() if often else pytest.mark.slow)
    for row in HINGES
    for kind in ("dense", "csr", "lists")
    for often in [row in OFTEN.get(kind, HINGES)]
]


@pytest.mark.parametrize(("row", "kind"), KINDS)
def test_a_joint_step_of_features_rises_by_what_it_says_and_keeps_duals_and_weights_together(
    row, kind
):
    problem, state, support = open_features(row, kind)
    assert support.step_jointly(problem.loss) == 0.0  # there is no last change yet
    zero = as_array(state.duals) == 0
    zero[np.arange(N), problem.costs.y] = False
    random = np.random.default_rng(0)
    rises = []
    for _ in range(12):
        support.visit(problem.loss, random.permutation(support.order))
        _, before = weights_and_dual(problem, state)
        rises.append(support.step_jointly(problem.loss))
        W, after = weights_and_dual(problem, state)
        assert after - before == pytest.approx(rises[-1], rel=1e-6, abs=1e-10 * abs(after))
        assert np.isfinite(after)
        assert not as_array(state.duals)[zero].any()  # nothing but labels joins the support
        np.testing.assert_allclose(support.by_class.T, W, rtol=1e-9, atol=1e-9)
    assert np.count_nonzero(rises) >= 4, rises


@pytest.mark.parametrize("row", [HINGES[0], HINGES[3]], ids=by_id)
def test_weights_are_made_anew_when_the_support_is_closed(row):
    problem, state, support = open_features(row, "dense", np.float32)
    random = np.random.default_rng(0)
    for _ in range(12):
        support.visit(problem.loss, random.permutation(support.order))
        support.step_jointly(problem.loss)
    problem.storage.close_support(support, state, problem.costs)
    W, _ = weights_and_dual(problem, state)
    np.testing.assert_allclose(state.weights, W, atol=1e-6 * np.abs(W).max())
    # The bound on rounding holds.
    unit = 0.5 * np.finfo(np.float32).eps
    assert np.linalg.norm(state.weights - W) <= 6.0 * unit * np.sqrt(state.rounding)


def test_joint_steps_of_features_spare_rounds_of_visits():
    """To the same gap on the support."""
    rounds = []
    for jointly in (False, True):
        problem, _, support = open_features(HINGES[0], "dense")
        random = np.random.default_rng(0)
        gaps = []
        while len(gaps) < 1000 and (not gaps or gaps[-1] > 1e-5 * gaps[0]):
            if jointly and gaps:
                support.step_jointly(problem.loss)
            gap, _, _ = support.visit(problem.loss, random.permutation(support.order))
            gaps.append(gap)
        rounds.append(len(gaps))
    assert 5 < rounds[1] <= 0.6 * rounds[0], rounds


@pytest.mark.parametrize(
    "setting", ["MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS", "PASSES_OVER_WEIGHTS"]
)
def test_where_joint_steps_do_not_pay_there_are_none(setting, monkeypatch):
    monkeypatch.setattr(feature_support, setting, 1e9)
    problem, _, support = open_features(HINGES[0], "csr")
    for _ in range(3):
        support.visit(problem.loss, support.order)
        assert support.step_jointly(problem.loss) == 0.0
    assert support.not_worth_it
