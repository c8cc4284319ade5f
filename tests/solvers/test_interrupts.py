"""A signal may come anywhere: weights, duals and the record agree again afterwards."""

import operator
import sys

import numpy as np
import pytest

from shortlist.solvers import storage
from shortlist.solvers.duals import SparseDuals, as_array
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.solvers.problems import (
    make_costs,
    make_data,
    make_problem,
    naive_dual,
    naive_primal,
    primal_weights,
)

BIAS = 0.5
N = 200  # several blocks
# Duals change first, then the weights that belong to them.
PLACES = [
    ("features.visit_in_turn", "dense"),
    ("features.visit_in_turn", "csr"),
    ("dense.lead_blocks", "blocks"),
    ("gram.visit_block", "gram"),
    ("base.visit_support", "dense"),
    ("base.visit_support", "csr"),
]


def cut_short(monkeypatch, place, call, before):
    """Make the function a place where Ctrl-C arrives, before or after its work."""
    work = operator.attrgetter(place)(storage)
    calls = []

    def interrupted(*args, **options):
        calls.append(place)
        if before and len(calls) == call:
            raise KeyboardInterrupt
        result = work(*args, **options)
        if len(calls) == call:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(f"{storage.__name__}.{place}", interrupted)
    return calls


@pytest.mark.parametrize("row", [Instance("hinge", m=4), Instance("hinge", m=4, k=2)], ids=by_id)
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("call", [1, 2, 7])
@pytest.mark.parametrize(("place", "way"), PLACES)
def test_a_signal_between_duals_and_weights(place, way, call, before, row, monkeypatch):
    X, y = make_data(n=N)
    cost = make_costs(N)
    problem = make_problem(way, row.loss(), X, y, cost, BIAS)
    calls = cut_short(monkeypatch, place, call, before)

    solution = train(problem, tol=1e-9, seed=0)

    assert len(calls) == call
    result = solution.result
    assert result.status == "interrupted"
    W = primal_weights(way, solution.weights, X, BIAS)
    duals = as_array(solution.state.duals)
    assert result.primal == pytest.approx(naive_primal(row, W, X, y, cost, BIAS), rel=1e-12)
    dual = naive_dual(row, duals, X, y, cost, BIAS)
    # The bound was computed from these duals or from earlier ones, which are no better.
    assert 0 <= result.dual <= dual + 1e-12 * abs(dual)
    if call == 1:
        assert result.dual == pytest.approx(dual, rel=1e-12, abs=1e-12)
    assert result.gap >= 0
    # Training goes on from there as if nothing had happened.
    monkeypatch.undo()
    again = train(problem, tol=1e-4, max_epochs=5000, seed=1, state=solution.state)
    assert again.result.status == "converged"
    np.testing.assert_allclose(again.result.history[0].dual, dual, rtol=1e-12, atol=1e-12)


def interrupted_at(line, function, *args):
    """Call the function; Ctrl-C comes as its n-th line begins. Whether there was such a line."""
    lines = 0

    def trace(frame, what, _):
        nonlocal lines
        if frame.f_code is not function.__code__:
            return None
        lines += what == "line"
        if lines == line:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function(*args)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_a_signal_while_the_room_for_duals_grows():
    """Values and columns grow one after the other; a kernel must find room in both or none."""
    line = 1
    while True:
        duals = SparseDuals(10, 4, np.float64)
        duals.reserve(2)
        came = interrupted_at(line, SparseDuals.reserve, duals, 10)
        duals.reserve(10)
        pool = duals.kernel_view
        assert pool.values.size == pool.columns.size, f"line {line}"
        if not came:
            break
        line += 1
    assert line > 5
