"""Weights W (d + 1, m) that scores are made from: what all storages with features share."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.storage.base import (
    Costs,
    KeptScores,
    Lengths,
    RowsNotAtHand,
    squared_norm,
)
from shortlist.solvers.threads import Crew


class ExplicitWeights(RowsNotAtHand):
    """The part of a storage that looks at W alone."""

    explicit: bool = True
    n: int
    d: int
    dtype: np.dtype
    width: float
    loss_gradient: Callable[..., tuple[float, NDArray]]

    def shared_work(self, m: int) -> float:
        return self.n * self.width * m

    def bounded_gradient(
        self,
        loss: Loss,
        weights: NDArray,
        costs: Costs,
        crew: Crew,
        wide: bool,
        kept: KeptScores | None = None,
    ) -> tuple[float, NDArray, Lengths | None]:
        """The losses and their gradient; what rounding does to them is not known."""
        return *self.loss_gradient(loss, weights, costs, crew, False), None

    @property
    def weights_per_class(self) -> int:
        return self.d + 1

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.weights_per_class, m), self.dtype)

    def squared_norm(self, weights: NDArray) -> float:
        return squared_norm(weights)

    def largest_column(self, weights: NDArray) -> float:
        """The largest norm of a class's weights."""
        return float(np.sqrt(np.einsum("cj,cj->j", weights, weights, dtype=np.float64).max()))
