"""The scikit-learn estimators, each loaded when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.estimators.cv import TopKClassifierCV
    from shortlist.estimators.kernel import KernelTopKClassifier
    from shortlist.estimators.linear import TopKClassifier
    from shortlist.estimators.shortlists import ShortlistClassifier

__all__ = ["KernelTopKClassifier", "ShortlistClassifier", "TopKClassifier", "TopKClassifierCV"]

_HOME = {
    "KernelTopKClassifier": "kernel",
    "ShortlistClassifier": "shortlists",
    "TopKClassifier": "linear",
    "TopKClassifierCV": "cv",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
