"""What one worker of a cluster does: it holds a shard and its duals, and computes sums over it.

A worker has an ordinary storage for its shard and calls its ordinary methods. The CoCoA+ round is
an ordinary epoch too. There a worker visits its examples with kappa replaced by sigma kappa, and
lets its own view of W change sigma times as much as W itself. With costs sigma C_i in place of C_i
the visits do both: a step is eta = (sigma C_i) kappa, and W changes by x_i (sigma C_i) (old v_i -
new v_i). What is sent is that change divided by sigma.

The intercept has a sigma of its own, r times that of the features. To a worker the constant feature
is sqrt(r) times as large, and its weights are smaller by as much: scores are the same, kappa is
what both ask for, and the intercept changes r times as much as it would.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.distributed.board import Board, Place
from shortlist.distributed.rounds import Rounds, Sigma, Squares, Visited

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData
    from shortlist.distributed.shards import Shard
    from shortlist.losses.base import Loss
    from shortlist.solvers.duals import Entries
    from shortlist.solvers.storage import Costs, State
    from shortlist.solvers.threads import Crew

# Workers that add up changes among themselves answer the driver after so many seconds. Between two
# answers it can be interrupted or save a checkpoint. An answer takes 10 milliseconds.
SECONDS_PER_CALL = 1.0


@dataclass(frozen=True)
class Loaded:
    """What the driver is told of a shard; ``data`` has all but the rows and the examples' names."""

    shape: tuple[int, int]
    dtype: np.dtype
    data: LabeledData
    width: float
    node: str
    process: int


class WorkerStorage(NamedTuple):
    """A worker's storage: |x_i|^2, whether duals are kept, and how a memory limit is met."""

    kappa: NDArray
    keeps_duals: bool
    plan: str | None


