"""The clock of training stands still while kernels compile."""

import threading
import time

import numba
import pytest
from numba.core import event

from shortlist import TopKClassifier
from shortlist._compiling import CompileTimer
from shortlist.solvers.records.run import working_time
from tests.solvers.problems import make_data

NAP = 0.05


def compile_for(seconds):
    """What numba broadcasts around a compilation, one kernel within another."""
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        time.sleep(seconds)


def test_it_runs_like_any_other_clock():
    begun, working = time.perf_counter(), working_time()
    time.sleep(NAP)
    assert working_time() - working == pytest.approx(time.perf_counter() - begun, abs=0.01)


def test_compiling_does_not_count():
    begun, working = time.perf_counter(), working_time()
    compile_for(4 * NAP)
    assert time.perf_counter() - begun >= 4 * NAP
    assert 0 <= working_time() - working < NAP


def test_it_stands_still_in_the_middle_of_it():
    with event.trigger_event("numba:compile"):
        first = working_time()
        time.sleep(NAP)
        assert working_time() == pytest.approx(first, abs=1e-9)


def test_numba_tells_of_what_it_compiles():
    timer = CompileTimer()

    @numba.njit
    def kernel(x):
        return x + 1

    with event.install_listener("numba:compile", timer):
        begun, working = time.perf_counter(), working_time()
        assert kernel(1) == 2
        whole, worked = time.perf_counter() - begun, working_time() - working
        compiled = timer.seconds
        kernel(2)
    assert 0.5 * whole < compiled <= whole
    assert worked == pytest.approx(whole - compiled, abs=0.01)
    assert timer.seconds == compiled  # a second call compiles nothing


def test_a_failure_to_compile_ends_it_too():
    timer = CompileTimer()
    with event.install_listener("numba:compile", timer):
        with pytest.raises(ZeroDivisionError), event.trigger_event("numba:compile"):
            raise ZeroDivisionError
        spent = timer.seconds
        time.sleep(NAP)
        assert timer.seconds == spent


def test_the_seconds_of_training_leave_it_out():
    X, y = make_data()
    TopKClassifier().fit(X, y)  # whatever there is to compile or to load is by now
    calls = []

    def compile_something(progress):
        calls.append(progress.epoch)
        compile_for(NAP)

    begun = time.perf_counter()
    model = TopKClassifier(tol=1e-6, random_state=0).fit(X, y, callback=compile_something)
    whole = time.perf_counter() - begun
    assert len(calls) > 1
    assert whole > len(calls) * NAP
    assert 0 < model.result_.seconds < whole - len(calls) * NAP
    assert model.result_.history[-1].seconds <= model.result_.seconds


def test_threads_that_compile_at_once_count_once():
    begun, working = time.perf_counter(), working_time()
    threads = [threading.Thread(target=compile_for, args=(4 * NAP,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - begun
    assert 0 <= working_time() - working < whole / 2


def test_an_end_without_a_beginning_is_harmless():
    timer = CompileTimer()
    timer.on_end(None)
    timer.on_start(None)
    timer.on_end(None)
    spent = timer.seconds
    time.sleep(NAP)
    assert timer.seconds == spent < NAP
