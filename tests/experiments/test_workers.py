"""Computing units: order, processes, errors, progress, and what happens when they are ended."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from shortlist.experiments import registry
from shortlist.experiments.report import Section
from shortlist.experiments.units import UNITS, Context, Task, Unit, UnitStore, _in_good_order
from tests.experiments import slow_units

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Square:
    square: int
    payload: str
    pid: int


@dataclass(frozen=True)
class SquareTask(Task):
    x: int
    refused: int | None = None

    def run(self, payload) -> Square:
        if self.x == self.refused:
            raise ValueError(f"x must not be {self.refused}")
        return Square(self.x**2, payload, os.getpid())


def some_units(refused=None, n=5):
    return [Unit(f"unit {x}", SquareTask(x, refused), payload="p") for x in range(n)]


@pytest.fixture
def store(tmp_path):
    return UnitStore(tmp_path / UNITS)


def compute(title, units, store, *, jobs, console=None):
    return Context(store.folder.parent, jobs, progress=console).compute(title, units)


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_units(store, jobs):
    results = compute("squares", some_units(), store, jobs=jobs)
    assert [r.square for r in results] == [0, 1, 4, 9, 16]
    assert all(r.payload == "p" for r in results)
    own_process = [r.pid == os.getpid() for r in results]
    assert all(own_process) if jobs == 1 else not any(own_process)


def test_stored_units_are_not_computed_again(store):
    first = compute("squares", some_units()[:3], store, jobs=1)
    log = Console(file=io.StringIO(), width=100)
    both = compute("squares", some_units(), store, jobs=1, console=log)
    assert both[:3] == first
    lines = log.file.getvalue().splitlines()
    assert lines[0] == "squares: 3 stored before"
    assert lines[-1] == "squares: unit 4 is finished; 2 of 2 done"
    nothing_left = Console(file=io.StringIO())
    assert compute("squares", some_units(), store, jobs=2, console=nothing_left) == both
    assert nothing_left.file.getvalue() == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised_and_what_is_finished_kept(store, jobs):
    units = some_units(refused=3)
    with pytest.raises(ValueError, match="x must not be 3"):
        compute("squares", units, store, jobs=jobs)
    assert store.get(units[0]).square == 0
    assert store.get(units[3]) is None


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_names_what_runs_and_counts_what_is_done(store, jobs):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    compute("slow", slow_units.units()[:3], store, jobs=jobs, console=console)
    text = console.file.getvalue()
    for words in ("unit 0", "unit 1", "unit 2", "slow: 0 of 3 done", "slow: 3 of 3 done"):
        assert words in text


def test_one_of_each_kind_comes_first_then_the_longest():
    kinds = {"a": (1, "hinge"), "b": (5, "hinge"), "c": (4, "hinge")}
    kinds |= {"d": (2, "entropy"), "e": (3, "entropy")}
    units = [Unit(name, SquareTask(0), weight=w, kind=kind) for name, (w, kind) in kinds.items()]
    order = [units[n].name for n in _in_good_order(units, [0, 1, 2, 3, 4])]
    assert order == ["b", "e", "c", "d", "a"]
    assert [units[n].name for n in _in_good_order(units, [0, 3])] == ["d", "a"]


def test_default_jobs(tmp_path, monkeypatch):
    jobs = []

    def counting(context):
        jobs.append(context.jobs)
        return Section("s", "S", [])

    monkeypatch.setattr(registry.Experiment, "function", lambda self: counting)
    registry.run("circle", tmp_path)
    assert 1 <= jobs[0] <= (os.cpu_count() or 1)


posix = pytest.mark.skipif(os.name == "nt", reason="ends processes by POSIX signals")


def command(folder, jobs, seconds=slow_units.SECONDS):
    module = "tests.experiments.slow_units"
    return [sys.executable, "-m", module, str(folder), str(jobs), str(seconds)]


@posix
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, jobs):
    folder = tmp_path / UNITS
    process = subprocess.Popen(command(tmp_path, jobs), cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        _wait_for(lambda: len(list(folder.glob("*.json"))) >= 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    _wait_for(lambda: not any(map(_runs, _workers(tmp_path))))
    before = {path.name: path.read_text() for path in folder.glob("*.json")}
    assert 2 <= len(before) < slow_units.N_UNITS

    output = subprocess.run(command(tmp_path, jobs), cwd=ROOT, capture_output=True, check=True)
    results = json.loads(output.stdout)
    assert [r["square"] for r in results] == [x**2 for x in range(slow_units.N_UNITS)]
    for name, text in before.items():
        assert (folder / name).read_text() == text, f"{name} was computed again"
    # Nothing half-written was left behind or taken for a result.
    assert len(list(folder.glob("*.json"))) == slow_units.N_UNITS
    for path in folder.glob("*.json"):
        json.loads(path.read_text())


@posix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_working_processes_end_with_the_one_they_work_for(tmp_path, how):
    # Units that would take an hour: only the signal can end them.
    process = subprocess.Popen(
        command(tmp_path, 2, seconds=3600),
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        preexec_fn=_heed_ctrl_c,
    )
    try:
        _wait_for(lambda: len(_workers(tmp_path)) == 2)
        assert all(map(_runs, _workers(tmp_path)))
        process.send_signal(how)
        code = process.wait(timeout=60)
        _wait_for(lambda: not any(map(_runs, _workers(tmp_path))))
    finally:
        process.kill()
        process.wait()
    assert code != 0


@posix
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_ctrl_c_cut_short_is_not_stored(tmp_path, jobs):
    # On a terminal Ctrl-C reaches all processes, and training returns what there is.
    process = subprocess.Popen(
        command(tmp_path, jobs, seconds=3600),
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_heed_ctrl_c,
    )
    try:
        _wait_for(lambda: len(_workers(tmp_path)) == jobs)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(timeout=60)
        _wait_for(lambda: not any(map(_runs, _workers(tmp_path))))
    finally:
        process.kill()
        process.wait()
    assert code != 0
    assert list((tmp_path / UNITS).glob("*.json")) == []


def _heed_ctrl_c():
    """Tests may run in the background, where shells have Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _workers(folder):
    return [int(path.stem) for path in folder.glob("*.pid")]


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended stays listed until its parent has taken note.
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def _wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)
