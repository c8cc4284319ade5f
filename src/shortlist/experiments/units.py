"""Units of work: computed as a whole, stored as a whole, and found again after a kill.

A unit's task is a frozen dataclass: its fields are the parameters, its method ``run`` computes.
The result is a frozen dataclass as well. Both are stored as JSON.
"""

import hashlib
import inspect
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from shortlist._files import atomic_write
from shortlist._json import plain, typed

PACKAGE = Path(__file__).parents[1]
#: Parts of the package that show results and cannot change them.
PRESENTATION = ("cli", "plots", "experiments/report", "_progress.py")
#: Packages whose version can change a number.
COMPUTING_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


@dataclass(frozen=True)
class Task(ABC):
    """The parameters of a computation, as plain data, and the computation itself.

    Tasks are defined at a module's top level, because they may run in another process.
    """

    #: What ``run`` returns: a frozen dataclass.
    result_type: ClassVar[type]
    uses_torch: ClassVar[bool] = False

    @abstractmethod
    def run(self, payload: Any) -> Any:
        """Compute the result. The payload is data too large to be a parameter."""


@dataclass(frozen=True)
class Unit:
    """A task with a name for people, such as "letter, top-3 SVM".

    ``payload`` is data too large to be a parameter; the task holds its fingerprint. ``weight``
    says how long the unit takes compared with others. Units of one ``kind`` run the same compiled
    code.
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
        return {
            "task": f"{task.__module__}.{task.__qualname__}",
            "code": _code_of(task),
            "packages": _versions(task.uses_torch),
            "parameters": plain(self.task, keep_nan=True),
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
                return typed(unit.task.result_type, stored["result"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def put(self, unit: Unit, result: Any) -> Any:
        """Store a result and return it as it will be read back."""
        kept = plain(result, keep_nan=True)
        text = json.dumps({"name": unit.name, "unit": unit.identity, "result": kept})
        with atomic_write(self.path(unit)) as part:
            part.write_text(text, encoding="utf-8")
        return typed(unit.task.result_type, kept)


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
        if source.suffix not in (".py", ".csv"):
            continue
        if any(source.is_relative_to(each) for each in left_out):
            continue
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:16]


def fingerprint(*arrays: Any) -> str:
    """A short hash of arrays' types, shapes and contents; sparse matrices go by their parts."""
    digest = hashlib.sha256()
    for array in arrays:
        parts = [array.data, array.indices, array.indptr] if hasattr(array, "indptr") else [array]
        for part in parts:
            dense = np.ascontiguousarray(part)
            digest.update(f"{dense.dtype.str}{dense.shape}".encode())
            # Names of classes may be Python objects. Their text is hashed.
            digest.update(repr(dense.tolist()).encode() if dense.dtype.hasobject else dense.data)
    return digest.hexdigest()[:16]
