"""Weights W (d + 1, m) that scores are made from: what all storages with features share."""

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.storage.base import Costs, KeptScores, Lengths, Storage, squared_norm
from shortlist.solvers.storage.curvature import Curvature, CurvatureRequest
from shortlist.solvers.threads import Crew


class ExplicitWeights:
    """The part of a storage that looks at W alone."""

    explicit: bool = True
    rows_at_hand: bool = False
    n: int
    d: int
    dtype: np.dtype
    width: float

    def shared_work(self, m: int) -> float:
        return self.n * self.width * m

    def curvature(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, asked: CurvatureRequest
    ) -> Curvature:
        raise NotImplementedError("the examples are not at hand for many products")

    def all_scores(self, weights: NDArray, crew: Crew) -> NDArray:
        raise NotImplementedError("the examples are not at hand for many products")

    def in_double(self, m: int, sparse_duals: bool) -> Storage | None:
        raise NotImplementedError("the examples are not at hand to be copied")

    def loss_gradient_of_classes(
        self, loss: Loss, scores: NDArray, w: NDArray, classes: NDArray, costs: Costs, crew: Crew
    ) -> tuple[float, NDArray]:
        raise NotImplementedError("the examples are not at hand for many products")

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        raise NotImplementedError

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

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.d + 1, m), self.dtype)

    def squared_norm(self, weights: NDArray) -> float:
        return squared_norm(weights)

    def largest_column(self, weights: NDArray) -> float:
        """The largest norm of a class's weights."""
        return float(np.sqrt(np.einsum("cj,cj->j", weights, weights, dtype=np.float64).max()))
