"""Rows divided by their norms, before training and before every prediction."""

from typing import Any

import numpy as np
from scipy import sparse

from shortlist.errors import ParameterError
from shortlist.solvers.storage.base import chunks

#: What the parameter ``normalize`` may be.
CHOICES = (None, "l2")


def check_normalize(normalize: Any) -> None:
    """Raise ValueError unless it is one of the choices."""
    if not (normalize is None or (isinstance(normalize, str) and normalize in CHOICES)):
        raise ParameterError("normalize", f"must be None or 'l2'; got {normalize!r}")


def normalized(X: Any, normalize: str | None) -> Any:
    """Checked input itself, or a copy of the same precision with rows of length one.

    Rows of zeros stay as they are. Norms are computed in double, so that squares do not overflow.
    """
    if normalize is None:
        return X
    if sparse.issparse(X):
        unit = X.copy()
        lengths = np.diff(X.indptr)
        rows = np.repeat(np.arange(X.shape[0]), lengths)
        squares = np.bincount(rows, X.data.astype(np.float64) ** 2, minlength=X.shape[0])
        unit.data /= np.repeat(_divisors(squares), lengths)
        return unit
    unit = np.empty(X.shape, X.dtype)
    for part in chunks(len(X), X.shape[1] * 8):
        rows = np.asarray(X[part], dtype=np.float64)
        divisors = _divisors(np.einsum("ij,ij->i", rows, rows))
        np.divide(rows, divisors[:, None], out=unit[part], casting="same_kind")
    return unit


def _divisors(squares: np.ndarray) -> np.ndarray:
    return np.sqrt(np.where(squares > 0, squares, 1.0))
