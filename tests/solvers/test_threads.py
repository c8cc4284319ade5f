"""Threads share work and hand back what it gave; the user's limits on threads are kept."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shortlist import losses
from shortlist.solvers import threads
from shortlist.solvers.strategy.train import train
from shortlist.solvers.threads import (
    MAX_THREADS,
    MULTIPLICATIONS_PER_THREAD,
    Crew,
    crew_for,
    one_blas_thread,
    threads_allowed,
)
from tests.solvers.problems import make_data, make_problem

LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


@pytest.fixture
def machine(monkeypatch):
    """A machine of as many cores as asked for, with no other limit."""

    def of(cores, blas=64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        monkeypatch.setattr(threads, "_blas_limit", lambda: blas)
        for name in LIMITS:
            monkeypatch.delenv(name, raising=False)
        return monkeypatch

    return of


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    ("setting", "expected"),
    [("1", 1), ("2", 2), ("", 3), ("0", 3), ("two", 3), ("8", 3), (None, 3)],
)
def test_threads_allowed(machine, name, setting, expected):
    patched = machine(cores=3)
    if setting is not None:
        patched.setenv(name, setting)
    assert threads_allowed() == expected


def test_never_more_threads_than_memory_can_feed(machine):
    machine(cores=200)
    assert threads_allowed() == MAX_THREADS


def test_a_limit_on_blas_is_a_limit_on_us(machine):
    machine(cores=8, blas=2)
    assert threads_allowed() == 2


def test_the_limit_is_read_from_threadpoolctl(two_threads):
    with threadpool_limits(limits=1, user_api="blas"):
        assert threads._blas_limit() == 1
    assert threads._blas_limit() == 2


def test_our_own_limit_on_blas_is_none_of_the_users(two_threads):
    with one_blas_thread():
        assert set(blas_threads().values()) == {1}
        assert threads._blas_limit() == 2


def test_systems_without_affinity_are_asked_for_their_cores(monkeypatch, machine):
    machine(cores=8)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert threads_allowed() == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads_allowed() == 1


@pytest.mark.parametrize(("work", "size"), [(0.0, 1), (0.9, 1), (2.5, 2), (1e9, 6)])
def test_small_work_is_not_shared(machine, work, size):
    machine(cores=6)
    assert crew_for(work * MULTIPLICATIONS_PER_THREAD).size == size


@pytest.mark.parametrize("size", [1, 3])
def test_a_crew_shares_work_and_keeps_its_order(size):
    seen = set()
    # All must be there at once: else the barrier would not open.
    together = threading.Barrier(size)

    def work(a, b):
        together.wait(timeout=60)
        seen.add(threading.get_ident())
        return 10 * a + b

    arguments = [(i, i + 1) for i in range(size)]
    with Crew(size) as crew:
        assert crew.run(work, arguments) == [10 * a + b for a, b in arguments]
    assert len(seen) == size
    assert threading.get_ident() in seen


def test_a_crew_that_was_not_gathered_works_alone():
    here = threading.get_ident()
    assert Crew(3).run(lambda _: threading.get_ident(), [(0,), (1,)]) == [here, here]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_any_thread_is_the_callers(failing):
    def work(part):
        if part == failing:
            raise ZeroDivisionError
        return part

    with Crew(2) as crew:
        with pytest.raises(ZeroDivisionError):
            crew.run(work, [(0,), (1,)])
        assert crew.run(work, [(2,), (3,)]) == [2, 3]


def test_assistants_run_while_the_leader_does():
    begun = threading.Barrier(3)
    with Crew(3) as crew:
        found = crew.assisted(lambda: begun.wait(timeout=60), 2 * [lambda: begun.wait(timeout=60)])
        assert found in range(3)
        assert crew.assisted(lambda: "alone", []) == "alone"


def blas_threads() -> dict[str, int]:
    """Threads of each BLAS in the process; some of them never have more than one."""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return {pool["filepath"]: pool["num_threads"] for pool in pools}


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        found = blas_threads()
        assert 2 in found.values()
        yield found


def test_blas_is_limited_while_anybody_needs_it(two_threads):
    first, second = one_blas_thread(), one_blas_thread()
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
    assert all(found == {1} for found in seen)
    assert blas_threads() == two_threads


def test_inner_products_leave_blas_its_threads(two_threads):
    """There the products are large, and BLAS shares them itself."""
    problem = make_problem("gram", losses.get("softmax"), *make_data(), 1.0, 1.0)
    seen = []
    train(problem, seed=0, callback=lambda _: seen.append(blas_threads()))
    assert seen
    assert all(found == two_threads for found in seen)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_sums_over_examples_do_not_depend_on_the_threads(storage):
    X, y = make_data(n=101)
    W = np.random.default_rng(0).normal(size=(6, 4))
    problem = make_problem(storage, losses.get("softmax"), X, y, 1.0, 0.5)
    alone = problem.storage.loss_gradient(problem.loss, W, problem.costs, Crew(), False)
    duals = problem.zero_duals()
    problem.storage.fill_duals(problem.loss, W, problem.costs, duals, Crew())
    sums = problem.storage.certify(problem.loss, W, duals, problem.costs, Crew(), False)
    for size in (2, 3):
        with Crew(size) as crew:
            value, gradient = problem.storage.loss_gradient(
                problem.loss, W, problem.costs, crew, False
            )
            shared = problem.zero_duals()
            problem.storage.fill_duals(problem.loss, W, problem.costs, shared, crew)
            others = problem.storage.certify(problem.loss, W, duals, problem.costs, crew, False)
        assert value == pytest.approx(alone[0], rel=1e-13)
        np.testing.assert_allclose(gradient, alone[1], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(shared, duals, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(others, sums, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["softmax", "hinge"])
def test_a_seed_and_the_number_of_threads_decide_all(name, monkeypatch):
    """The same bits again, also in another Python thread; other numbers agree to rounding."""
    X, y = make_data(n=300, d=200, m=130)
    problem = make_problem("dense", losses.get(name), X, y, 1.0, 0.5, 128)
    solutions = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "threads_allowed", lambda count=count: count)
        here = train(problem, tol=1e-4, seed=0)
        with ThreadPoolExecutor(1) as elsewhere:
            there = elsewhere.submit(train, problem, tol=1e-4, seed=0).result()
        assert here.result.status == "converged"
        np.testing.assert_array_equal(here.weights, there.weights)
        np.testing.assert_array_equal(here.state.duals, there.state.duals)
        assert here.result.dual == there.result.dual
        solutions.append(here)
    for other in solutions[1:]:
        assert other.result.epochs == solutions[0].result.epochs
        np.testing.assert_allclose(other.weights, solutions[0].weights, atol=1e-8)
