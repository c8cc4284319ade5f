"""How examples are stored: the interface that strategies are written against.

A storage knows its examples and how to compute with them. Strategies never look inside. A new way
to store examples is a class with this interface. ``storage.open_storage`` picks the one for a
matrix in memory; others are made where their data comes from.

``weights`` are what scores are made from: W, shape (d + 1, m), whose last row belongs to the
intercept; or A = -C v, shape (n, m), where examples are known by their inner products only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import blas_for
from shortlist._native import SIGNAL_STRIDE
from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, readable
from shortlist.solvers.kernels import rows
from shortlist.solvers.kernels.support import visit_support
from shortlist.solvers.threads import Crew

if TYPE_CHECKING:
    from shortlist.solvers.storage.curvature import Curvature, CurvatureRequest

# Standard deviations of rounding errors that bounds allow for (see ``records.certificate``).
STANDARD_DEVIATIONS = 6.0
# Bytes of a temporary array.
CHUNK_BYTES = 1 << 26
# Room for no example's share of the gap: it is not asked for.
NO_SHARES = np.empty(0)


@dataclass(frozen=True)
class Costs:
    """The data of the problem besides the examples: labels and C_i."""

    y: NDArray
    cost: NDArray


@dataclass
class State:
    """The variables of SDCA: weights that belong to the duals v (n, m), and warm starts.

    ``starts`` (n, 2) are two numbers for each example that its dual step keeps from visit to visit,
    zero before the first.

    ``rounding`` bounds how far the weights are from those of the duals: their squared distance is
    at most about ``rounding`` times the squared unit roundoff. ``enough`` is a gap that is small
    enough for visits on the support: a storage that makes them in its epochs may end them there.

    Of a start from the duals of other examples, ``fresh`` are those that it knows nothing about.
    ``best`` are the model's weights that go with these duals, if they may be better than W.
    """

    weights: NDArray
    duals: Duals
    starts: NDArray
    rounding: float = 0.0
    enough: float = 0.0
    fresh: NDArray | None = None
    best: NDArray | None = None


@dataclass
class Support:
    """Examples with duals that are not zero, opened for many cheap visits (``kernels.support``).

    ``view`` is how kernels see the examples and ``by_class`` (m, ...) what their scores are made
    from, a class's numbers lying together. ``order`` are the numbers to visit them by, in labels,
    costs, kappa and duals too. ``rounding`` adds up as in :class:`State`.

    Changes below ``least_change`` are not made in this round. It is ``postponed`` times the mean
    change of the last round. ``postponed`` is zero unless to look at an example costs less than to
    change it.
    ``price`` is the storage's ``support_price`` unless it is set. ``crew`` are threads that visits
    may use.
    """

    view: Any
    order: NDArray
    by_class: NDArray
    y: NDArray
    cost: NDArray
    kappa: NDArray
    duals: Duals
    rounding: float = 0.0
    postponed: ClassVar[float] = 0.0
    least_change: float = 0.0
    price: float = 0.0
    crew: Crew = field(default_factory=Crew)

    def visit(self, loss: Loss, order: NDArray) -> tuple[float, int, int]:
        """Visit these examples on their support.

        Returns an estimate of their gap, how many entries were visited and how many examples
        change; these are put first in ``order``.
        """
        bounds = self.part(order)
        threads = min(self.crew.awake, 1 + (bounds.size > 2))
        signals = np.zeros(threads * SIGNAL_STRIDE, np.int64)
        found = np.zeros((bounds.size - 1, 5))
        given = (
            *(loss.spec, blas_for(self.by_class.dtype), self.view, order, bounds, self.by_class),
            *(self.y, self.cost, self.kappa, self.kept_duals()),
            *(loss.fewest_classes, self.least_change, signals, threads),
        )
        self.crew.together(threads, lambda thread: visit_support(*given, thread, found))
        gap, rounding, entries, moved, changes = found.sum(axis=0).tolist()
        self.rounding += rounding
        self.least_change = self.postponed * changes / max(moved, 1.0)
        if len(found) > 1:
            lists = zip(bounds, found[:, 3].astype(int), strict=False)
            order[: int(moved)] = np.concatenate([order[a : a + count] for a, count in lists])
        return gap, int(entries), int(moved)

    def part(self, order: NDArray) -> NDArray:
        """Bounds of the lists that two threads visit at the same time (``kernels.support``).

        The examples of a list are put together in ``order``. One list unless it is overridden.
        """
        return np.array([0, order.size])

    def kept_duals(self) -> Any:
        """The duals as visits see them."""
        return readable(self.duals)

    def narrow(self, order: NDArray) -> NDArray:
        """Only these examples are visited from now on; returns the numbers to visit them by."""
        return order

    def step_jointly(self, loss: Loss) -> float:
        """Move all duals along their last changes after a round of visits, where that is cheap.

        Returns by how much the dual objective rises.
        """
        return 0.0

    def settle(self) -> None:
        """Put what visits and joint steps have left where it belongs, before the support closes."""


class Sums(NamedTuple):
    """Sums over examples that a certificate is made of; see ``kernels.gradient``.

    ``moves`` is the sum of (C_i |x_i| |v_i - v_i'|)^2 for duals that were moved into their domain,
    as they are where sums are computed in double.
    """

    losses: float
    conjugates: float
    products: float
    distances: float
    sizes: float
    moves: float = 0.0


class Lengths(NamedTuple):
    """Sums over examples that bound the rounding of a gradient, g_i = C_i grad L(W'x_i).

    ``norms`` adds up |x_i| |g_i|, ``squares`` |x_i|^2 |g_i|^2, ``fourths`` |x_i|^4 |g_i|^2 and
    ``absolutes`` |x_i|^2 |g_i|_1^2. ``additions`` is how many additions follow each other in an
    entry of the gradient, ``loss_dtype`` the precision that the losses were computed in.
    """

    norms: float
    squares: float
    fourths: float
    absolutes: float
    additions: float
    loss_dtype: np.dtype


class KeptScores:
    """The scores of the last evaluation, for the second derivatives at the same weights.

    There is one array for all evaluations of a problem, and none where it would be large.
    """

    def __init__(self) -> None:
        self._weights: NDArray | None = None
        self._scores: NDArray | None = None

    def room_for(self, weights: NDArray, n: int, dtype: np.dtype) -> NDArray:
        """Room for the scores of n examples with these weights; without rows if they are many."""
        m = weights.shape[1]
        if n * m * dtype.itemsize > CHUNK_BYTES:
            return np.empty((0, m), dtype)
        if self._scores is None:
            self._scores = np.empty((n, m), dtype)
        self._weights = weights
        return self._scores

    def known_at(self, weights: NDArray) -> NDArray | None:
        """The scores with these weights, the same array as was given, if they are kept."""
        return self._scores if self._weights is weights else None

    def forget(self) -> None:
        """Give up the scores: the array of weights may be written to."""
        self._weights = None


class OutdatedWeightsError(Exception):
    """Duals were lost where they were kept, and replaced: the weights must be made anew from them.

    A storage whose duals live elsewhere raises it when weights and duals are to be compared.
    """


class Storage(Protocol):
    """Examples without labels and costs."""

    n: int
    dtype: np.dtype
    # |x_i|^2, the constant feature included.
    kappa: NDArray
    # Multiplications that one score takes.
    width: float
    # Whether there are explicit weights: descents need them.
    explicit: bool
    # Whether the rows are in memory and cheap to read many times: ``curvature``, ``all_scores``,
    # ``sampled_scores``, ``loss_gradient_of_classes`` and ``in_double`` need that.
    rows_at_hand: bool
    # Cost of one multiplication in a support visit, relative to one in an epoch. Infinite where
    # there are no such visits, or where an epoch makes them itself.
    support_price: float
    # Whether there are duals. Without them training is a descent, whose gradients certify it.
    keeps_duals: bool

    # Rows of the weights: a class has so many.
    @property
    def weights_per_class(self) -> int: ...
    # Multiplications of the pieces that threads can share; 0: BLAS has its own threads.
    def shared_work(self, m: int) -> float: ...
    def zero_weights(self, m: int) -> NDArray: ...
    def squared_norm(self, weights: NDArray) -> float | None: ...
    def largest_column(self, weights: NDArray) -> float: ...
    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]: ...
    # The examples ``rows``, in random order, or as many of them as can be opened at once; closing
    # puts what visits changed into the state.
    def open_support(self, rows: NDArray, state: State, costs: Costs) -> Support: ...
    def close_support(self, support: Support, state: State, costs: Costs) -> None: ...
    # Each example's share of the gap is put into ``shares``, if it has room for them. It has none
    # unless rows are at hand.
    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = ...,
    ) -> Sums: ...
    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray: ...
    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]: ...
    # As loss_gradient in the storage's precision, with what bounds its rounding where it is known.
    # ``wide`` asks for the losses in double, from the same scores.
    def bounded_gradient(
        self,
        loss: Loss,
        weights: NDArray,
        costs: Costs,
        crew: Crew,
        wide: bool,
        kept: KeptScores | None = None,
    ) -> tuple[float, NDArray, Lengths | None]: ...
    def curvature(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, asked: "CurvatureRequest"
    ) -> "Curvature": ...
    def all_scores(self, weights: NDArray, crew: Crew) -> NDArray: ...
    def sampled_scores(self, weights: NDArray, step: int) -> NDArray: ...
    # The same examples in double; None where memory is short of a copy and of its duals.
    def in_double(self, m: int, sparse_duals: bool) -> "Storage | None": ...
    def loss_gradient_of_classes(
        self, loss: Loss, scores: NDArray, w: NDArray, classes: NDArray, costs: Costs, crew: Crew
    ) -> tuple[float, NDArray]: ...
    def zero_duals(self, m: int, sparse: bool) -> Duals: ...
    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Duals, crew: Crew
    ) -> None: ...
    def spread_duals(self, own: float, other: float, costs: Costs, duals: Duals) -> None: ...
    def scale_duals(self, duals: Duals, factor: float) -> None: ...
    def sum_conjugates(self, loss: Loss, duals: Duals, costs: Costs, factor: float) -> float: ...
    # What a snapshot holds of the duals; no rows where only the weights are to be kept.
    def saved_duals(self, loss: Loss, duals: Duals) -> Duals: ...
    def restore_duals(self, loss: Loss, costs: Costs, duals: Duals, saved: Duals) -> Duals: ...
    def class_sums(self, costs: Costs, m: int) -> NDArray: ...
    def sample(self, step: int, first: int = 0) -> NDArray: ...


class NoSupportVisits:
    """The part of a storage that has no visits on the support, or makes them in its epochs."""

    support_price: float = np.inf

    def open_support(self, rows: NDArray, state: State, costs: Costs) -> Support:
        raise NotImplementedError("this storage does not open its support")

    def close_support(self, support: Support, state: State, costs: Costs) -> None:
        raise NotImplementedError("this storage does not open its support")


class RowsNotAtHand:
    """The part of a storage whose rows are not in memory, or not cheap to read many times."""

    rows_at_hand: bool = False

    def curvature(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, asked: "CurvatureRequest"
    ) -> "Curvature":
        raise NotImplementedError("the examples are not at hand for many products")

    def all_scores(self, weights: NDArray, crew: Crew) -> NDArray:
        raise NotImplementedError("the examples are not at hand for many products")

    def sampled_scores(self, weights: NDArray, step: int) -> NDArray:
        raise NotImplementedError("the examples are not at hand for many products")

    def in_double(self, m: int, sparse_duals: bool) -> Storage | None:
        raise NotImplementedError("the examples are not at hand to be copied")

    def loss_gradient_of_classes(
        self, loss: Loss, scores: NDArray, w: NDArray, classes: NDArray, costs: Costs, crew: Crew
    ) -> tuple[float, NDArray]:
        raise NotImplementedError("the examples are not at hand for many products")


class NoDescents(RowsNotAtHand):
    """The part of a storage without explicit weights: SDCA trains, and descents do not."""

    explicit: bool = False

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        raise NotImplementedError("descents need explicit weights")

    def bounded_gradient(
        self,
        loss: Loss,
        weights: NDArray,
        costs: Costs,
        crew: Crew,
        wide: bool,
        kept: KeptScores | None = None,
    ) -> tuple[float, NDArray, Lengths | None]:
        raise NotImplementedError("descents need explicit weights")

    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Duals, crew: Crew
    ) -> None:
        raise NotImplementedError("descents need explicit weights")

    def class_sums(self, costs: Costs, m: int) -> NDArray:
        raise NotImplementedError("sums over classes need explicit weights")

    def sample(self, step: int, first: int = 0) -> NDArray:
        raise NotImplementedError("samples need explicit weights")


def chunks(n: int, row_bytes: int) -> Iterator[slice]:
    """Slices of a few dozen megabytes that cover n rows."""
    size = max(1, min(n, CHUNK_BYTES // max(row_bytes, 1)))
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def read_only(array: NDArray) -> NDArray:
    """A view for kernels that only read: to numba, arrays that can be written are another type.

    Some users' arrays cannot be written. Kernels compile once for these and all others.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def unit_roundoff(dtype: np.dtype) -> float:
    """Half a unit in the last place of one."""
    return 0.5 * float(np.finfo(dtype).eps)


def error_of_scores(width: float, column: float, dtype: np.dtype) -> float:
    """By how much an inner product of ``width`` terms errs, a unit of |x|; ``column`` is |w_j|."""
    return STANDARD_DEVIATIONS * sqrt(width) * unit_roundoff(dtype) * column


def squared_norm(weights: NDArray) -> float:
    """|W|^2 in double."""
    return float(rows.squared_norm(read_only(weights.reshape(-1))))


def rounding_of_weights(weights: NDArray) -> float:
    """What weights that were made from the duals add to ``State.rounding``: each is rounded."""
    return rows.SQUARED_ROUNDING * squared_norm(weights)


def rounding_of_duals(kappa: NDArray, cost: NDArray) -> float:
    """What rounding every dual once adds to ``State.rounding``."""
    return rows.SQUARED_ROUNDING * float(np.sum(kappa * cost**2))


def shares_of(begin: int, end: int, count: int) -> list[tuple[int, int]]:
    """A range divided into so many parts, the empty ones left out."""
    bounds = np.linspace(begin, end, count + 1).astype(int).tolist()
    return [(a, b) for a, b in pairwise(bounds) if a < b] or [(begin, end)]


def active_examples(costs: Costs) -> NDArray:
    """The examples that count: those with a cost."""
    return np.flatnonzero(costs.cost > 0)
