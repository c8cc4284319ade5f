"""Examples that are read in pieces, one after the other: more of them than memory holds.

A piece is worked on as if its rows were all there is, by the storage that suits them. One thread
reads the next piece meanwhile. Sums over examples are sums over pieces, which are ranges of rows
that lie together. The pieces of an epoch are mixtures of shorter runs of rows (``mixing``), visited
in random order.

Duals are in memory, in a mapped file, or not kept at all: see ``solvers.placing``.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shortlist._memory import release_pages
from shortlist.losses.base import Loss
from shortlist.solvers.duals import (
    Duals,
    as_array,
    mapped_duals,
    put_back,
    spread,
    taken_ahead,
    taken_duals,
)
from shortlist.solvers.storage.base import NO_SHARES, Costs, NoSupportVisits, State, Sums
from shortlist.solvers.storage.csr import CsrStorage
from shortlist.solvers.storage.dense import DenseStorage
from shortlist.solvers.storage.explicit import ExplicitWeights
from shortlist.solvers.storage.features import FeatureStorage
from shortlist.solvers.storage.local import LocalDuals
from shortlist.solvers.storage.mixing import (
    MixedPiece,
    mixtures,
    rows_of_run,
)
from shortlist.solvers.storage.support import (
    AFTER_EPOCH,
    IN_PIECE,
    SUPPORT_PASSES,
    rows_on_support,
    support_pass,
)
from shortlist.solvers.threads import Crew

# Of the gap that a pass over the support finds, the share that it leaves. Measured: 0.2 to 0.5.
LEFT_BY_PASS = 0.4
# Passes over the support follow an epoch that visits at least this share of the examples. A round
# of a cluster visits fewer, and its caller makes the passes.
MIN_VISITED_SHARE_FOR_PASSES = 0.25

DualsPlace = Literal["memory", "mapped", "none"]
Read = TypeVar("Read")
Visit = Callable[[FeatureStorage, MixedPiece, State, Costs], float]


class RowSource(Protocol):
    """Rows that lie elsewhere; ``datasets.on_disk`` has such."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def is_sparse(self) -> bool: ...
    @property
    def mean_nonzeros(self) -> float: ...
    def read(self, begin: int, end: int) -> Any: ...
    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Any: ...


