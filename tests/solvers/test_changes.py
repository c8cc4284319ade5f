"""The changes of a block, listed or not, against products of whole matrices."""

import numpy as np
import pytest

from shortlist.solvers.kernels.changes import (
    CLASSES_PER_ENTRY,
    add_earlier,
    add_to_weights,
    note_change,
    room_for_changes,
)
from shortlist.solvers.threads import Crew
from tests.instances import Instance
from tests.solvers.problems import make_problem

B, M, D = 11, 83, 29
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def noted(dtype, most, listed=True):
    """Changes with up to ``most`` nonzeros an example, none in some, and the squares returned."""
    random = np.random.default_rng(most)
    changes = room_for_changes(B, M, dtype, listed)
    changes.deltas[:] = 0
    for b in range(B):
        places = random.permutation(M)[: random.integers(most + 1)]
        changes.deltas[b, places] = random.normal(size=places.size)
    return changes, [note_change(changes, b) for b in range(B)]


@PRECISIONS
def test_without_lists_every_change_is_kept_whole(dtype):
    changes, squares = noted(dtype, 4, listed=False)
    np.testing.assert_allclose(squares, np.square(changes.deltas, dtype=float).sum(axis=1))
    assert changes.full.tolist() == list(range(B + 1))
    assert changes.numbers.tolist() == list(range(B))
    assert not changes.listed.any()


@PRECISIONS
@pytest.mark.parametrize("most", [0, 4, M // CLASSES_PER_ENTRY, M // 4, M])
def test_what_is_listed(dtype, most):
    changes, squares = noted(dtype, most)
    np.testing.assert_allclose(squares, np.square(changes.deltas, dtype=float).sum(axis=1))
    nonzeros = np.count_nonzero(changes.deltas, axis=1)
    many = nonzeros > M // CLASSES_PER_ENTRY
    assert changes.full.tolist() == [0, *np.cumsum(many)]
    assert changes.numbers[: many.sum()].tolist() == np.flatnonzero(many).tolist()
    assert changes.listed.tolist() == [0, *np.cumsum(np.where(many, 0, nonzeros))]
    listed = np.zeros_like(changes.deltas)
    entries = slice(changes.listed[B])
    listed[changes.owners[entries], changes.classes[entries]] = changes.values[entries]
    np.testing.assert_array_equal(listed, np.where(many[:, None], 0, changes.deltas))


@PRECISIONS
@pytest.mark.parametrize("most", [0, 4, M // 4, M])
def test_scores_follow_earlier_changes(dtype, most):
    changes, _ = noted(dtype, most)
    random = np.random.default_rng(0)
    g = random.normal(size=B).astype(dtype)
    for begin, end in [(0, B), (0, 0), (3, 9), (B - 1, B)]:
        s = random.normal(size=M).astype(dtype)
        expected = s + g[begin:end] @ changes.deltas[begin:end]
        add_earlier(s, g, changes, begin, end)
        np.testing.assert_allclose(s, expected, atol=40 * np.finfo(dtype).eps)


@PRECISIONS
@pytest.mark.parametrize("slab", [(0, D), (0, 13), (13, D)])
def test_weights_follow_all_changes_in_their_slab(dtype, slab):
    changes, _ = noted(dtype, 7)
    count = B - 2
    random = np.random.default_rng(0)
    rows = random.normal(size=(B, D)).astype(dtype)
    w = random.normal(size=(M, D)).astype(dtype)
    expected = w.copy()
    part = slice(*slab)
    expected[:, part] += changes.deltas[:count].T @ rows[:count, part]
    add_to_weights(changes, count, rows, *slab, w)
    np.testing.assert_allclose(w, expected, atol=40 * np.finfo(dtype).eps)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("k", [1, 5])
def test_blocks_with_listed_changes_make_the_steps_of_single_visits(k, threads, monkeypatch):
    """With few classes all changes are full ones: here most are listed."""
    n, m = 320, 240
    row = Instance("smooth_hinge", m=m, k=k, smoothing=0.1)
    data = np.random.default_rng(0)
    y = data.integers(m, size=n)
    X = data.normal(size=(m, 12))[y] + 0.1 * data.normal(size=(n, 12))
    cost = data.uniform(1.0, 2.0, n)
    states = []
    monkeypatch.setattr("shortlist.solvers.storage.dense.MULTIPLICATIONS_PER_THREAD", 1)
    rooms = []

    def room(*sizes, listed):
        rooms.append(room_for_changes(*sizes, listed))
        return rooms[-1]

    monkeypatch.setattr("shortlist.solvers.storage.dense.room_for_changes", room)
    for block in (1, 32):
        problem = make_problem("dense", row.loss(), X, y, cost, 0.5, block)
        state = problem.zero_state()
        random = np.random.default_rng(7)
        with Crew(threads) as crew:
            for _ in range(5):
                order = random.permutation(n)
                sum(problem.storage.epoch(problem.loss, order, state, problem.costs, 1, crew))
        states.append(state)
    one, many = states
    np.testing.assert_allclose(many.duals, one.duals, atol=1e-8)
    np.testing.assert_allclose(many.weights, one.weights, atol=1e-8)
    last = rooms[-1]
    assert last.full.max() == 0
    assert last.listed.max() > 0