class Worker:
    """The examples of one shard. Made into a Ray actor by ``group``."""

    storage: Any  # of explicit rows, in memory or in pieces
    state: State
    costs: Costs
    scaled: tuple[NDArray, NDArray]
    number: int = 0
    # Where workers of one machine add up their changes.
    board: Board | None = None
    # Which pass is made, its examples, a part for each round, and those that moved so far.
    passing: tuple = ()
    parts: Sequence[NDArray] = ()
    moved: tuple[NDArray, ...] = ()

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
        self,
        bias: float,
        dtype: np.dtype,
        m: int,
        loss: Loss,
        normalize: str | None,
        number: int,
    ) -> WorkerStorage:
        """Make the storage of the worker with this number."""
        from shortlist.estimators.limited import normalized_rows, open_limited, store_examples

        x, storage, plan = normalized_rows(self.x, normalize), None, None
        if self.limit is not None:
            storage, plan = open_limited(x, m, loss, bias, self.limit)
        if storage is None:
            storage = store_examples(x[:].astype(dtype, copy=False), bias)
        self.storage, self.number = storage, number
        return WorkerStorage(storage.kappa, storage.keeps_duals, plan)

    def join(self, place: Place, node: str) -> bool:
        """Take part in sums on the board of a driver on this node; whether it can be reached."""
        from ray import get_runtime_context

        near = get_runtime_context().get_node_id() == node
        self.board = Board.joined(place) if near else None
        return self.board is not None

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(rows, *arguments)``."""
        return function(self.x, *arguments)

    def set_costs(self, y: NDArray, cost: NDArray) -> None:
        from shortlist.solvers.storage import Costs

        self.costs = Costs(np.array(y), np.array(cost))
        # Buffers for the scaled |x_i|^2 and C_i of a round.
        self.scaled = np.zeros(self.storage.n), np.zeros(self.storage.n)

    def set_zero_duals(self, m: int, sparse: bool) -> None:
        from shortlist.solvers.storage import State

        starts = np.zeros((self.storage.n, 2))
        weights = self.storage.zero_weights(m)
        self.state = State(weights, self.storage.zero_duals(m, sparse), starts)

    def visit_round(
        self, rounds: Rounds, loss: Loss, weights: NDArray, every: int
    ) -> tuple[Visited, NDArray]:
        """One round; returns a report and the change of W."""
        from shortlist.distributed.sums import subtract

        weights = np.array(weights)
        change = np.empty_like(weights)
        with self._crew(weights.shape[1]) as crew:
            report, own = self._visit(rounds, loss, weights.copy(), every, crew)
        squares = subtract(own, weights, rounds.sigma, change)
        return report.with_change(squares), change

    def visit_rounds(
        self, rounds: Rounds, loss: Loss, weights: NDArray, every: int, turn: int
    ) -> tuple[Rounds, NDArray | None]:
        """Rounds until they are over, or for about a second; ``turn`` is that of the first.

        Changes are added up on the board. Returns the rounds as they are then, and W, of which one
        worker's is enough.
        """
        assert self.board is not None
        # Visits on the support read the weights class by class.
        order: Literal["C", "F"] = "F" if rounds.kind == "polish" else "C"
        common, own = np.array(weights, order=order), np.array(weights, order=order)
        began, seconds = time.monotonic(), 0.0
        with self._crew(weights.shape[1]) as crew:
            while not rounds.over and not (rounds.settled and seconds > SECONDS_PER_CALL):
                report, own = self._visit(rounds, loss, own, every, crew)
                report = report._replace(seconds=time.monotonic() - began)
                of = slice(None) if rounds.whole else slice(-1, None)
                found, change, norm = self._add_up(turn, report, rounds.sigma, common[of], own[of])
                rounds = rounds.after(found, change, norm)
                # The same number for all workers, so that they end in the same round.
                seconds = max(each.seconds for each in found)
                turn += 1
        return rounds, np.ascontiguousarray(common) if self.number == 0 else None

    def _add_up(
        self, turn: int, report: Visited, sigma: Sigma, common: NDArray, own: NDArray
    ) -> tuple[Sequence[Visited], Squares, float]:
        """Add the changes of all workers to their common W, or its intercept, and the own view."""
        from shortlist.distributed.sums import subtract

        assert self.board is not None
        room = self.board.room(turn, self.number, common)
        report = report.with_change(subtract(own, common, sigma, room))
        return self.board.add_up(turn, self.number, report, common, own)

    def _visit(
        self, rounds: Rounds, loss: Loss, own: NDArray, every: int, crew: Crew
    ) -> tuple[Visited, NDArray]:
        """A round's visits, with costs sigma C_i, which change the own view of W.

        Returns a report and that view.
        """
        state, sigma = self.state, rounds.sigma
        rows = self._rows_of(rounds)
        ratio = math.sqrt(sigma.intercept / sigma.features)
        own[-1] /= own.dtype.type(ratio)
        state.weights, state.rounding = own, 0.0
        gap, moves = 0.0, 0
        if rows.size:
            storage, scaled = self._scaled(sigma, rows)
            if rounds.kind == "epoch":
                gap = sum(storage.epoch(loss, rows, state, scaled, every, crew))
            else:
                gap, moved = storage.support_pass(loss, rows, state, scaled)
                self.moved, moves = (*self.moved, moved), moved.size
        own = state.weights
        own[-1] *= own.dtype.type(ratio)
        # Visits see the intercept's weights divided by the ratio. Rounding errors in them are
        # divided too.
        rounding = state.rounding / (sigma.features * min(1.0, ratio)) ** 2
        return Visited(gap / sigma.features, rounding, moves), own

    def _scaled(self, sigma: Sigma, rows: NDArray) -> tuple[Any, Costs]:
        """The storage and the costs to visit these rows with."""
        from shortlist.solvers.storage import Costs

        ratio = sigma.intercept / sigma.features
        storage = copy(self.storage)
        storage.bias = self.storage.bias * math.sqrt(ratio)
        storage.kappa, cost = self.scaled
        storage.kappa[rows] = self.storage.kappa[rows] + (ratio - 1.0) * self.storage.bias**2
        cost[rows] = sigma.features * self.costs.cost[rows]
        return storage, Costs(self.costs.y, cost)

    def _rows_of(self, rounds: Rounds) -> NDArray:
        """The examples of the round: a part of those of the pass.

        Cheap visits are made to all examples on the support at first, then to those that moved.
        """
        from shortlist.solvers.storage.base import active_examples

        passing = (rounds.kind, rounds.seed, rounds.of_pass)
        if rounds.part == 0 or passing != self.passing:
            moved = self.moved if rounds.part == 0 and rounds.of_pass > 0 else None
            if rounds.kind == "epoch":
                rows = active_examples(self.costs)
            elif moved is None:
                rows = self.storage.support_rows(self.state, self.costs)
            else:
                rows = np.concatenate([np.empty(0, np.int64), *moved])
            self.passing, self.moved = passing, ()
            random = np.random.default_rng([rounds.seed, rounds.of_pass, self.number])
            rows = random.permutation(rows)[: math.ceil(rounds.share * rows.size)]
            self.parts = np.array_split(rows, rounds.parts)
        return self.parts[rounds.part]

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
        from shortlist.solvers.duals import entries_of

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
