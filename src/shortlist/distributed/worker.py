"""What one worker of a cluster does: it holds a shard and its duals, and computes sums over it.

A worker has an ordinary storage for its shard and calls its ordinary methods. The CoCoA+ round is
an ordinary epoch too. There a worker visits its examples with kappa replaced by sigma kappa, and
lets its own view of W change sigma times as much as W itself. With costs sigma C_i in place of C_i
the visits do both: a step is eta = (sigma C_i) kappa, and W changes by x_i (sigma C_i) (old v_i -
new v_i). What is sent is that change divided by sigma.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData
    from shortlist.distributed.duals import Entries
    from shortlist.distributed.shards import Shard
    from shortlist.losses.base import Loss
    from shortlist.solvers.storage import Costs, State
    from shortlist.solvers.threads import Crew


@dataclass(frozen=True)
class Loaded:
    """What the driver is told of a shard; ``data`` has all but the rows and the examples' names."""

    shape: tuple[int, int]
    dtype: np.dtype
    data: LabeledData
    width: float
    node: str
    process: int


class Opened(NamedTuple):
    """A worker's storage: |x_i|^2, whether duals are kept, and how a limit on memory is."""

    kappa: NDArray
    keeps_duals: bool
    plan: str | None


class Visited(NamedTuple):
    """What a round did on one shard, besides the change of W."""

    gap: float
    rounding: float
    change: float


