"""Units computed one after the other or in parallel processes, stored as they are finished."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from shortlist._progress import TaskProgress, progress_on
from shortlist._signals import handled, leave
from shortlist.experiments.units import Unit, UnitStore

#: Finished units lie here, within the output folder.
UNITS = "units"
#: How often a working process looks whether the process that it works for still runs.
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Context:
    """What an experiment gets: where results go, how many processes, the seed, where to report.

    ``quick`` asks for a smaller version that only shows that everything works.
    """

    output: Path
    jobs: int = 1
    seed: int = 0
    quick: bool = False
    progress: Console | None = None

    def compute(self, title: str, units: Sequence[Unit], *, alone: bool = False) -> list[Any]:
        """The results of units, stored ones included; ``alone``: one at a time, to be timed."""
        store = UnitStore(self.output / UNITS)
        jobs = 1 if alone else self.jobs
        return compute(title, units, store, jobs=jobs, console=self.progress)


def default_jobs() -> int:
    """The number of processors that affinity and control groups leave to this process."""
    return cpu_count()


def compute(
    title: str,
    units: Sequence[Unit],
    store: UnitStore,
    *,
    jobs: int,
    console: Console | None = None,
) -> list[Any]:
    """Return the result of every unit, in order: stored ones at once, the others computed.

    Each result is stored by the process that computed it, as soon as it is there. Ctrl-C and
    SIGTERM end all processes.
    """
    results = {number: store.get(unit) for number, unit in enumerate(units)}
    pending = [number for number, result in results.items() if result is None]
    if not pending:
        return list(results.values())
    n_stored = len(units) - len(pending)
    pending = _in_good_order(units, pending)
    total = sum(units[number].weight for number in pending)
    remark = f"{n_stored} stored before" if n_stored else ""
    progress = progress_on(console, title, count=len(pending), total=total, remark=remark)
    run = closing(_run(units, pending, store, jobs, progress))
    with progress, handled(leave, ["SIGTERM"]), run as finished:
        results.update(finished)
    return list(results.values())


def _in_good_order(units: Sequence[Unit], pending: list[int]) -> list[int]:
    """The longest first, so that no process works alone at the end; before that, one of each kind.

    Units of a kind run the same compiled code. The first of a kind may have to compile it, which
    two processes should not do at once.
    """
    by_weight = sorted(pending, key=lambda number: -units[number].weight)
    first_of_kind: dict[str, int] = {}
    for number in by_weight:
        first_of_kind.setdefault(units[number].kind, number)
    firsts = list(first_of_kind.values())
    return firsts + [number for number in by_weight if number not in firsts]


def _run(
    units: Sequence[Unit], pending: list[int], store: UnitStore, jobs: int, progress: TaskProgress
) -> Generator[tuple[int, Any]]:
    # loky starts its processes afresh, without importing the caller's main module, and maps
    # large arrays into memory once for all of them. A single job runs in this process.
    parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
    results = parallel(
        delayed(_numbered)(number, units[number], store, os.getpid()) for number in pending
    )
    # Units are taken in the order given, so the next one begins when one has ended.
    waiting = iter(pending)
    for _, number in zip(range(jobs - 1), waiting, strict=False):
        progress.begin(units[number].name)
    with closing(results):
        while True:
            if (following := next(waiting, None)) is not None:
                progress.begin(units[following].name)
            finished = next(results, None)
            if finished is None:
                return
            progress.finish(units[finished[0]].name, units[finished[0]].weight)
            yield finished


def _numbered(number: int, unit: Unit, store: UnitStore, caller: int) -> tuple[int, Any]:
    """Compute a unit and store its result, for the process ``caller``."""
    if os.getpid() != caller:
        _end_with(caller)
    # Processes share the machine among themselves: threads of a linear algebra library on top
    # would only get in each other's way. A gap that is not reached is part of the result.
    with threadpool_limits(1), warnings.catch_warnings(), _ctrl_c_not_swallowed():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = unit.task.run(unit.payload)
    return number, store.put(unit, result)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent has ended, since its result is not wanted any more.

    A parent that is killed cannot tell its children. On Windows they finish their unit first.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Interrupted(BaseException):
    """Ctrl-C in a unit. Training would catch KeyboardInterrupt and return the model it has."""


@contextmanager
def _ctrl_c_not_swallowed() -> Iterator[None]:
    """Ctrl-C ends the body at once, or at its end at the latest if it is caught there.

    A unit that was cut short must not go on with what it has, nor be stored.
    """
    # A job in the background ignores Ctrl-C. Other signals that end it come to this handler too.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    caught = False

    def note(number: int, frame: Any) -> None:
        nonlocal caught
        if number == signal.SIGINT and ignored:
            return
        caught = True
        raise _Interrupted

    usual = (signal.default_int_handler, signal.SIG_IGN)
    with suppress(_Interrupted), handled(note, ["SIGINT"], instead_of=usual):
        yield
    if caught:
        raise KeyboardInterrupt
