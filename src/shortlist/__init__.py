"""Classifiers whose shortlist of k labels contains the right one.

Public names load on first use, so that ``import shortlist`` stays instant: neither numba nor
torch nor matplotlib is imported until something needs it.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "TopKClassifier": "shortlist.estimators",
    "TopKClassifierCV": "shortlist.estimators",
    "KernelTopKClassifier": "shortlist.estimators",
    "save": "shortlist.persistence",
    "load": "shortlist.persistence",
    "to_onnx": "shortlist.onnx",
}
_MODULES = frozenset(
    ["calibration", "conformal", "datasets", "distributed", "errors", "estimators", "experiments"]
    + ["losses", "metrics", "onnx", "plots", "probabilities", "projections", "solvers", "special"]
    + ["torch"]
)

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"shortlist.{name}")
    raise AttributeError(f"module 'shortlist' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
