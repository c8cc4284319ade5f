"""Finished units of work on disk: what lets a killed run go on where it stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import __version__
from shortlist._files import atomic_write
from shortlist._json import plain

Tick = Callable[[float], None]
Record = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A piece of work that is computed as a whole and stored as a whole.

    Attributes
    ----------
    name : str
        For people, such as "letter, top-3 SVM".
    parameters : mapping
        Everything the result depends on, as plain data: units with equal parameters are the same.
    work : callable
        ``work(parameters, payload, tick)`` returns the result as plain data. It is defined at a
        module's top level, since it may run in another process, and calls ``tick`` with the share
        done so far, from 0 to 1.
    payload : any
        Data too large to be a parameter; the parameters hold its fingerprint.
    weight : float
        How long the unit takes compared with others, for the order and the time left.
    kind : str
        Units of one kind run the same compiled code.
    """

    name: str
    parameters: Mapping[str, Any]
    work: Callable[[Mapping[str, Any], Any, Tick], Record] = field(compare=False)
    payload: Any = field(default=None, compare=False, repr=False)
    weight: float = field(default=1.0, compare=False)
    kind: str = field(default="", compare=False)

    @cached_property
    def identity(self) -> Record:
        """What must agree for a stored result to stand for this unit.

        Computed once, by the process that made the unit: others may see its code elsewhere.
        """
        return {
            "version": __version__,
            "work": f"{self.work.__module__}.{self.work.__qualname__}",
            "code": _code_hash(self.work.__module__),
            "parameters": plain(self.parameters, keep_nan=True),
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

    def get(self, unit: Unit) -> Record | None:
        """Return the stored result, or None; a file that is damaged or foreign counts as none."""
        try:
            stored = json.loads(self.path(unit).read_text(encoding="utf-8"))
            if stored["unit"] == unit.identity:
                return stored["result"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass
        return None

    def put(self, unit: Unit, result: Record) -> Record:
        """Store a result and return it as it will be read back."""
        kept = plain(result, keep_nan=True)
        text = json.dumps({"name": unit.name, "unit": unit.identity, "result": kept})
        with atomic_write(self.path(unit)) as part:
            part.write_text(text, encoding="utf-8")
        return json.loads(text)["result"]


#: What computes: an edit there makes stored results those of another program.
_COMPUTING = ("losses", "projections", "solvers", "estimators", "metrics", "calibration", "torch")


@cache
def _code_hash(module: str) -> str:
    """A hash of the sources that a unit's result depends on: the library's, and its own module."""
    package = Path(__file__).parents[1]
    sources = [package / "special.py", Path(str(import_module(module).__file__))]
    for folder in _COMPUTING:
        sources += sorted((package / folder).rglob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def fingerprint(*arrays: Any) -> str:
    """A short hash of arrays' types, shapes and contents; sparse matrices go by their parts."""
    digest = hashlib.sha256()
    for array in arrays:
        parts = [array.data, array.indices, array.indptr] if hasattr(array, "indptr") else [array]
        for part in parts:
            dense = np.ascontiguousarray(part)
            digest.update(f"{dense.dtype.str}{dense.shape}".encode())
            # Names of classes are Python objects now and then: their text stands for them.
            digest.update(repr(dense.tolist()).encode() if dense.dtype.hasobject else dense.data)
    return digest.hexdigest()[:16]
