"""The paper's tables and figures as runnable definitions.

``run("letter", output="results/letter")`` computes one of them (or all) and writes tables, figures
and a report into a folder; ``registry.EXPERIMENTS`` lists what there is. Names load on first use,
so that a command's help need not import the machinery.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "EXPERIMENTS": "registry",
    "Experiment": "registry",
    "MissingData": "registry",
    "run": "registry",
}
_MODULES = frozenset(["paper", "registry"])

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
