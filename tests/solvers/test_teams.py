"""Visits on the support by two threads: no two that share a class, and the result of one thread."""

from itertools import pairwise

import numpy as np
import pytest

from shortlist.solvers.duals import SparseDuals, as_array, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, DenseStorage, feature_support
from shortlist.solvers.storage.support import polish_support, rows_on_support
from shortlist.solvers.storage.teams import MAX_PARTINGS, make_teams
from shortlist.solvers.threads import Crew
from tests.instances import Instance
from tests.solvers.problems import make_costs

HINGE = Instance("hinge", m=70)
N, M, D = 700, 70, 24


def random_lists(random, n, m, most):
    """Sorted classes of n examples, up to ``most`` each."""
    rows = [
        np.sort(random.choice(m, random.integers(1, most + 1), replace=False)) for _ in range(n)
    ]
    return np.cumsum([0, *map(len, rows)]), np.concatenate(rows)


def lists_of(teams, order):
    bounds = teams.part(order)
    assert bounds.size == 2 * MAX_PARTINGS + 2
    return [order[a:b] for a, b in pairwise(bounds)]


@pytest.mark.parametrize("most", [1, 2, 5, 12])
@pytest.mark.parametrize("n", [1, 2, 400])
def test_lists_that_are_visited_at_the_same_time_share_no_class(n, most):
    random = np.random.default_rng(n + most)
    begin, classes = random_lists(random, n, 12, most)
    numbers = random.permutation(3 * n)[:n]
    own = {i: set(classes[begin[r] : begin[r + 1]]) for r, i in enumerate(numbers)}
    teams = make_teams(numbers, begin, classes, 3 * n, 12)
    order = random.permutation(numbers)
    before = order.tolist()
    lists = lists_of(teams, order)
    assert sorted(np.concatenate(lists)) == sorted(numbers)
    for part in lists:  # the order within a list is the order given
        assert [i for i in before if i in set(part)] == part.tolist()
    for one, other in zip(lists[:-1:2], lists[1:-1:2], strict=True):
        taken = set().union(*(own[i] for i in one))
        assert taken.isdisjoint(set().union(*(own[i] for i in other)))


def test_classes_that_fall_into_two_groups_are_parted_by_them():
    random = np.random.default_rng(0)
    group = random.permutation(20) % 2
    rows = [
        np.sort(random.choice(np.flatnonzero(group == side), 3, replace=False))
        for side in random.integers(0, 2, 500)
    ]
    begin, classes = np.arange(501) * 3, np.concatenate(rows)
    lists = lists_of(make_teams(np.arange(500), begin, classes, 500, 20), np.arange(500))
    assert min(lists[0].size, lists[1].size) > 150
    assert lists[0].size + lists[1].size == 500


def state_after_an_epoch(listed):
    random = np.random.default_rng(1)
    y = random.integers(0, M, N)
    X = random.normal(size=(M, D))[y] + 0.8 * random.normal(size=(N, D))
    problem = Problem(DenseStorage(X), Costs(y, make_costs(N)), M, HINGE.loss())
    state = problem.zero_state()
    order = np.flatnonzero(problem.costs.cost)
    for _ in problem.storage.epoch(problem.loss, order, state, problem.costs, 1, Crew()):
        pass
    if listed:
        duals = SparseDuals(N, M, np.dtype(float))
        store(duals, slice(0, N), y, state.duals)
        state.duals = duals
    return problem, state


@pytest.fixture
def always(monkeypatch):
    """Few examples are parted too, and take joint steps."""
    for name in ("MIN_MULTIPLICATIONS_TO_PART", "MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS"):
        monkeypatch.setattr(feature_support, name, 0.0)
    monkeypatch.setattr(feature_support, "PASSES_OVER_WEIGHTS", 0.0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("listed", [False, True])
def test_two_threads_visit_as_one(listed):
    found = []
    for size in (1, 2):
        problem, state = state_after_an_epoch(listed)
        rows = rows_on_support(state.duals, problem.costs.cost)
        with Crew(size) as crew:
            support = problem.storage.open_support(rows, state, problem.costs)
            support.crew = crew
            assert support.teams is not None
            order = support.order.copy()
            results = []
            for _ in range(5):
                gap, entries, moved = support.visit(problem.loss, order)
                results.append((gap, entries, moved, *order[:moved]))
        support.settle()
        assert results[0][0] > results[-1][0] > 0.0
        found.append((results, support.by_class.tobytes(), as_array(state.duals).tobytes()))
    assert found[0] == found[1]


@pytest.mark.usefixtures("always")
def test_joint_steps_of_two_threads_are_those_of_one_but_for_rounding():
    found = []
    for size in (1, 2):
        problem, state = state_after_an_epoch(listed=False)
        random = np.random.default_rng(0)
        with Crew(size) as crew:
            given = (problem.storage, problem.loss, state, problem.costs, random, crew)
            polish_support(*given, enough=1e-9, epochs=50.0)
        W = problem.storage.rebuild(state.duals, problem.costs.cost)
        np.testing.assert_allclose(state.weights, W, atol=1e-9)
        found.append(state)
    one, two = found
    assert np.abs(one.duals).max() > 0.0
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)


@pytest.mark.usefixtures("always")
def test_a_crew_that_has_gone_home_is_not_waited_for():
    problem, state = state_after_an_epoch(listed=False)
    with Crew(2) as crew:
        pass
    given = (problem.storage, problem.loss, state, problem.costs, np.random.default_rng(0), crew)
    assert polish_support(*given) > 0.0
