"""What every matrix of features must satisfy, with errors that name file and row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._memory import release_pages
from ..errors import DataError

# Finiteness is tested in pieces of about this many values: a memory map need not fit in memory.
_CHUNK_VALUES = 2**22


def check_features(X: Any, path: str, n_features: int | None = None) -> Any:
    """Return X, checked: two-dimensional, numeric, not empty, finite, ``n_features`` columns."""
    if X.ndim != 2:
        raise DataError(f"the features have shape {X.shape}, not two dimensions", path=path)
    if X.dtype.kind not in "biuf":
        raise DataError(f"the features are of type {X.dtype}, not numbers", path=path)
    if 0 in X.shape:
        raise DataError(f"holds no examples (its features have shape {X.shape})", path=path)
    if n_features is not None and X.shape[1] != n_features:
        raise DataError(f"has {X.shape[1]} features where {n_features} are expected", path=path)
    check_finite(X, path)
    return X


def check_finite(X: Any, path: str) -> None:
    """Raise a DataError that names the first row with a NaN or an infinite value."""
    if X.dtype.kind != "f":
        return
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right"))
            message = f"feature {X.indices[bad[0]]} is {X.data[bad[0]]} (the first feature is 0)"
            raise DataError(message, path=path, row=row)
        return
    step = max(_CHUNK_VALUES // X.shape[1], 1)
    for start in range(0, X.shape[0], step):
        finite = np.isfinite(X[start : start + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = X[start + row, column]
            message = f"feature {column} is {value} (the first feature is 0)"
            raise DataError(message, path=path, row=start + int(row) + 1)
        if isinstance(X, np.memmap):
            release_pages(X)
