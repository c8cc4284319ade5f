"""How examples and duals are stored. One module for each way; ``base`` has the interface."""

from typing import Any

from scipy import sparse

from shortlist.solvers.storage.base import Costs, State, Storage, Sums
from shortlist.solvers.storage.csr import CsrStorage
from shortlist.solvers.storage.dense import DenseStorage
from shortlist.solvers.storage.features import FeatureStorage
from shortlist.solvers.storage.gram import GramStorage
from shortlist.solvers.storage.pieces import PiecedStorage

__all__ = [
    "Costs",
    "CsrStorage",
    "DenseStorage",
    "GramStorage",
    "PiecedStorage",
    "State",
    "Storage",
    "Sums",
    "open_storage",
]


def open_storage(X: Any, bias: float) -> FeatureStorage:
    """The storage for a matrix of features, with a constant feature of value ``bias``."""
    return CsrStorage(X, bias) if sparse.issparse(X) else DenseStorage(X, bias)
