"""Examples as the rows of a CSR matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.kernels.rows import CsrRows
from shortlist.solvers.storage.base import read_only
from shortlist.solvers.storage.features import FeatureStorage


class CsrStorage(FeatureStorage):
    """A visit costs an example's nonzeros times the number of classes."""

    def __init__(self, x: Any, bias: float = 0.0, kappa: NDArray | None = None) -> None:
        super().__init__(x, bias, kappa)
        self.support_price = 2.0
        self.width = x.nnz / max(self.n, 1) + 1

    def _squared_norms(self) -> NDArray:
        squares = self.x.data.astype(np.float64) ** 2
        # reduceat gives an empty row the first entry of the next: such rows are set to zero.
        sums = np.add.reduceat(np.append(squares, 0.0), self.x.indptr[:-1])
        return np.where(np.diff(self.x.indptr) > 0, sums, 0.0)

    def view(self) -> CsrRows:
        values, columns, pointers = map(read_only, (self.x.data, self.x.indices, self.x.indptr))
        return CsrRows(values, columns, pointers, self.bias)

    @staticmethod
    def _dense(x: Any) -> NDArray:
        return x.toarray()
