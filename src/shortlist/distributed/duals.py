"""How duals travel between workers and driver: as lists of the entries that are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.duals import Duals, SparseDuals, are_sparse

# Counts of examples, columns and values: see ``SparseDuals.entries``.
Entries = tuple[NDArray, NDArray, NDArray]
# Numbers of a dense array that are looked at in one go.
NUMBERS_AT_ONCE = 1 << 22


def entries_of(duals: Duals) -> Entries:
    """The entries of duals of either kind."""
    if are_sparse(duals):
        return duals.entries()
    from scipy import sparse

    size = max(1, NUMBERS_AT_ONCE // duals.shape[1])
    parts = [sparse.csr_array(duals[i : i + size]) for i in range(0, len(duals), size)]
    listed = sparse.vstack(parts, format="csr")
    return np.diff(listed.indptr), listed.indices, listed.data


def joined(found: list[Entries], m: int, dtype: Any) -> SparseDuals:
    """The duals of all workers, one after the other."""
    counts, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return SparseDuals.from_entries(m, counts, columns, values.astype(dtype, copy=False))
