"""Units of work: computed as a whole, stored as a whole, and found again after a kill.

A unit's task is a frozen dataclass: its fields are the parameters, its method ``run`` computes.
The result is a frozen dataclass as well. Both are stored as JSON. Units are computed one after the
other or in parallel processes, and stored as they are finished.
"""

import hashlib
import inspect
import json
import os
import re
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import joblib
import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from shortlist._files import atomic_write
from shortlist._json import plain, typed
from shortlist._machine import processor_name
from shortlist._progress import TaskProgress, progress_on
from shortlist._signals import ctrl_c_not_swallowed, handled, leave

PACKAGE = Path(__file__).parents[1]
#: Parts of the package that show results and cannot change them.
PRESENTATION = ("cli", "plots", "experiments/report", "_progress.py")
#: Packages whose version can change a number.
COMPUTING_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
#: Finished units lie here, within the output folder.
UNITS = "units"
#: How often a working process looks whether the process that it works for still runs.
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Task(ABC):
    """The parameters of a computation, as plain data, and the computation itself.

    Tasks are defined at a module's top level, because they may run in another process. A ``timed``
    one measures times, so that its results are those of one kind of processor.
    """

    uses_torch: ClassVar[bool] = False
    timed: ClassVar[bool] = False

    @abstractmethod
    def run(self, payload: Any) -> Any:
        """Compute the result: a frozen dataclass, which the annotation of ``run`` names.

        The payload is data too large to be a parameter.
        """


@dataclass(frozen=True)
class Unit:
    """A task with a name for people, such as "letter, top-3 SVM".

    The task holds the fingerprint of its ``payload``. ``weight`` says how long the unit takes
    compared with others. Units of one ``kind`` run the same compiled code.
    """

    name: str
    task: Task
    payload: Any = field(default=None, compare=False, repr=False)
    weight: float = field(default=1.0, compare=False)
    kind: str = field(default="", compare=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The facts that a stored result must share with this unit to be used for it.

        Computed once, by the process that made the unit: others may see its code elsewhere.
        """
        task = type(self.task)
        machine = {"processor": processor_name()} if task.timed else {}
        return {
            "task": f"{task.__module__}.{task.__qualname__}",
            "code": _code_of(task),
            "packages": _versions(task.uses_torch),
            "parameters": plain(self.task, keep_nan=True),
            **machine,
        }

    @property
    def key(self) -> str:
        """A file name: readable, and different for different units."""
        text = json.dumps(self.identity, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')}-{digest}"


class UnitStore:
    """The finished units of a folder, one JSON file each, written atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        return self.folder / f"{unit.key}.json"

    def get(self, unit: Unit) -> Any:
        """Return the stored result, or None; a file that is damaged or foreign counts as none."""
        try:
            stored = json.loads(self.path(unit).read_text(encoding="utf-8"))
            if stored["unit"] == unit.identity:
                return _as_result(unit, stored["result"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def put(self, unit: Unit, result: Any) -> Any:
        """Store a result and return it as it will be read back."""
        kept = plain(result, keep_nan=True)
        text = json.dumps({"name": unit.name, "unit": unit.identity, "result": kept})
        with atomic_write(self.path(unit)) as part:
            part.write_text(text, encoding="utf-8")
        return _as_result(unit, kept)


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
        """Return the result of every unit, in order: stored ones at once, the others computed.

        Each result is stored by the process that computed it, as soon as it is there. Ctrl-C and
        SIGTERM end all processes. ``alone``: one at a time, to be timed.
        """
        store = UnitStore(self.output / UNITS)
        results = {number: store.get(unit) for number, unit in enumerate(units)}
        pending = [number for number, result in results.items() if result is None]
        if not pending:
            return list(results.values())
        total, n_stored = sum(units[n].weight for n in pending), len(units) - len(pending)
        remark = f"{n_stored} stored before" if n_stored else ""
        progress = progress_on(self.progress, title, count=len(pending), total=total, remark=remark)
        pending = _in_good_order(units, pending)
        run = closing(_run(units, pending, store, 1 if alone else self.jobs, progress))
        with progress, handled(leave, ["SIGTERM"]), run as finished:
            results.update(finished)
        return list(results.values())


def _in_good_order(units: Sequence[Unit], pending: list[int]) -> list[int]:
    """The longest first, so that no process works alone at the end; before that, one of each kind.

    Units of a kind run the same compiled code. The first of a kind may have to compile it, which
    two processes should not do at once.
    """
    by_weight = sorted(pending, key=lambda number: -units[number].weight)
    first_of_kind = {units[number].kind: number for number in reversed(by_weight)}
    return sorted(by_weight, key=lambda number: number not in first_of_kind.values())


def _run(
    units: Sequence[Unit], pending: list[int], store: UnitStore, jobs: int, progress: TaskProgress
) -> Generator[tuple[int, Any]]:
    # loky starts its processes afresh, without importing the caller's main module, and maps
    # large arrays into memory once for all of them. A single job runs in this process.
    parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
    results = parallel(
        joblib.delayed(_numbered)(number, units[number], store, os.getpid()) for number in pending
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
    # would only get in each other's way. A gap that is not reached is part of the result. Training
    # returns the model it has at Ctrl-C: a unit that was cut short must not be stored.
    with threadpool_limits(1), warnings.catch_warnings(), ctrl_c_not_swallowed():
        # Whatever trains has loaded it by now. It takes a second, which other units are spared.
        if "sklearn.exceptions" in sys.modules:
            warnings.simplefilter("ignore", sys.modules["sklearn.exceptions"].ConvergenceWarning)
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


def _as_result(unit: Unit, data: Any) -> Any:
    return typed(get_type_hints(type(unit.task).run)["return"], data)


@cache
def _versions(with_torch: bool) -> dict[str, str]:
    packages = (*COMPUTING_PACKAGES, "torch") if with_torch else COMPUTING_PACKAGES
    return {name: version(name) for name in packages}


@cache
def _code_of(task: type[Task]) -> str:
    """A hash of all code that can change the task's result."""
    code = code_hash(PACKAGE, with_torch=task.uses_torch)
    source = Path(inspect.getfile(task))
    if source.is_relative_to(PACKAGE):
        return code
    return hashlib.sha256(code.encode() + source.read_bytes()).hexdigest()[:16]


def code_hash(package: Path, *, with_torch: bool) -> str:
    """A hash of the package's sources and tables, without those that only show results."""
    left_out = [package / name for name in (*PRESENTATION, *(() if with_torch else ("torch",)))]
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*")):
        shown_only = any(source.is_relative_to(each) for each in left_out)
        if source.suffix not in (".py", ".csv") or shown_only:
            continue
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:16]


def fingerprint(*arrays: Any) -> str:
    """A short hash of arrays' types, shapes and contents; sparse matrices go by their parts."""
    parts = [[a.data, a.indices, a.indptr] if hasattr(a, "indptr") else [a] for a in arrays]
    return str(joblib.hash([np.ascontiguousarray(part) for each in parts for part in each]))
