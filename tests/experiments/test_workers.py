"""Computing units: order, processes, errors, progress, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shortlist.experiments.store import Unit, UnitStore
from shortlist.experiments.workers import Silent, _in_good_order, compute, default_jobs
from tests.experiments import slow_units

ROOT = Path(__file__).parents[2]


def square(parameters, payload, tick):
    tick(0.5)
    return {"square": parameters["x"] ** 2, "payload": payload, "pid": os.getpid()}


def fail_on_three(parameters, payload, tick):
    if parameters["x"] == 3:
        raise ValueError("x must not be 3")
    return {"square": parameters["x"] ** 2}


class Recorder(Silent):
    def __init__(self):
        self.events = []

    def begin(self, title, units, n_stored):
        self.events.append(("begin", title, len(units), n_stored))

    def advance(self, unit, share):
        self.events.append(("advance", unit.name, share))

    def finish(self, unit, seconds):
        self.events.append(("finish", unit.name))

    def end(self):
        self.events.append(("end",))


def some_units(work=square, n=5):
    return [Unit(f"unit {x}", {"x": x}, work, payload="p") for x in range(n)]


@pytest.fixture
def store(tmp_path):
    return UnitStore(tmp_path / "units")


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_units(store, jobs):
    results = compute("squares", some_units(), store, jobs=jobs, reporter=Silent())
    assert [r["square"] for r in results] == [0, 1, 4, 9, 16]
    assert all(r["payload"] == "p" for r in results)
    own_process = [r["pid"] == os.getpid() for r in results]
    assert all(own_process) if jobs == 1 else not any(own_process)


def test_stored_units_are_not_computed_again(store):
    first = compute("squares", some_units()[:3], store, jobs=1, reporter=Silent())
    recorder = Recorder()
    both = compute("squares", some_units(), store, jobs=1, reporter=recorder)
    assert both[:3] == first
    assert recorder.events[0] == ("begin", "squares", 2, 3)
    assert [e for e in recorder.events if e[0] == "finish"] == [
        ("finish", "unit 3"),
        ("finish", "unit 4"),
    ]
    assert recorder.events[-1] == ("end",)
    nothing_left = Recorder()
    assert compute("squares", some_units(), store, jobs=2, reporter=nothing_left) == both
    assert nothing_left.events == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised_and_what_is_finished_kept(store, jobs):
    recorder = Recorder()
    with pytest.raises(ValueError, match="x must not be 3"):
        compute("squares", some_units(fail_on_three), store, jobs=jobs, reporter=recorder)
    assert recorder.events[-1] == ("end",)
    assert store.get(some_units(fail_on_three)[0]) == {"square": 0}


def test_progress_of_other_processes_is_told(store):
    recorder = Recorder()
    compute("slow", slow_units.units()[:3], store, jobs=2, reporter=recorder)
    shares = [event[2] for event in recorder.events if event[0] == "advance"]
    assert shares
    assert any(0 < share < 1 for share in shares)


def test_one_of_each_kind_comes_first_then_the_longest():
    units = [
        Unit("a", {}, square, weight=1, kind="hinge"),
        Unit("b", {}, square, weight=5, kind="hinge"),
        Unit("c", {}, square, weight=4, kind="hinge"),
        Unit("d", {}, square, weight=2, kind="entropy"),
        Unit("e", {}, square, weight=3, kind="entropy"),
    ]
    order = [units[n].name for n in _in_good_order(units, [0, 1, 2, 3, 4])]
    assert order == ["b", "e", "c", "d", "a"]
    assert [units[n].name for n in _in_good_order(units, [0, 3])] == ["d", "a"]


def test_default_jobs():
    assert 1 <= default_jobs() <= (os.cpu_count() or 1)


@pytest.mark.skipif(os.name == "nt", reason="kills by POSIX signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, jobs):
    folder = tmp_path / "units"
    command = [sys.executable, "-m", "tests.experiments.slow_units", str(folder), str(jobs)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        _wait_for(lambda: len(list(folder.glob("*.json"))) >= 2, 120)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Other processes notice within a tick that nobody waits for them.
    time.sleep(2 * slow_units.SECONDS)
    before = {path.name: path.read_text() for path in folder.glob("*.json")}
    assert 2 <= len(before) < slow_units.N_UNITS
    time.sleep(2 * slow_units.SECONDS)
    assert len(list(folder.glob("*.json"))) == len(before), "an orphan goes on computing"

    output = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
    results = json.loads(output.stdout)
    assert [r["square"] for r in results] == [x**2 for x in range(slow_units.N_UNITS)]
    for name, text in before.items():
        assert (folder / name).read_text() == text, f"{name} was computed again"
    # Nothing half-written was left behind or taken for a result.
    assert len(list(folder.glob("*.json"))) == slow_units.N_UNITS
    for path in folder.glob("*.json"):
        json.loads(path.read_text())


def _wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the units were not computed in time"
        time.sleep(0.02)
