"""Sums over threads are sums, and the user's limit on threads is kept."""

import threading

import numpy as np
import pytest

from shortlist.solvers.problem import _sum_over_threads
from shortlist.solvers.threads import threads_allowed


@pytest.mark.parametrize(
    ("setting", "expected"), [("1", 1), ("2", 2), ("", 3), ("0", 3), ("two", 3), (None, 3)]
)
def test_threads_allowed(monkeypatch, setting, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    if setting is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert threads_allowed(3) == expected


@pytest.mark.parametrize("limit", ["1", "4"])
def test_sums_over_threads(monkeypatch, limit):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    scores = np.random.default_rng(0).normal(size=(1000, 100))
    seen = set()

    def kernel(factor, rows, weights):
        seen.add(threading.get_ident())
        return factor * (weights @ rows).sum(), len(rows)

    weights = np.arange(1000.0)
    total, count = _sum_over_threads(kernel, 2.0, scores, weights)
    assert total == pytest.approx(2.0 * (weights @ scores).sum())
    assert count == 1000
    assert (seen == {threading.get_ident()}) == (limit == "1")
