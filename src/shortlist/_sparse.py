"""Sparse matrices from files, checked before compiled code follows their indices."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_sparse(matrix: Any) -> None:
    """Raise ValueError unless every index of a CSR or CSC matrix points into it.

    scipy's own full check leaves out a matrix whose last row or column ends at 0, whatever stands
    before: hence the first test.
    """
    if (np.diff(matrix.indptr.astype(np.int64, copy=False)) < 0).any():
        raise ValueError("the row or column pointers of a sparse matrix decrease")
    matrix.check_format(full_check=True)
