"""How duals travel between workers and driver: as lists of the entries that are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from shortlist.solvers.duals import Entries, SparseDuals


def joined(found: list[Entries], m: int, dtype: Any) -> SparseDuals:
    """The duals of all workers, one after the other."""
    counts, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return SparseDuals.from_entries(m, counts, columns, values.astype(dtype, copy=False))
