"""How SDCA goes on after a look at the gap."""

from itertools import pairwise

import numpy as np
import pytest

from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, DenseStorage
from shortlist.solvers.strategy import ascent
from shortlist.solvers.strategy import train as strategy
from shortlist.solvers.strategy.train import train
from tests.instances import Instance


@pytest.mark.parametrize(
    ("gap", "expected"),
    [(1.2, 0.25), (1.8, 0.5), (2.0, 1.0), (100.0, 1.0), (0.5, 1.0)],
)
def test_a_part_is_visited_where_the_gap_is_nearly_reached(gap, expected):
    assert ascent._part_to_visit(gap, wanted=1.0) == pytest.approx(expected)


@pytest.fixture
def embeddings(monkeypatch) -> Problem:
    """Softmax on clusters, trained by SDCA alone: so few features let a descent begin otherwise."""
    monkeypatch.setattr(strategy, "_descend_at_once", lambda *_: False)
    monkeypatch.setattr(strategy, "_patience", lambda *_: np.inf)
    random = np.random.default_rng(0)
    y = random.integers(0, 12, 3000)
    X = random.normal(size=(12, 60))[y] + 2 * random.normal(size=(3000, 60))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    costs = Costs(y, np.ones(3000))
    return Problem(DenseStorage(X, 1.0), costs, 12, Instance("entropy", m=12).loss())


def test_the_last_epoch_is_cut_short(embeddings, monkeypatch):
    """A gap that is missed by little takes part of an epoch more; the certificate is as good."""
    problem = embeddings
    history = train(problem, tol=1e-6, seed=0).result.history
    missed = next(look for look in history if look.epoch == 2.0)
    tol = missed.relative_gap / 1.3
    found = train(problem, tol=tol, seed=0).result
    assert found.status == "converged"
    assert found.relative_gap <= tol
    assert 2.0 < found.epochs < 3.0
    monkeypatch.setattr(ascent, "MAX_PART", 0.0)
    whole = train(problem, tol=tol, seed=0).result
    assert whole.status == "converged"
    assert whole.epochs == 3.0


def test_a_part_that_was_too_small_is_followed_by_an_epoch(embeddings, monkeypatch):
    """One look more at most: the next epoch is whole."""
    problem = embeddings
    parts = []
    visit = ascent._epoch

    def noted(run, order, every, part):
        parts.append(part)
        return visit(run, order, every, part)

    monkeypatch.setattr(ascent, "_epoch", noted)
    monkeypatch.setattr(ascent, "_part_to_visit", lambda *_: 0.01)
    found = train(problem, tol=1e-4, seed=0).result
    assert found.status == "converged"
    assert 0.01 in parts
    assert all(1.0 in pair for pair in pairwise(parts))


def test_hinges_stay_with_sdca_where_there_is_no_model_of_the_hessian():
    """As on text: more features than half of the examples, and 1,100 weights or more.

    A descent ended at max_epochs, its gap eight times as large as the one asked for.
    """
    random = np.random.default_rng(3)
    y = random.integers(0, 20, 400)
    X = 0.3 * random.normal(size=(20, 300))[y] + 3 * random.normal(size=(400, 300))
    wrong = random.random(400) < 0.1
    y[wrong] = random.integers(0, 20, wrong.sum())
    problem = Problem(
        DenseStorage(X), Costs(y, np.ones(400)), 20, Instance("ova_hinge", m=20).loss()
    )
    found = train(problem, tol=1e-3, max_epochs=1000, seed=0).result
    assert (found.status, found.solver) == ("converged", "sdca")
    assert found.relative_gap <= 1e-3
