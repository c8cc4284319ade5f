"""Sums over threads are sums, and the user's limit on threads is kept."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shortlist import losses
from shortlist.solvers.problem import _sum_over_threads
from shortlist.solvers.threads import WORTH_THREADS, threads_allowed, threads_for
from shortlist.solvers.train import train
from tests.solvers.problems import make_data, make_problem


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


def blas_threads() -> dict[str, int]:
    """Threads of each BLAS in the process; some of them never have more than one."""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return {pool["filepath"]: pool["num_threads"] for pool in pools}


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        threads = blas_threads()
        assert 2 in threads.values()
        yield threads


def test_blas_is_limited_while_anybody_needs_it(two_threads):
    with threads_for(WORTH_THREADS):
        assert blas_threads() == two_threads
    first, second = threads_for(1.0), threads_for(1.0)
    first.__enter__()
    second.__enter__()
    assert set(blas_threads().values()) == {1}
    first.__exit__(None, None, None)  # in the order they came, as threads may
    assert set(blas_threads().values()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == two_threads


def test_training_leaves_blas_as_it_was(two_threads):
    problem = make_problem("dense", losses.get("softmax"), *make_data(), 100.0, 1.0)
    seen = []
    train(problem, seed=0, callback=lambda _: seen.append(set(blas_threads().values())))
    assert seen
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == two_threads
