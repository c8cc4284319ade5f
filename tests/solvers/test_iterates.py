"""SDCA makes the same steps in blocks of any size, in sequence, and in every storage."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.rows import DenseRows
from tests.instances import Instance, by_id
from tests.solvers.problems import (
    make_costs,
    make_data,
    make_problem,
    naive_dual,
    primal_weights,
)

# One instance per family of kernels.
FAMILIES = [
    Instance("hinge", m=5),
    Instance("hinge", m=5, k=3),
    Instance("smooth_hinge", m=5, k=3, variant="beta", smoothing=1.0),
    Instance("entropy", m=5),
    Instance("entropy", m=5, k=3),
    Instance("ova_smooth_hinge", m=5, smoothing=0.5),
    Instance("ova_logistic", m=5),
]
SPARSE = [row for row in FAMILIES if row.name.endswith("hinge")]
EPOCHS = 3
N = 75  # more than a block of 64, and no multiple of anything


def run_epochs(problem, every=1):
    """States and summed gap shares after the same few permutations, whatever the storage."""
    random = np.random.default_rng(7)
    state = problem.zero_state()
    active = np.flatnonzero(problem.costs.cost > 0)
    shares = []
    for _ in range(EPOCHS):
        order = random.permutation(active)
        epoch = problem.rows.epoch(problem.loss.spec, order, state, problem.costs, every)
        shares.append(sum(epoch))
    return state, np.array(shares)


def setting(row, storage, block=None, bias=0.5):
    X, y = make_data(n=N, m=row.m)
    cost = make_costs(N)
    return X, y, cost, make_problem(storage, row.loss(), X, y, cost, bias, block)


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_every_way_makes_the_same_steps(row, bias):
    X, *_, reference = setting(row, "dense", block=1, bias=bias)
    expected, expected_shares = run_epochs(reference)
    W = expected.weights
    ways = [("dense", 64), ("dense", 7), ("dense", None), ("fortran", None), ("csr", None)]
    for storage, block in [*ways, ("gram", None)]:
        state, shares = run_epochs(setting(row, storage, block, bias)[-1])
        where = f"{storage}, block {block}"
        np.testing.assert_allclose(state.duals, expected.duals, atol=1e-8, err_msg=where)
        np.testing.assert_allclose(
            primal_weights(storage, state.weights, X, bias), W, atol=1e-8, err_msg=where
        )
        np.testing.assert_allclose(shares, expected_shares, rtol=1e-8, err_msg=where)


def test_the_choice_of_blocks_is_not_idle():
    """The comparison above compares two paths through the code: one kernel call or many blocks."""
    row = FAMILIES[0]
    problems = [setting(row, "dense", block)[-1] for block in (None, 7)]
    calls = []
    for problem in problems:
        assert isinstance(problem.rows, DenseRows)
        state, order = problem.zero_state(), np.arange(N)
        epoch = problem.rows.epoch(problem.loss.spec, order, state, problem.costs, 1)
        calls.append(len(list(epoch)))
    assert calls == [1, -(-N // 7)]


@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_no_visit_decreases_the_dual(row):
    """With blocks of one, the dual can be looked at after every single visit."""
    X, y, cost, problem = setting(row, "dense", block=1)
    random = np.random.default_rng(0)
    state = problem.zero_state()
    last = naive_dual(row, state.duals, X, y, cost, 0.5)
    for _ in range(2):
        order = random.permutation(N)
        for _ in problem.rows.epoch(problem.loss.spec, order, state, problem.costs, 1):
            dual = naive_dual(row, state.duals, X, y, cost, 0.5)
            assert dual >= last - 1e-12 * max(1.0, abs(last))
            last = dual


def test_gap_shares_sum_to_the_gap_when_nothing_moves():
    """Visits with C_i tiny hardly change anything: their shares add up to the gap before."""
    X, y = make_data(n=N)
    problem = make_problem("dense", losses.get("entropy", k=2), X, y, 1e-9)
    state = problem.zero_state()
    primal, dual = problem.evaluate(state)
    epoch = problem.rows.epoch(problem.loss.spec, np.arange(N), state, problem.costs, 1)
    assert sum(epoch) == pytest.approx(primal - dual, rel=1e-6)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("row", SPARSE, ids=by_id)
def test_support_epochs_raise_the_dual_and_keep_zeros(row, storage):
    X, y, cost, problem = setting(row, storage)
    state, _ = run_epochs(problem)
    zero = state.duals == 0
    assert zero.any()
    by_class = np.ascontiguousarray(state.weights.T)
    last = naive_dual(row, state.duals, X, y, cost, 0.5)
    first = last
    random = np.random.default_rng(3)
    for _ in range(4):
        order = random.permutation(np.flatnonzero(cost > 0))
        before = state.duals.copy()
        gap, entries, moved = problem.rows.support_epoch(
            problem.loss, order, by_class, state.duals, problem.costs
        )
        assert gap >= 0
        assert 0 < entries <= zero.size
        changed = np.flatnonzero((state.duals != before).any(axis=1))
        np.testing.assert_array_equal(np.sort(order[:moved]), changed)
        dual = naive_dual(row, state.duals, X, y, cost, 0.5)
        assert dual >= last - 1e-12 * abs(last)
        last = dual
    assert last > first
    # A visit may set an entry to zero but never a zero entry to something else, except the
    # label's own, which balances the others.
    outside = zero.copy()
    outside[np.arange(N), y] = False
    assert not state.duals[outside].any()
    assert np.isfinite(problem.loss.conjugate(state.duals, y)).all()
    np.testing.assert_allclose(
        by_class.T, problem.rows.rebuild(state.duals, problem.costs.cost), atol=1e-10
    )


@pytest.mark.parametrize("row", SPARSE, ids=by_id)
def test_support_epochs_are_the_same_dense_and_sparse(row):
    ends = []
    for storage in ("dense", "csr"):
        *_, problem = setting(row, storage)
        state, _ = run_epochs(problem)
        by_class = np.ascontiguousarray(state.weights.T)
        problem.rows.support_epoch(problem.loss, np.arange(N), by_class, state.duals, problem.costs)
        ends.append((by_class, state.duals))
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-8)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=1e-8)