class Worker:
    """The examples of one shard. Made into a Ray actor by ``group``."""

    storage: Any  # of explicit rows, in memory or in pieces
    state: State
    costs: Costs
    # Examples that the last cheap visits changed.
    moved: NDArray = np.empty(0, np.int64)

    def load(self, shard: Shard, memory_limit: int | None, reading: dict[str, Any]) -> Loaded:
        """Read the shard, with further options for its reader."""
        from ray.util import get_node_ip_address
        from scipy import sparse

        found = shard.load(memory_limit is not None, **reading)
        self.x, self.limit = found.X, memory_limit
        n, d = self.x.shape
        entries = getattr(self.x, "mean_nonzeros", None)
        if entries is None:
            entries = self.x.nnz / n if sparse.issparse(self.x) else d
        return Loaded(
            (n, d),
            np.dtype(self.x.dtype),
            replace(found, X=None, ids=None),
            float(entries) + 1.0,
            get_node_ip_address(),
            os.getpid(),
        )

    def widen(self, n_features: int) -> None:
        """LibSVM text that lacks the last features is as wide as the others'."""
        from shortlist.datasets.shards import widened

        self.x = widened(self.x, n_features)

    def hash(self) -> str:
        from shortlist.estimators.checkpoints import hash_of_rows

        return hash_of_rows(self.x)

    def open(
        self, bias: float, dtype: np.dtype, m: int, loss: Loss, normalize: str | None
    ) -> Opened:
        """Make the storage."""
        from shortlist.estimators.elsewhere import normalized_rows, open_limited, store_examples

        x, storage, plan = normalized_rows(self.x, normalize), None, None
        if self.limit is not None:
            storage, plan = open_limited(x, m, loss, bias, self.limit)
        if storage is None:
            storage = store_examples(x[:].astype(dtype, copy=False), bias)
        self.storage = storage
        return Opened(storage.kappa, storage.keeps_duals, plan)

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(rows, *arguments)``."""
        return function(self.x, *arguments)

    def set_costs(self, y: NDArray, cost: NDArray) -> None:
        from shortlist.solvers.storage import Costs

        self.costs = Costs(np.array(y), np.array(cost))

    def set_zero_duals(self, m: int, sparse: bool) -> None:
        from shortlist.solvers.storage import State

        starts = np.zeros((self.storage.n, 2))
        weights = self.storage.zero_weights(m)
        self.state = State(weights, self.storage.zero_duals(m, sparse), starts)

    def epoch(
        self, loss: Loss, weights: NDArray, sigma: float, part: tuple[int, int, int], every: int
    ) -> tuple[Visited, NDArray]:
        """Visit part of the examples; returns a report and the change of W.

        ``part`` is a seed, the number of the round and how many there are in the epoch.
        """
        from shortlist.solvers.storage.base import active_examples

        seed, number, n_rounds = part
        random = np.random.default_rng(seed)
        order = np.array_split(random.permutation(active_examples(self.costs)), n_rounds)[number]

        def visit(state: State, bold: Costs) -> float:
            if not order.size:
                return 0.0
            with self._crew(weights.shape[1]) as crew:
                return sum(self.storage.epoch(loss, order, state, bold, every, crew))

        return self._round(weights, sigma, visit)

    def polish(
        self, loss: Loss, weights: NDArray, sigma: float, seed: int, first: bool
    ) -> tuple[Visited, NDArray]:
        """Cheap visits on the support: of all examples at first, then of those that changed."""
        if first:
            self.moved = self.storage.support_rows(self.state, self.costs)

        def visit(state: State, bold: Costs) -> float:
            order = np.random.default_rng(seed).permutation(self.moved)
            gap, self.moved = self.storage.support_pass(loss, order, state, bold)
            return gap

        return self._round(weights, sigma, visit)

    def _round(
        self, weights: NDArray, sigma: float, visit: Callable[[State, Costs], float]
    ) -> tuple[Visited, NDArray]:
        """Visits with costs sigma C_i; returns a report and the change of W."""
        from shortlist.solvers.storage import Costs
        from shortlist.solvers.storage.base import squared_norm

        state, bold = self.state, Costs(self.costs.y, sigma * self.costs.cost)
        state.weights, state.rounding = np.array(weights), 0.0
        gap = visit(state, bold)
        change = (state.weights - weights) / weights.dtype.type(sigma)
        report = Visited(gap / sigma, state.rounding / sigma**2, squared_norm(change))
        return report, change

    def certify(self, loss: Loss, weights: NDArray, double: bool) -> NDArray:
        with self._crew(weights.shape[1]) as crew:
            duals = self.state.duals
            return np.array(self.storage.certify(loss, weights, duals, self.costs, crew, double))

    def loss_gradient(self, loss: Loss, weights: NDArray, double: bool) -> tuple[float, NDArray]:
        with self._crew(weights.shape[1]) as crew:
            return self.storage.loss_gradient(loss, weights, self.costs, crew, double)

    def fill_duals(self, loss: Loss, weights: NDArray) -> None:
        with self._crew(weights.shape[1]) as crew:
            self.storage.fill_duals(loss, weights, self.costs, self.state.duals, crew)

    def dual_entries(self) -> Entries:
        """The duals that are not zero."""
        from shortlist.distributed.duals import entries_of

        return entries_of(self.state.duals)

    def restore_duals(self, loss: Loss, m: int, entries: Entries) -> None:
        from shortlist.distributed.duals import joined

        state, saved = self.state, joined([entries], m, self.storage.dtype)
        state.duals = self.storage.restore_duals(loss, self.costs, state.duals, saved)

    def rebuild(self) -> tuple[None, NDArray]:
        return None, self.storage.rebuild(self.state.duals, self.costs.cost)

    def class_sums(self, m: int) -> tuple[None, NDArray]:
        return None, self.storage.class_sums(self.costs, m)

    def spread_duals(self, own: float, other: float) -> None:
        self.storage.spread_duals(own, other, self.costs, self.state.duals)

    def scale_duals(self, factor: float) -> None:
        self.storage.scale_duals(self.state.duals, factor)

    def sum_conjugates(self, loss: Loss, factor: float) -> float:
        return self.storage.sum_conjugates(loss, self.state.duals, self.costs, factor)

    def sample(self, step: int, first: int) -> NDArray:
        return self.storage.sample(step, first)

    def add(self, one: NDArray, other: NDArray) -> NDArray:
        """A node of the tree that sums are added up in."""
        return one + other

    @contextmanager
    def _crew(self, m: int) -> Iterator[Crew]:
        from shortlist.solvers.threads import crew_for, one_blas_thread

        with crew_for(self.storage.shared_work(m)) as crew, one_blas_thread():
            yield crew
