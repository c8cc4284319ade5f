"""Hinges at large C in single precision: training goes on in double, the model stays single."""

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.solvers.records.run import StopTraining
from shortlist.solvers.storage import features
from shortlist.solvers.strategy import double, multiples
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.solvers.problems import make_data, make_problem, naive_dual, naive_primal

# So large that rounded scores cost more than the gap asked for; at the second, rounded weights too,
# unless they are made longer.
C, LARGE_C, TOL = 300.0, 1e6, 1e-3
HINGES = [
    Instance("hinge", m=6),
    Instance("hinge", m=6, k=3, variant="alpha"),
    Instance("hinge", m=6, k=2, variant="beta"),
    Instance("ova_hinge", m=6),
]


def data():
    X, y = make_data(n=150, d=60, m=6, dtype=np.float32)
    return X, y


def trained(row, storage="dense", dtype=np.float32, tol=TOL, cost=C, **options):
    X, y = data()
    problem = make_problem(storage, row.loss(), X.astype(dtype), y, cost)
    return train(problem, tol=tol, seed=0, **options)


class Kept(list):
    """Keeps every snapshot that it is offered."""

    def due(self):
        return True

    def keep(self, snapshot):
        self.append(snapshot)


@pytest.mark.parametrize("storage", ["dense", "blocks", "csr"])
@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_the_model_is_single_and_its_certificate_true(row, storage):
    found = trained(row, storage)
    result = found.result
    assert result.solver.endswith("in double")
    assert result.status == "converged"
    assert 0.0 <= result.relative_gap <= TOL
    assert found.weights.dtype == found.state.duals.dtype == np.float32
    X, y = data()
    cost = np.full(len(y), C)
    primal = naive_primal(row, found.weights.astype(float), X, y, cost)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    best = trained(row, dtype=np.float64, tol=1e-8).result
    assert result.dual <= best.primal
    assert result.primal >= best.dual


@pytest.mark.parametrize("row", HINGES[:1], ids=by_id)
def test_the_duals_that_are_left_are_a_start(row):
    first = trained(row)
    again = trained(row, state=first.state)
    assert again.result.status == "converged"
    assert again.result.epochs <= 0.5 * first.result.epochs
    X, y = data()
    bound = naive_dual(row, first.state.duals, X, y, np.full(len(y), C))
    assert bound == pytest.approx(first.result.dual, rel=0.05)


def test_smooth_losses_stay_single():
    result = trained(Instance("smooth_hinge", m=6, smoothing=1.0)).result
    assert "double" not in result.solver


def test_without_memory_for_a_copy_training_stays_single(monkeypatch):
    monkeypatch.setattr(features, "available_bytes", lambda: 1000)
    result = trained(HINGES[0], max_epochs=60).result
    assert "double" not in result.solver


def test_under_a_limit_on_memory_nothing_is_copied():
    X, y = data()
    model = TopKClassifier("hinge", C=C, max_epochs=60, random_state=0)
    assert model.fit(X, y).result_.solver.endswith("in double")
    assert model.coef_.dtype == np.float32
    model.set_params(memory_limit="8GB")
    with pytest.warns(UserWarning, match="too coarse"):
        model.fit(X, y)
    assert "double" not in model.result_.solver


def test_a_stop_in_double_keeps_the_best():
    """The objective is that of the weights that are returned."""
    row = HINGES[0]
    seen = []

    def stop(progress):
        seen.append(progress.weights.dtype)
        if seen.count(np.dtype(np.float64)) == 2:
            raise StopTraining

    found = trained(row, tol=1e-7, callback=stop)
    assert found.result.status == "stopped"
    assert found.weights.dtype == np.float32
    X, y = data()
    primal = naive_primal(row, found.weights.astype(float), X, y, np.full(len(y), C))
    assert found.result.primal == pytest.approx(primal, rel=1e-9)


def test_snapshots_are_those_of_the_problem_as_it_was_given():
    row, kept = HINGES[0], Kept()
    whole = trained(row, keeper=kept)
    late = kept[-2]
    assert late.duals.dtype == np.float32
    assert late.epochs > 0.5 * whole.result.epochs
    again = trained(row, resume=late)
    assert again.result.status == "converged"
    assert again.result.epochs <= 1.5 * whole.result.epochs


@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_rounded_weights_are_made_longer(row, monkeypatch):
    found = trained(row, cost=LARGE_C)
    result = found.result
    assert result.status == "converged"
    X, y = data()
    cost = np.full(len(y), LARGE_C)
    primal = naive_primal(row, found.weights.astype(float), X, y, cost)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    for module in (double, multiples):
        monkeypatch.setattr(module, "multiples_help", lambda problem: False)
    assert trained(row, cost=LARGE_C).result.status == "stalled"


def test_a_gap_that_rounded_weights_cannot_have_is_a_stall():
    result = trained(HINGES[0], cost=3e4, tol=1e-7).result
    assert result.status == "stalled"
    assert 1e-7 < result.relative_gap < 1e-5
