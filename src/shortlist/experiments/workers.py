"""Units of work in parallel processes, with progress for people."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from shortlist.experiments.store import Record, Unit, UnitStore

#: How often the progress of other processes is looked up.
_SECONDS_BETWEEN_LOOKS = 0.2


class Reporter(Protocol):
    """Who is told how the work goes."""

    def begin(self, title: str, units: Sequence[Unit], n_stored: int) -> None: ...

    def advance(self, unit: Unit, share: float) -> None: ...

    def finish(self, unit: Unit, seconds: float) -> None: ...

    def end(self) -> None: ...


def default_jobs() -> int:
    """The number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def compute(
    title: str, units: Sequence[Unit], store: UnitStore, *, jobs: int, reporter: Reporter
) -> list[Record]:
    """Return the result of every unit, in order: stored ones at once, the others computed.

    Each result is stored by the process that computed it, as soon as it is there.
    """
    results: dict[int, Record] = {}
    for number, unit in enumerate(units):
        if (stored := store.get(unit)) is not None:
            results[number] = stored
    pending = [number for number in range(len(units)) if number not in results]
    if pending:
        pending = _in_good_order(units, pending)
        reporter.begin(title, [units[number] for number in pending], len(results))
        try:
            for number, result in _run(units, pending, store, min(jobs, len(pending)), reporter):
                results[number] = result
        finally:
            reporter.end()
    return [results[number] for number in range(len(units))]


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
    units: Sequence[Unit], pending: list[int], store: UnitStore, jobs: int, reporter: Reporter
) -> Iterator[tuple[int, Record]]:
    if jobs <= 1:
        for number in pending:
            unit = units[number]

            def tick(share: float, unit: Unit = unit) -> None:
                reporter.advance(unit, share)

            _, result, seconds = _work(number, unit, store, tick)
            reporter.finish(unit, seconds)
            yield number, result
        return
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory(prefix="shortlist-") as folder:
        board = _Board(Path(folder))
        # loky starts its processes afresh, without importing the caller's main module, and maps
        # large arrays into memory once for all of them.
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        jobs_to_do = (
            delayed(_work)(number, units[number], store, board.writer(number)) for number in pending
        )
        with board.watched({n: units[n] for n in pending}, reporter):
            for number, result, seconds in parallel(jobs_to_do):
                reporter.finish(units[number], seconds)
                yield number, result


def _work(
    number: int, unit: Unit, store: UnitStore, tick: Callable[[float], None]
) -> tuple[int, Record, float]:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    begin = time.perf_counter()
    tick(0.0)
    # Processes share the machine among themselves: threads of a linear algebra library on top
    # would only get in each other's way. A gap that is not reached is part of the result.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = unit.work(unit.identity["parameters"], unit.payload, tick)
    return number, store.put(unit, result), time.perf_counter() - begin


class _Writer:
    """A ``tick`` that leaves the share done in a file for the watching process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.watching_process = os.getpid()

    def __call__(self, share: float) -> None:
        if os.getppid() != self.watching_process:
            # It was killed. Work that nobody waits for would only slow down its successor.
            os._exit(1)
        # Progress is a courtesy: a full disk is no reason to stop.
        with suppress(OSError):
            self.path.write_text(f"{share:.4f}", encoding="ascii")


class _Board:
    """A folder where working processes note how far they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writer(self, number: int) -> _Writer:
        return _Writer(self.folder / str(number))

    @contextmanager
    def watched(self, units: dict[int, Unit], reporter: Reporter) -> Iterator[None]:
        """Tell the reporter what is on the board, every now and then, while the body runs."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_SECONDS_BETWEEN_LOOKS):
                for number, unit in units.items():
                    # Missing: not begun. Empty: just being written.
                    with suppress(OSError, ValueError):
                        share = float((self.folder / str(number)).read_text(encoding="ascii"))
                        reporter.advance(unit, share)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


class Silent:
    """Tells nobody."""

    def begin(self, title: str, units: Sequence[Unit], n_stored: int) -> None:
        pass

    def advance(self, unit: Unit, share: float) -> None:
        pass

    def finish(self, unit: Unit, seconds: float) -> None:
        pass

    def end(self) -> None:
        pass
