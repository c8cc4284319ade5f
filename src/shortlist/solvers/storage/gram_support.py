"""Examples with nonzero duals, and the inner products among them, for cheap visits."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import as_array
from shortlist.solvers.kernels.inner import gather_square
from shortlist.solvers.kernels.joint import joint_step, list_entries
from shortlist.solvers.storage.base import State, Support, read_only

# Of the examples opened, those still visited are copied to a smaller matrix below this share.
SHARE_WORTH_A_COPY = 0.7


def weights_of(duals: NDArray, cost: NDArray) -> NDArray:
    return (duals * -cost[:, None]).astype(duals.dtype)


def square_of(gram: NDArray, rows: NDArray, room: NDArray) -> NDArray:
    """gram[rows][:, rows], put at the beginning of ``room``; ``rows`` increase.

    The matrix may lie there itself: no entry moves towards the end.
    """
    square = room[: rows.size**2].reshape(rows.size, rows.size)
    gather_square(gram, rows, square)
    return read_only(square)


@dataclass
class GramSupport(Support):
    """Examples with the inner products among them, numbered from zero.

    ``numbers`` are those of the storage. Scores of an example that is not visited any more need not
    follow: as examples settle, what a visit adds to becomes shorter.
    """

    # Changing a dual adds a row of the matrix to scores. Looking at an example reads a few numbers.
    # With 0.5, digits with the rbf kernel take half as many changes at C = 1 and 10.
    postponed: ClassVar[float] = 0.5

    numbers: NDArray = field(kw_only=True)
    state: State = field(kw_only=True)
    # Where a smaller matrix is put; this one may lie there too.
    room: NDArray = field(kw_only=True)

    # Entries of the duals and what is known of earlier steps (see ``kernels.joint``).
    past: tuple[NDArray, NDArray, NDArray] | None = None

    def step_jointly(self, loss: Loss) -> float:
        duals = as_array(self.duals)
        if self.past is None:
            self.past = list_entries(self.by_class, self.y, duals)
            return 0.0
        rise: float = joint_step(
            loss.spec,
            not loss.smooth,
            self.view,
            self.by_class,
            self.y,
            self.cost,
            duals,
            *self.past,
        )
        return rise

    def narrow(self, order: NDArray) -> NDArray:
        if order.size > SHARE_WORTH_A_COPY * self.numbers.size:
            return order
        self.settle()
        kept = np.sort(order)
        self.view = self.view._replace(gram=square_of(self.view.gram, kept, self.room))
        self.by_class = np.ascontiguousarray(self.by_class[:, kept])
        self.numbers, self.y, self.cost = self.numbers[kept], self.y[kept], self.cost[kept]
        self.kappa, self.duals = self.kappa[kept], self.duals[kept]
        self.past = None
        return np.arange(kept.size)

    def settle(self) -> None:
        as_array(self.state.duals)[self.numbers] = self.duals
        self.state.weights[self.numbers] = weights_of(as_array(self.duals), self.cost)
