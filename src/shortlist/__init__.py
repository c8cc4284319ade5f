"""Classifiers whose shortlist of k labels contains the right one.

Public names load on first use, so that ``import shortlist`` stays instant: neither numba nor
torch nor matplotlib is imported until something needs it.
"""

from shortlist._lazy import names_of

__version__ = "0.1.0"

_MODULES = (
    *("calibration", "conformal", "datasets", "distributed", "errors", "estimators", "experiments"),
    *("losses", "metrics", "onnx", "plots", "probabilities", "projections", "solvers", "special"),
    "torch",
)
__getattr__, __dir__, _names = names_of(
    __name__,
    {
        "TopKClassifier": "estimators",
        "TopKClassifierCV": "estimators",
        "KernelTopKClassifier": "estimators",
        "save": "persistence",
        "load": "persistence",
        "to_onnx": "onnx",
        **{module: module for module in _MODULES},
    },
)
__all__ = sorted([*_names, "__version__"])
