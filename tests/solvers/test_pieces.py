"""Rows that are read in pieces: the same optimum and certificate as in memory."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shortlist._memory import resident_bytes
from shortlist.datasets.on_disk import rows_on_disk
from shortlist.solvers.duals import SparseDuals, as_array, mapped_duals
from shortlist.solvers.placing import Placing, place
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, DenseStorage, PiecedStorage, pieces
from shortlist.solvers.storage.mixing import mixtures
from shortlist.solvers.storage.support import ONE_ROUND
from shortlist.solvers.strategy import ascent
from shortlist.solvers.strategy.path import Path
from shortlist.solvers.strategy.train import train
from shortlist.solvers.threads import Crew
from tests.instances import Instance
from tests.solvers.problems import make_costs, make_data, make_problem, naive_dual, naive_primal

BIAS = 0.5
LOSSES = [
    Instance("entropy", m=4),
    Instance("hinge", m=4),
    Instance("smooth_hinge", m=4, smoothing=1.0),
]


def pieced(row, X, y, cost, duals="memory", rows=7, matrix=np.asarray) -> Problem:
    storage = PiecedStorage(rows_on_disk(matrix(X)), BIAS, rows, duals)
    return Problem(storage, Costs(y, cost), row.m, row.loss())


# Where duals lie does not depend on how rows are kept: the hinge, which is slow, has not both.
WAYS = [
    pytest.param(row, duals, matrix, id=f"{row.id}-{duals}-{kind}", marks=marks)
    for row in LOSSES
    for duals in ("memory", "mapped", "none")
    for kind, matrix in (("dense", np.asarray), ("csr", csr_matrix))
    if duals != "none" or row.loss().smooth
    for both in [row.name == "hinge" and duals == "mapped" and kind == "csr"]
    for marks in [pytest.mark.slow if both else ()]
]


@pytest.mark.parametrize(("row", "duals", "matrix"), WAYS)
def test_same_optimum_as_in_memory(row, duals, matrix):
    X, y = make_data()
    cost = make_costs(len(y))
    problem = pieced(row, X, y, cost, duals, matrix=matrix)
    assert problem.storage.n_pieces == 6
    solution = train(problem, tol=1e-6, max_epochs=5000, seed=0)
    result = solution.result
    assert result.status == "converged"
    assert result.primal == pytest.approx(naive_primal(row, solution.weights, X, y, cost, BIAS))
    whole = train(make_problem("dense", row.loss(), X, y, cost, BIAS), tol=1e-6, seed=0)
    assert result.primal == pytest.approx(whole.result.primal, rel=2e-6)
    assert result.dual <= whole.result.primal
    if duals != "none":
        v = as_array(solution.state.duals)
        assert result.dual <= naive_dual(row, v, X, y, cost, BIAS) * (1 + 1e-9)


def test_sums_are_those_in_memory():
    row = LOSSES[0]
    X, y = make_data()
    cost = make_costs(len(y))
    here, there = make_problem("dense", row.loss(), X, y, cost, BIAS), pieced(row, X, y, cost)
    W = np.random.default_rng(0).normal(size=(6, 4))
    ours, theirs = (_all_sums(problem, W) for problem in (there, here))
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=1e-12)


def _all_sums(problem, W):
    state = problem.zero_state()
    problem.fill_duals(W, state)
    value, gradient = problem.primal_gradient(W)
    return [
        problem.certify(state)[:2],
        value,
        gradient,
        state.weights,
        problem.storage.class_sums(problem.costs, 4),
        problem.storage.sample(3),
        problem.storage.kappa,
    ]


def test_an_epoch_visits_every_example_once():
    X, y = make_data()
    problem = pieced(LOSSES[0], X, y, np.ones(len(y)))
    state = problem.zero_state()
    order = np.random.default_rng(0).permutation(len(y))
    list(problem.storage.epoch(problem.loss, order, state, problem.costs, 1, Crew()))
    assert (np.abs(state.duals).sum(axis=1) > 0).all()
    np.testing.assert_allclose(state.weights, problem.storage.rebuild(state.duals, np.ones(40)))


def test_a_path_without_duals_goes_up_and_down():
    X, y = make_data()
    problem = pieced(LOSSES[0], X, y, np.ones(len(y)), "none")
    path = Path(problem, 1e-4, 5000, seed=0)
    for C in (0.1, 1.0, 0.3):
        found = path.solve(C).result
        dense = train(make_problem("dense", problem.loss, X, y, C, BIAS), tol=1e-6, seed=0)
        assert found.status == "converged"
        assert found.primal == pytest.approx(dense.result.primal, rel=2e-4)


def test_stopped_without_duals_keeps_a_certified_model():
    X, y = make_data()
    problem = pieced(LOSSES[0], X, y, np.ones(len(y)), "none")
    result = train(problem, tol=1e-9, seed=0, callback=lambda progress: True).result
    assert result.status == "stopped"
    assert np.isfinite(result.gap)


def test_values_that_are_not_numbers_are_refused():
    X, y = make_data()
    X[23, 1] = np.nan
    with pytest.raises(ValueError, match="example 23"):
        pieced(LOSSES[0], X, y, np.ones(len(y)))


def test_a_reader_that_fails_ends_the_fit():
    X, y = make_data()
    problem = pieced(LOSSES[0], X, y, np.ones(len(y)))

    def fail(begin, end):
        raise OSError("the disk is gone")

    problem.storage.source.read = fail
    with pytest.raises(OSError, match="gone"):
        train(problem, seed=0)


def test_lists_of_duals_in_pieces_share_their_pool():
    X, y = make_data()
    row = LOSSES[1]
    problem = pieced(row, X, y, np.ones(len(y)))
    dense = problem.zero_state()
    lists = problem.zero_state()
    lists.duals = SparseDuals(40, 4, np.float64)
    order = np.random.default_rng(0).permutation(40)
    for state in (dense, lists):
        for _ in range(3):
            list(problem.storage.epoch(problem.loss, order, state, problem.costs, 1, Crew()))
    np.testing.assert_array_equal(as_array(lists.duals), dense.duals)
    lists.duals.most_bytes = 1
    with pytest.raises(MemoryError, match="nonzero duals"):
        lists.duals.reserve(10**6)


def test_mapped_duals_are_an_array():
    duals = mapped_duals(10, 3, np.float32)
    duals[2:5] = 1.0
    assert type(duals) is np.ndarray
    assert duals.sum() == 9.0


def test_mapped_duals_do_not_stay_in_memory():
    n, m = 40_000, 1000  # 153 MiB
    X, y = np.ones((n, 1), np.float32), np.arange(n) % m
    storage = PiecedStorage(rows_on_disk(X), BIAS, 2000, "mapped")
    duals, costs = storage.zero_duals(m, False), Costs(y, np.ones(n))
    before = resident_bytes()
    storage.spread_duals(1.0, 0.0, costs, duals)
    storage.scale_duals(duals, 0.5)
    assert resident_bytes() - before < 60 << 20
    assert duals[123, 123] == 0.5
    assert duals[123].sum() == 0.5


@pytest.mark.parametrize("visited", ["all", "few"])
def test_mixtures_hold_every_visit_once(visited):
    random = np.random.default_rng(0)
    n = 1003  # the last run is shorter
    order = random.permutation(n)[: n if visited == "all" else 50]
    found = mixtures(order, n, 100, 10, random)
    seen = []
    for mixture in found:
        rows = mixture.taken(np.arange(n))
        assert len(set(rows)) == mixture.size <= 100
        assert [row for ends in mixture.ranges for row in range(*ends)] == rows.tolist()
        here = rows[mixture.visits]
        places = [list(order).index(row) for row in here]
        assert places == sorted(places)
        seen += list(here)
        copy = np.full(n, -1)
        mixture.put_back(rows, copy)
        np.testing.assert_array_equal(np.flatnonzero(copy >= 0), np.sort(rows))
    assert sorted(seen) == sorted(order)
    # Few visits read few rows.
    assert sum(mixture.size for mixture in found) == (n if visited == "all" else 50)
    other = mixtures(order, n, 100, 10, random)
    assert other[0].ranges != found[0].ranges


def test_pieces_gain_as_much_as_memory():
    """An epoch's pieces are others every time: the same rows together would gain far less."""
    random = np.random.default_rng(0)
    n, size, row = 2000, 200, Instance("entropy", m=20)
    y = random.integers(0, 20, n)
    X = random.normal(size=(20, 40))[y] + 2 * random.normal(size=(n, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    whole = make_problem("dense", row.loss(), X, y, 1.0, BIAS)
    parts = np.arange(n).reshape(-1, size)

    def same_rows_together():
        return np.concatenate([random.permutation(part) for part in random.permutation(parts)])

    in_pieces = _gap_after(
        4, pieced(row, X, y, np.ones(n), rows=size), lambda: random.permutation(n)
    )
    in_memory = _gap_after(4, whole, lambda: random.permutation(n))
    together = _gap_after(4, whole, same_rows_together)
    assert in_pieces < 2.0 * in_memory
    assert in_pieces < 0.5 * together


def _gap_after(epochs, problem, order):
    state = problem.zero_state()
    for _ in range(epochs):
        list(problem.storage.epoch(problem.loss, order(), state, problem.costs, 1, Crew()))
    found = problem.certify(state)
    return found.primal - found.dual


@pytest.mark.parametrize("lists", [True, False])
def test_an_epoch_that_is_cut_leaves_duals_in_their_domain(monkeypatch, lists):
    X, y = make_data()
    row, cost = LOSSES[1], np.ones(len(y))
    problem = pieced(row, X, y, cost)
    state = problem.zero_state()
    if lists:
        state.duals = SparseDuals(40, 4, np.float64)
    order = np.random.default_rng(0).permutation(40)
    list(problem.storage.epoch(problem.loss, order, state, problem.costs, 1, Crew()))
    before = as_array(state.duals).copy()

    whole = DenseStorage.epoch

    def cut(*options):
        yield from whole(*options)
        raise KeyboardInterrupt

    monkeypatch.setattr(DenseStorage, "epoch", cut)
    state.weights[:] = 0.0  # other duals are the best for these
    with pytest.raises(KeyboardInterrupt):
        list(problem.storage.epoch(problem.loss, order, state, problem.costs, 1, Crew()))
    v = as_array(state.duals)
    changed = (v != before).any(axis=1)
    assert 0 < changed.sum() <= 7
    assert np.isfinite(naive_dual(row, v, X, y, cost, BIAS))


@pytest.mark.parametrize("lists", [True, False])
def test_passes_over_the_support_are_those_in_memory(lists, monkeypatch):
    """Visits in the same order: one piece of all rows, and the rows as they are."""
    monkeypatch.setattr(pieces, "IN_PIECE", ONE_ROUND)
    X, y = make_data()
    row, cost = LOSSES[1], make_costs(40)
    found = {}
    for name, problem in (
        ("pieces", pieced(row, X, y, cost, rows=7)),
        ("one piece", pieced(row, X, y, cost, rows=40)),
        ("memory", make_problem("dense", row.loss(), X, y, cost, BIAS)),
    ):
        storage, costs = problem.storage, problem.costs
        state = problem.zero_state()
        if lists:
            state.duals = SparseDuals(40, 4, np.float64)
        storage.fill_duals(row.loss(), np.ones((6, 4)), costs, state.duals, Crew())
        problem.rebuild(state)
        rows = storage.support_rows(state, costs)
        before = naive_dual(row, as_array(state.duals), X, y, cost, BIAS)
        gap, moved = storage.support_pass(row.loss(), rows, state, costs)
        v = as_array(state.duals)
        assert naive_dual(row, v, X, y, cost, BIAS) > before
        assert 0 < moved.size <= rows.size
        np.testing.assert_allclose(state.weights, storage.rebuild(state.duals, cost), atol=1e-9)
        found[name] = rows, moved, v, gap
    for there, here in zip(found["one piece"], found["memory"], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-9)
    np.testing.assert_array_equal(found["pieces"][0], found["memory"][0])
    nothing = storage.support_pass(row.loss(), rows[:0], state, costs)
    assert nothing[0] == 0.0
    assert nothing[1].size == 0


def hinge_problems() -> tuple[Problem, Problem]:
    """A smooth top-3 hinge on 1500 examples in memory, and in ten pieces."""
    random = np.random.default_rng(0)
    y = random.integers(0, 12, 1500)
    X = random.normal(size=(12, 120))[y] + 2 * random.normal(size=(1500, 120))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    loss, costs = Instance("smooth_hinge", m=12, k=3, smoothing=1.0).loss(), Costs(y, np.ones(1500))
    here = Problem(DenseStorage(X, 1.0), costs, 12, loss)
    return here, Problem(PiecedStorage(rows_on_disk(X), 1.0, 150), costs, 12, loss)


def test_hinges_in_pieces_take_hardly_more_epochs():
    """Many visits on the support of one piece alone took three times as many."""
    here, there = (train(problem, seed=0) for problem in hinge_problems())
    assert here.result.solver == there.result.solver == "sdca"
    assert there.result.epochs <= here.result.epochs + 2


def test_passes_over_the_support_end_at_the_gap_asked_for(monkeypatch):
    """Each reads rows again: none is made for digits that nobody wants."""
    passes = []
    make_pass = PiecedStorage.support_pass

    def counted(self, *options):
        passes.append(make_pass(self, *options))
        return passes[-1]

    monkeypatch.setattr(PiecedStorage, "support_pass", counted)
    problem = hinge_problems()[1]
    found = train(problem, tol=1e-4, seed=0).result
    few = len(passes)
    passes.clear()
    monkeypatch.setattr(ascent, "SUPPORT_GAP_SHARE", 0.0)
    without = train(problem, tol=1e-4, seed=0).result
    assert found.status == without.status == "converged"
    assert max(found.relative_gap, without.relative_gap) <= 1e-4
    assert found.epochs <= without.epochs
    assert few <= 0.8 * len(passes)


GIB = 1 << 30
IMAGENET = (1_281_167, 768, 1000)


@pytest.mark.parametrize(
    ("row", "limit", "disk", "expected"),
    [
        (LOSSES[0], 24 * GIB, 0, (None, "memory")),
        (LOSSES[0], 8 * GIB, 0, ((1 << 28) * 768 // 1768, "memory")),
        (LOSSES[0], 4 * GIB, 0, (1 << 28, "none")),
        (LOSSES[0], 4 * GIB, 20 * GIB, ((1 << 28) * 768 // 1768, "mapped")),
        (LOSSES[1], 4 * GIB, 0, (1 << 28, "memory")),
    ],
)
def test_the_limit_decides(row, limit, disk, expected):
    data_bytes = 4 * IMAGENET[0] * IMAGENET[1]
    found: Placing = place(IMAGENET, 4, data_bytes, row.loss(), limit, GIB // 4, disk)
    assert (found.piece_bytes, found.duals) == (pytest.approx(expected[0]), expected[1])


def test_no_place_for_duals_at_all():
    hinge = Instance("hinge", m=1000).loss()
    shape = (100 * IMAGENET[0], 768, 1000)
    with pytest.raises(MemoryError, match="is free on disk"):
        place(shape, 4, 10**12, hinge, 8 * GIB, GIB, GIB)


def test_too_small_a_limit_names_the_least():
    with pytest.raises(MemoryError, match=r"at least 0\.8 GiB"):
        place((1000, 768, 1000), 4, 10**7, LOSSES[0].loss(), GIB // 2, GIB // 4, 0)


def test_one_piece_is_the_storage_itself():
    X, _ = make_data()
    storage = PiecedStorage(rows_on_disk(X), BIAS, 100)
    np.testing.assert_array_equal(storage.kappa, DenseStorage(X, BIAS).kappa)
    assert storage.n_pieces == 1
