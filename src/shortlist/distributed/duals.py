"""Duals that workers keep, and how they travel: as lists of the entries that are not zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.solvers.duals import Entries, SparseDuals

if TYPE_CHECKING:
    from shortlist.distributed.group import Group


class RemoteDuals:
    """The duals that the workers keep, for as long as they live."""

    nbytes = math.inf  # too many to be copied

    def __init__(self, group: Group, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.group, self.shape, self.dtype = group, shape, dtype


def joined(found: list[Entries], m: int, dtype: Any) -> SparseDuals:
    """The duals of all workers, one after the other."""
    counts, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return SparseDuals.from_entries(m, counts, columns, values.astype(dtype, copy=False))
