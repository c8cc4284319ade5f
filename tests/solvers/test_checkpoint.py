"""A run that is cut at any offer of a snapshot goes on from there to the same certified optimum."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from shortlist.solvers import memory
from shortlist.solvers.duals import SparseDuals, as_array
from shortlist.solvers.records.checkpoint import STAGES, restored_state
from shortlist.solvers.strategy import multipliers, train
from tests.instances import Instance
from tests.solvers.problems import make_data, make_problem, naive_dual, naive_primal

N, M = 60, 4
SOFTMAX = Instance("entropy", m=M)
SMOOTH = Instance("smooth_hinge", m=M, smoothing=1.0)
HINGE = Instance("hinge", m=M)
TRUNCATED = Instance("truncated_entropy", m=M, k=2)


class Cut(Exception):
    """The process is killed here."""


class CutAt:
    """Copies every snapshot, as a file does, and ends the run at one of them."""

    def __init__(self, number):
        self.number = number
        self.snapshots = []

    def due(self):
        return True

    def keep(self, snapshot):
        duals = as_array(snapshot.duals).copy()
        if isinstance(snapshot.duals, SparseDuals):
            duals = SparseDuals.from_entries(M, *snapshot.duals.entries())
        weights = None if snapshot.weights is None else snapshot.weights.copy()
        starts = snapshot.starts.copy()
        self.snapshots.append(replace(snapshot, duals=duals, weights=weights, starts=starts))
        if len(self.snapshots) == self.number:
            raise Cut


def problem_of(row, way="dense", C=3.0):
    X, y = make_data(N, 5, M)
    return make_problem(way, row.loss(), X, y, C, 0.5), X, y


def cut_run(problem, number, **options):
    """The snapshots of a run up to where it was cut, or to its end."""
    keeper = CutAt(number)
    with contextlib.suppress(Cut):
        train.train(problem, seed=0, keeper=keeper, **options)
    return keeper.snapshots


@pytest.mark.parametrize("row", [SOFTMAX, SMOOTH, HINGE, TRUNCATED], ids=lambda row: row.name)
def test_a_cut_anywhere_leads_to_the_same_optimum(row):
    problem, X, y = problem_of(row)
    whole = train.train(problem, tol=1e-6, seed=0)
    assert whole.result.status == "converged"
    snapshots = cut_run(problem, np.inf, tol=1e-6)
    for number in np.unique(np.linspace(0, len(snapshots) - 1, 6).astype(int)):
        snapshot = cut_run(problem, number + 1, tol=1e-6)[-1]
        result = (again := train.train(problem, tol=1e-6, seed=1, resume=snapshot)).result
        assert result.status == "converged"
        assert result.primal == pytest.approx(whole.result.primal, rel=3e-6)
        assert result.primal == pytest.approx(
            naive_primal(row, again.weights, X, y, np.full(N, 3.0), 0.5), rel=1e-9
        )
        assert result.epochs >= snapshot.epochs
        if row.convex:  # otherwise the history is that of the second part
            assert result.history[: len(snapshot.history)] == snapshot.history


def test_every_stage_of_a_run_can_be_gone_on_from(monkeypatch):
    """The stages that small problems do not reach by themselves are forced."""
    seen = set()
    monkeypatch.setattr(train, "_patience", lambda *_: 0.0)
    monkeypatch.setattr(multipliers, "SLOW_GAP_RATIO", 0.0)
    monkeypatch.setattr(multipliers, "MIN_GAMMA", multipliers.FIRST_GAMMA_OF_MULTIPLIERS)
    for row in (SOFTMAX, HINGE, TRUNCATED):
        problem, _, _ = problem_of(row)
        snapshots = cut_run(problem, np.inf, tol=1e-7)
        optimum = train.train(problem, tol=1e-7, seed=0).result
        by_stage = {snapshot.stage.name: snapshot for snapshot in snapshots}
        for name, last in by_stage.items():
            seen.add(name)
            again = train.train(problem, tol=1e-7, seed=1, resume=last)
            assert again.result.status == "converged"
            assert again.result.primal == pytest.approx(optimum.primal, rel=1e-6)
            # What was spent before the cut is not spent again.
            assert again.result.epochs <= optimum.epochs + 40
    assert seen == set(STAGES)


@pytest.mark.parametrize("way", ["csr", "gram"])
def test_other_storages(way):
    problem, _, _ = problem_of(SMOOTH, way)
    optimum = train.train(problem, tol=1e-6, seed=0).result
    snapshot = cut_run(problem, 3, tol=1e-6)[-1]
    result = train.train(problem, tol=1e-6, seed=1, resume=snapshot).result
    assert result.status == "converged"
    assert result.primal == pytest.approx(optimum.primal, rel=3e-6)


def test_sparse_duals(monkeypatch):
    monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", 0)
    problem, _, _ = problem_of(HINGE)
    optimum = train.train(problem, tol=1e-6, seed=0).result
    snapshot = cut_run(problem, 3, tol=1e-6)[-1]
    assert isinstance(snapshot.duals, SparseDuals)
    result = train.train(problem, tol=1e-6, seed=1, resume=snapshot).result
    assert result.status == "converged"
    assert result.primal == pytest.approx(optimum.primal, rel=3e-6)


def test_duals_that_are_not_feasible_certify_nothing():
    """Numbers of a snapshot are not believed: neither its bounds nor its duals."""
    problem, X, y = problem_of(SOFTMAX)
    snapshot = cut_run(problem, 2, tol=1e-6)[-1]
    wrong = snapshot.duals.copy()
    wrong[::2] = 7.0
    state = restored_state(problem, replace(snapshot, duals=wrong))
    duals = as_array(state.duals)
    assert (duals[::2] == 0).all()
    np.testing.assert_array_equal(duals[1::2], snapshot.duals[1::2])
    certificate = problem.certify(state)
    dual = naive_dual(SOFTMAX, duals, X, y, np.full(N, 3.0), 0.5)
    assert certificate.dual == pytest.approx(dual, rel=1e-9)
    best = replace(snapshot.history[-1], primal=1.0, dual=1.0) if snapshot.history else None
    told = replace(snapshot, history=() if best is None else (best,))
    optimum = train.train(problem, tol=1e-6, seed=0).result
    result = train.train(problem, tol=1e-6, seed=0, resume=told).result
    assert result.primal == pytest.approx(optimum.primal, rel=3e-6)


def test_ctrl_c_before_the_first_epoch_leaves_a_model(monkeypatch):
    problem, _, _ = problem_of(SOFTMAX, C=0.01)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "begin_at_means", interrupted)
    solution = train.train(problem, tol=1e-6, seed=0)  # by SDCA, which begins there
    assert solution.result.status == "interrupted"
    assert solution.result.primal == pytest.approx(problem.at_zero)
    assert (solution.weights == 0).all()