class PiecedStorage(ExplicitWeights, LocalDuals, NoSupportVisits):
    """Rows of ``source``, ``rows_per_piece`` of them at a time.

    ``duals`` says where duals are kept, ``most_dual_bytes`` how large lists of them may grow.
    """

    def __init__(
        self,
        source: RowSource,
        bias: float,
        rows_per_piece: int,
        duals: DualsPlace = "memory",
        most_dual_bytes: int | None = None,
    ) -> None:
        self.source = source
        self.n, self.d = source.shape
        self.dtype = source.dtype
        self.bias = float(bias)
        self.width = source.mean_nonzeros + 1.0
        self.keeps_duals = duals != "none"
        self._duals_place = duals
        self.most_dual_bytes = most_dual_bytes
        self.rows_per_piece = max(1, rows_per_piece)
        row_bytes = source.mean_nonzeros * (self.dtype.itemsize + (4 if source.is_sparse else 0))
        self.rows_per_run = rows_of_run(self.rows_per_piece, row_bytes)
        self.bounds = np.append(np.arange(0, self.n, self.rows_per_piece), self.n)
        kappa = np.empty(self.n)
        for part, piece in self._ahead(self._read, range(self.n_pieces)):
            kappa[part] = piece.kappa
        self.kappa = kappa
        if np.isnan(kappa).any():
            row = int(np.flatnonzero(np.isnan(kappa))[0])
            raise ValueError(f"example {row} holds a value that is not a number")

    @property
    def n_pieces(self) -> int:
        return len(self.bounds) - 1

    # --- reading ---------------------------------------------------------------------------------

    def _storage(self, rows: Any, kappa: NDArray | None) -> FeatureStorage:
        if self.source.is_sparse:
            return CsrStorage(rows, self.bias, kappa=kappa)
        rows.flags.writeable = False  # as all input is: kernels compile once
        return DenseStorage(rows, self.bias, kappa=kappa)

    def _read(self, number: int, kappa: NDArray | None = None) -> tuple[slice, FeatureStorage]:
        """A piece; ``kappa`` is that of all examples, if it is known."""
        part = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        rows = self.source.read(part.start, part.stop)
        return part, self._storage(rows, None if kappa is None else kappa[part])

    def _read_mixture(self, mixture: MixedPiece) -> FeatureStorage:
        rows = self.source.read_ranges(mixture.ranges)
        return self._storage(rows, mixture.taken(self.kappa))

    def _pieces(self) -> Iterator[tuple[slice, FeatureStorage]]:
        """All pieces, as they lie in the data."""
        return self._ahead(partial(self._read, kappa=self.kappa), range(self.n_pieces))

    @staticmethod
    def _ahead(read: Callable[[int], Read], numbers: Sequence[int]) -> Iterator[Read]:
        """``read(number)`` for each; while one is worked on, the next is read."""
        first, *others = numbers
        with ThreadPoolExecutor(1, "shortlist-reader") as reader:
            ahead = reader.submit(read, first)
            for number in others:
                here = ahead.result()
                ahead = reader.submit(read, number)
                yield here
                del here  # two pieces in memory, not three
            yield ahead.result()

    # --- visits ----------------------------------------------------------------------------------

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        """Visit the examples piece by piece, each piece in the order that ``order`` gives.

        Passes of cheap visits on the support follow, over all pieces again: many on one piece
        would bring W to what suits its examples alone. With few examples in ``order``, as in a
        round of a cluster, there are no passes: the caller makes them.
        """
        random = np.random.default_rng(int(order[0]))

        def visit(piece: FeatureStorage, mixture: MixedPiece, own: State, share: Costs) -> float:
            return sum(piece.epoch(loss, mixture.visits, own, share, every, crew))

        yield from self._visited(visit, order, state, costs, random)
        if loss.sparse_duals and order.size >= MIN_VISITED_SHARE_FOR_PASSES * self.n:
            rows, first = self.support_rows(state, costs), None
            for _ in range(SUPPORT_PASSES):
                gap, rows = self.support_pass(loss, random.permutation(rows), state, costs)
                yield 0.0
                first = gap if first is None else first
                enough = max(AFTER_EPOCH.gap_left * first, state.enough / LEFT_BY_PASS)
                if gap <= enough:
                    break

    def support_rows(self, state: State, costs: Costs) -> NDArray:
        """The examples that count and have duals that are not zero."""
        found = [
            part.start + rows_on_support(state.duals[part], costs.cost[part])
            for part in self._parts(state.duals)
        ]
        return np.concatenate(found)

    def support_pass(
        self, loss: Loss, rows: NDArray, state: State, costs: Costs
    ) -> tuple[float, NDArray]:
        """Visit these rows on their support, piece by piece; returns the gap and what changed."""
        moved = [np.empty(0, np.int64)]
        if not rows.size:
            return 0.0, moved[0]

        def visit(piece: FeatureStorage, mixture: MixedPiece, own: State, share: Costs) -> float:
            gap, changed = support_pass(piece, loss, mixture.visits, own, share, IN_PIECE)
            moved.append(mixture.rows[changed])
            return gap

        random = np.random.default_rng(int(rows[0]))
        gap = sum(self._visited(visit, rows, state, costs, random))
        return gap, np.concatenate(moved)

    def _visited(
        self,
        visit: Visit,
        order: NDArray,
        state: State,
        costs: Costs,
        random: np.random.Generator,
    ) -> Iterator[float]:
        """``visit`` each piece of the examples ``order``; yields what it returns."""
        found = mixtures(order, self.n, self.rows_per_piece, self.rows_per_run, random)

        def read(number: int) -> tuple[FeatureStorage, Duals | None]:
            mixture, duals = found[number], state.duals
            ahead = taken_ahead(duals, mixture)
            return self._read_mixture(mixture), ahead

        for number, (piece, ahead) in enumerate(self._ahead(read, range(len(found)))):
            mixture = found[number]
            duals = taken_duals(state.duals, mixture) if ahead is None else ahead
            own = State(state.weights, duals, mixture.taken(state.starts))
            share = Costs(mixture.taken(costs.y), mixture.taken(costs.cost))
            try:
                gap = visit(piece, mixture, own, share)
            finally:
                put_back(own.duals, mixture, state.duals)
            mixture.put_back(own.starts, state.starts)
            state.weights, state.rounding = own.weights, state.rounding + own.rounding
            self._release(state.duals)
            yield gap

    # --- sums over examples ----------------------------------------------------------------------

    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = NO_SHARES,
    ) -> Sums:
        totals = np.zeros(len(Sums._fields))
        for part, piece in self._pieces():
            own = self._costs(costs, part)
            totals += piece.certify(loss, weights, duals[part], own, crew, double, shares[part])
            self._release(duals)
        return Sums(*totals)

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        total = np.zeros((self.d + 1, duals.shape[1]))
        for part, piece in self._pieces():
            total += piece.rebuild(duals[part], cost[part])
            self._release(duals)
        return total

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        value, total = 0.0, np.zeros(weights.shape, np.float64 if double else self.dtype)
        for part, piece in self._pieces():
            own = self._costs(costs, part)
            losses, gradient = piece.loss_gradient(loss, weights, own, crew, double)
            value += losses
            total += gradient
        return value, total

    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Duals, crew: Crew
    ) -> None:
        for part, piece in self._pieces():
            piece.fill_duals(loss, weights, self._costs(costs, part), duals[part], crew)
            self._release(duals)

    def class_sums(self, costs: Costs, m: int) -> NDArray:
        total = np.zeros((self.d + 1, m))
        for part, piece in self._pieces():
            total += piece.class_sums(self._costs(costs, part), m)
        return total

    def sample(self, step: int, first: int = 0) -> NDArray:
        found = [piece.sample(step, (first - part.start) % step) for part, piece in self._pieces()]
        return np.concatenate(found)

    # --- duals -----------------------------------------------------------------------------------

    def zero_duals(self, m: int, sparse: bool) -> Duals:
        if self._duals_place == "none":
            return np.zeros((0, m), self.dtype)
        if self._duals_place == "mapped":
            return mapped_duals(self.n, m, self.dtype)
        return super().zero_duals(m, sparse)

    def spread_duals(self, own: float, other: float, costs: Costs, duals: Duals) -> None:
        for part in self._parts(duals):
            spread(own, other, costs.y[part], part, duals)

    def scale_duals(self, duals: Duals, factor: float) -> None:
        if self._duals_place != "mapped":
            super().scale_duals(duals, factor)
            return
        for part in self._parts(duals):
            as_array(duals)[part] *= duals.dtype.type(factor)

    def sum_conjugates(self, loss: Loss, duals: Duals, costs: Costs, factor: float) -> float:
        sums = super().sum_conjugates
        return sum(
            sums(loss, duals[part], self._costs(costs, part), factor) for part in self._parts(duals)
        )

    def _parts(self, duals: Duals) -> Iterator[slice]:
        """The pieces' ranges; mapped duals leave memory after each."""
        for begin, end in pairwise(self.bounds.tolist()):
            yield slice(begin, end)
            self._release(duals)

    def _release(self, duals: Duals) -> None:
        if self._duals_place == "mapped":
            release_pages(duals)

    @staticmethod
    def _costs(costs: Costs, part: slice) -> Costs:
        return Costs(costs.y[part], costs.cost[part])
