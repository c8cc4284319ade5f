"""Duals in the memory of this process: what all storages share whose duals are kept there."""

import numpy as np

from shortlist.losses.base import Loss
from shortlist.solvers.duals import (
    Duals,
    are_arrays,
    as_array,
    readable,
    spread,
    store,
    zero_duals,
)
from shortlist.solvers.kernels.gradient import sum_conjugates
from shortlist.solvers.storage.base import Costs, chunks


class LocalDuals:
    """The part of a storage that looks at the duals alone, not at the examples."""

    n: int
    dtype: np.dtype
    explicit: bool
    keeps_duals: bool = True
    # Bytes that lists of duals may take; None: as many as the system has.
    most_dual_bytes: int | None = None

    def zero_duals(self, m: int, sparse: bool) -> Duals:
        """Zeros; ``sparse`` says that most of them will stay."""
        # The weights of inner products are as large as dense duals: there is nothing to save.
        lists = sparse and self.explicit
        return zero_duals(self.n, m, self.dtype, lists, self.most_dual_bytes)

    def spread_duals(self, own: float, other: float, costs: Costs, duals: Duals) -> None:
        """Give every example the dual ``own`` for its label and ``other`` for all others."""
        for part in chunks(self.n, duals.shape[1] * self.dtype.itemsize):
            spread(own, other, costs.y[part], part, duals)

    def scale_duals(self, duals: Duals, factor: float) -> None:
        duals *= duals.dtype.type(factor)

    def sum_conjugates(self, loss: Loss, duals: Duals, costs: Costs, factor: float) -> float:
        """sum_i C_i L*(factor v_i)."""
        scratch = np.empty(duals.shape[1], duals.dtype)
        return sum_conjugates(loss.spec, readable(duals), costs.y, costs.cost, factor, scratch)

    def saved_duals(self, loss: Loss, duals: Duals) -> Duals:
        return duals

    def restore_duals(self, loss: Loss, costs: Costs, duals: Duals, saved: Duals) -> Duals:
        """Saved duals in place of zero ones.

        Duals outside the domain of the conjugate would certify what is not true. They become zero,
        which is inside for every loss here.
        """
        if are_arrays(saved, duals):
            duals = saved  # two of them need not fit into memory
        for part in chunks(self.n, saved.shape[1] * 8):
            values = as_array(saved[part])
            outside = ~np.isfinite(loss.row_conjugates(values, costs.y[part]))
            if outside.any() or duals is not saved:
                values = np.where(outside[:, None], 0, values).astype(saved.dtype)
                store(duals, part, costs.y[part], values)
        return duals
