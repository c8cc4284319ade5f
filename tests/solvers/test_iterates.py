"""SDCA makes the same steps in blocks of any size, in sequence, and in every storage."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.kernels.visit import ROWS_OF_GROUP, ROWS_OF_PANEL, assist_blocks
from shortlist.solvers.records.certificate import rounding_in_weights
from shortlist.solvers.storage import dense
from shortlist.solvers.threads import Crew, one_blas_thread
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
SHOWN_EVERYWHERE = (FAMILIES[0], FAMILIES[3])
EPOCHS = 3
N = 75  # more than a block of 64, and no multiple of anything


def run_epochs(problem, every=1, crew=None):
    """States and summed gap shares after the same few permutations, whatever the storage."""
    random = np.random.default_rng(7)
    state = problem.zero_state()
    crew = crew or Crew()
    active = np.flatnonzero(problem.costs.cost > 0)
    shares = []
    for _ in range(EPOCHS):
        order = random.permutation(active)
        epoch = problem.storage.epoch(problem.loss, order, state, problem.costs, every, crew)
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
    grams = [("gram", None), ("whole gram", None)][: 2 if row.k == 1 else 1]
    for storage, block in [*ways, *grams]:
        state, shares = run_epochs(setting(row, storage, block, bias)[-1])
        where = f"{storage}, block {block}"
        np.testing.assert_allclose(state.duals, expected.duals, atol=1e-8, err_msg=where)
        np.testing.assert_allclose(
            primal_weights(storage, state.weights, X, bias), W, atol=1e-8, err_msg=where
        )
        np.testing.assert_allclose(shares, expected_shares, rtol=1e-8, err_msg=where)


def noting(name, called):
    """A kernel that does nothing but say its name."""

    def kernel(*args):
        called.append(name)
        return (0.0, 0.0, 0) if name == "features.visit_in_turn" else (0.0, 0.0)

    return kernel


def test_the_choice_of_blocks_is_not_idle(monkeypatch):
    """The comparison above compares two kernels: one for single visits, one for blocks."""
    row = FAMILIES[0]
    problems = [setting(row, "dense", block)[-1] for block in (None, 7)]
    called = []
    for problem in problems:
        with monkeypatch.context() as patched:
            for name in ("features.visit_in_turn", "dense.lead_blocks"):
                patched.setattr(f"shortlist.solvers.storage.{name}", noting(name, called))
            order = np.arange(N)
            epoch = problem.storage.epoch(
                problem.loss, order, problem.zero_state(), problem.costs, 1, Crew()
            )
            assert sum(epoch) == 0
    assert called == ["features.visit_in_turn", "dense.lead_blocks"]
    # Blocks of 64 have groups and panels of examples within them, those of 7 have not.
    assert 7 < ROWS_OF_GROUP < 64 <= ROWS_OF_PANEL


@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_no_visit_decreases_the_dual(row):
    """An epoch over one example is a single visit."""
    X, y, cost, problem = setting(row, "dense", block=1)
    random = np.random.default_rng(0)
    state = problem.zero_state()
    last = naive_dual(row, state.duals, X, y, cost, 0.5)
    for _ in range(2):
        order = random.permutation(N)
        for i in order:
            visit = order[order == i]
            sum(problem.storage.epoch(problem.loss, visit, state, problem.costs, 1, Crew()))
            dual = naive_dual(row, state.duals, X, y, cost, 0.5)
            assert dual >= last - 1e-12 * max(1.0, abs(last))
            last = dual


def test_gap_shares_sum_to_the_gap_when_nothing_moves():
    """Visits with C_i tiny hardly change anything: their shares add up to the gap before."""
    X, y = make_data(n=N)
    problem = make_problem("dense", losses.get("entropy", k=2), X, y, 1e-9)
    state = problem.zero_state()
    found = problem.certify(state)
    epoch = problem.storage.epoch(problem.loss, np.arange(N), state, problem.costs, 1, Crew())
    assert sum(epoch) == pytest.approx(found.primal - found.dual, rel=1e-6)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("row", SPARSE, ids=by_id)
def test_support_epochs_raise_the_dual_and_keep_zeros(row, storage):
    X, y, cost, problem = setting(row, storage)
    state, _ = run_epochs(problem)
    zero = state.duals == 0
    assert zero.any()
    support = problem.storage.open_support(np.flatnonzero(cost > 0), state, problem.costs)
    last = naive_dual(row, state.duals, X, y, cost, 0.5)
    first = last
    random = np.random.default_rng(3)
    for _ in range(4):
        order = random.permutation(support.order)
        before = state.duals.copy()
        gap, entries, moved = support.visit(problem.loss, order)
        problem.storage.close_support(support, state, problem.costs)
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
        state.weights, problem.storage.rebuild(state.duals, problem.costs.cost), atol=1e-10
    )


@pytest.mark.parametrize("row", SPARSE, ids=by_id)
def test_support_epochs_are_the_same_in_every_storage(row):
    """Also where only some of the examples are visited after the first round."""
    ends = []
    # Inner products of a loss over all classes and of one by class: kernels take long to compile.
    grams = ("gram", "whole gram") if row.k == 1 else ()
    for storage in ("dense", "csr", *grams):
        X, _, cost, problem = setting(row, storage)
        state, _ = run_epochs(problem)
        rows = np.flatnonzero(cost > 0)
        support = problem.storage.open_support(rows, state, problem.costs)
        support.visit(problem.loss, support.order.copy())
        order = support.narrow(support.order[::2].copy())
        support.least_change = 0.0  # inner products postpone visits
        support.visit(problem.loss, order)
        problem.storage.close_support(support, state, problem.costs)
        ends.append((primal_weights(storage, state.weights, X, 0.5), state.duals))
    for weights, duals in ends[1:]:
        np.testing.assert_allclose(weights, ends[0][0], atol=1e-8)
        np.testing.assert_allclose(duals, ends[0][1], atol=1e-8)


@pytest.mark.parametrize("storage", ["dense", "whole gram"])
def test_small_changes_wait_and_are_listed(storage):
    row = next(row for row in SPARSE if row.k == 1)
    X, y, cost, problem = setting(row, storage)
    state, _ = run_epochs(problem)
    support = problem.storage.open_support(np.flatnonzero(cost > 0), state, problem.costs)
    before = support.duals.copy()
    support.least_change = np.inf
    order = support.order.copy()
    _, _, moved = support.visit(problem.loss, order)
    np.testing.assert_array_equal(support.duals, before)
    assert moved > 1
    # All but the smallest of the changes that stand alone.
    alone = []
    for i in order[:moved]:
        support.least_change = 0.0
        kept, scores = support.duals.copy(), support.by_class.copy()
        support.visit(problem.loss, np.array([i]))
        alone.append(
            support.kappa[i] * ((support.cost[i] * (support.duals[i] - kept[i])) ** 2).sum()
        )
        support.duals[:], support.by_class[:] = kept, scores
    support.least_change = least = float(np.median(alone))
    last = naive_dual(row, state.duals, X, y, cost, 0.5)
    support.visit(problem.loss, order[:moved].copy())
    changes = support.cost[:, None] * (support.duals - before)
    sizes = support.kappa * (changes**2).sum(axis=1)
    assert 0 < np.count_nonzero(sizes) < moved
    assert sizes[sizes > 0].min() >= least * (1 - 1e-9)
    problem.storage.close_support(support, state, problem.costs)
    assert naive_dual(row, state.duals, X, y, cost, 0.5) > last


# One instance with full changes, which take matrix products, and one whose changes are listed.
SHARED = [Instance("entropy", m=130), Instance("hinge", m=130)]


def shared_setting(row, block):
    """W too large for single visits, blocks worth three threads, the last of them not full."""
    X, y = make_data(n=300, d=200, m=row.m)
    return make_problem("dense", row.loss(), X, y, make_costs(300), 0.5, block)


def run_with(row, threads, block=128):
    with Crew(threads) as crew, one_blas_thread():
        return run_epochs(shared_setting(row, block), crew=crew)


@pytest.mark.parametrize("row", SHARED, ids=by_id)
def test_threads_make_the_same_steps(row):
    expected, expected_shares = run_with(row, 1, block=1)
    for threads in (1, 2, 3):
        state, shares = run_with(row, threads)
        where = f"{threads} threads"
        np.testing.assert_allclose(state.duals, expected.duals, atol=1e-8, err_msg=where)
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-8, err_msg=where)
        np.testing.assert_allclose(shares, expected_shares, rtol=1e-7, err_msg=where)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("row", SHARED, ids=by_id)
def test_as_many_threads_make_the_same_bits(row, threads):
    """Also when another Python thread asks for it."""
    first, first_shares = run_with(row, threads)
    with ThreadPoolExecutor(1) as elsewhere:
        second, second_shares = elsewhere.submit(run_with, row, threads).result()
    np.testing.assert_array_equal(first.duals, second.duals)
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first_shares, second_shares)
    assert first.rounding == second.rounding


def test_as_many_threads_as_asked_for_take_part(monkeypatch):
    """The comparisons above are between different numbers of threads."""
    taking_part = []

    def assist(*args):
        taking_part.append(args[-1])
        return assist_blocks(*args)

    monkeypatch.setattr(dense, "assist_blocks", assist)
    run_with(SHARED[0], 3)
    assert sorted(taking_part) == sorted([1, 2] * EPOCHS)


@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_weights_drift_from_the_duals_no_further_than_the_bound(row):
    """What rounding has done to W is below what the visits have added up for it."""
    X, y = make_data(n=N, m=row.m, dtype=np.float32)
    # Blocks and sparse rows add the same whatever the loss, and each pair takes seconds to compile.
    ways = [("dense", None), ("dense", 16), ("csr", None)]
    for storage, block in ways if row in SHOWN_EVERYWHERE else ways[:1]:
        problem = make_problem(storage, row.loss(), X, y, make_costs(N), 0.5, block)
        state, _ = run_epochs(problem)
        true = problem.storage.rebuild(state.duals, problem.costs.cost)
        distance = 0.5 * np.sum((state.weights - true) ** 2)
        bound = rounding_in_weights(state.rounding, np.dtype(np.float32))
        assert 0 < distance <= bound
        # A bound that says nothing would be easy.
        assert bound <= 1e-6 * np.sum(true**2)
