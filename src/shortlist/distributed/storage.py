"""Examples that the workers of a cluster hold, as a storage: strategies see no difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.datasets.containers import LabeledData
from shortlist.datasets.shards import beside, classes_of
from shortlist.distributed.board import SumLostError
from shortlist.distributed.cluster import (
    MAX_ROUNDS,
    MAX_ROUNDS_PER_WORKER,
    MAX_ROUNDS_PER_WORKER_OF_HINGES,
    MAX_SUPPORT_PARTS,
    MAX_SUPPORT_ROUNDS,
    ROWS_PER_ROUND,
    ROWS_PER_ROUND_ON_BOARD,
    ROWS_PER_SUPPORT_PART,
    SUMS_PER_WHOLE_ONE,
    SUPPORT_ROUNDS,
    SUPPORT_SUMS_PER_WHOLE_ONE,
    Cluster,
)
from shortlist.distributed.duals import joined
from shortlist.distributed.group import Group
from shortlist.distributed.rounds import Rounds, Sigma
from shortlist.distributed.shards import Shard
from shortlist.distributed.sums import add
from shortlist.distributed.worker import Loaded, WorkerStorage
from shortlist.errors import DataError
from shortlist.estimators.limited import check_memory_limit
from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, entries_of
from shortlist.solvers.storage.base import (
    NO_SHARES,
    Costs,
    NoSupportVisits,
    OutdatedWeightsError,
    State,
    Sums,
    rounding_of_weights,
)
from shortlist.solvers.storage.explicit import ExplicitWeights
from shortlist.solvers.storage.support import AFTER_EPOCH, SUPPORT_PASSES
from shortlist.solvers.threads import Crew


def rounds_of(rows: int, n_workers: int, rows_per_round: int | None, sparse_duals: bool) -> int:
    """The rounds of an epoch over shards of so many rows."""
    if rows_per_round is not None:
        return max(1, round(rows / rows_per_round))
    for_each = MAX_ROUNDS_PER_WORKER_OF_HINGES if sparse_duals else MAX_ROUNDS_PER_WORKER
    most = min(for_each * n_workers, MAX_ROUNDS)
    wanted = round(rows / (ROWS_PER_ROUND // 2 if sparse_duals else ROWS_PER_ROUND))
    return min(max(1, wanted), most)


def rounds_on_board(rows: int, rows_per_round: int | None, sparsity: float) -> int:
    """The same where workers add up changes among themselves; W is ``sparsity`` times a row."""
    if rows_per_round is None:
        rows_per_round = round(ROWS_PER_ROUND_ON_BOARD * max(1.0, sparsity))
    return max(1, round(rows / rows_per_round))


class RemoteDuals:
    """The duals that the workers keep, for as long as they live."""

    nbytes = math.inf  # too many to be copied

    def __init__(self, group: Group, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.group, self.shape, self.dtype = group, shape, dtype


class RemoteRows:
    """X for ``fit``: the rows of all shards, one shard after the other."""

    def __init__(self, group: Group, memory_limit: int | None) -> None:
        self.group = group
        loaded = _loaded_alike(group, memory_limit)
        n_features = max(shard.shape[1] for shard in loaded)
        if all(shard.data.zero_based is not None for shard in loaded):
            group.prepare("widen", lambda _: (n_features,))
        else:
            _check_shards(group)
        self.bounds = np.cumsum([0, *(shard.shape[0] for shard in loaded)])
        self.shape: tuple[int, int] = (int(self.bounds[-1]), n_features)
        self.dtype = np.result_type(*(shard.dtype for shard in loaded), np.float32)
        entries = sum(shard.width * shard.shape[0] for shard in loaded)
        self.width = entries / self.shape[0]

    def open_storage(
        self, bias: float, n_classes: int, loss: Loss, normalize: str | None
    ) -> RemoteStorage:
        group, dtype = self.group, self.dtype
        opened = group.prepare(
            "open", lambda number: (bias, dtype, n_classes, loss, normalize, number)
        )
        group.share_board((self.shape[1] + 1, n_classes), dtype)
        return RemoteStorage(self, opened)

    def apply(self, function: Callable[..., Any], arguments: Callable[[slice], tuple]) -> list[Any]:
        """``function(rows, *arguments(part))`` of every worker; the part tells which rows it has.

        The function must be one that workers can import.
        """
        begin = self.bounds

        def own(number: int) -> tuple:
            return function, *arguments(slice(begin[number], begin[number + 1]))

        return self.group.ask("apply", own)

    def hashes(self) -> list[str]:
        """A hash of each shard's rows."""
        return self.group.ask("hash", lambda _: ())

    def data(self) -> LabeledData:
        """These rows, with the labels and weights that files and tables bring along."""
        _check_labels(self.group)
        shards = [shard.data for shard in self.group.loaded]
        return beside(self, shards, self.group.shards[0].name)


@contextmanager
def rows_with_workers(
    shards: list[Shard], cluster: Cluster, memory_limit: Any
) -> Iterator[RemoteRows]:
    """The rows of the shards, held by workers for the time of the context."""
    limit = check_memory_limit(memory_limit)
    group = Group(shards, cluster)
    try:
        yield RemoteRows(group, limit)
    finally:
        group.close()


def _check_shards(group: Group) -> None:
    first = group.loaded[0]
    for shard, loaded in zip(group.shards, group.loaded, strict=True):
        if loaded.shape[1] != first.shape[1]:
            there = f"{group.shards[0].name} has {first.shape[1]}"
            raise DataError(f"has {loaded.shape[1]} features where {there}", path=shard.name)


def _loaded_alike(group: Group, memory_limit: int | None) -> list[Loaded]:
    """Let the workers read their shards, all in the same way."""
    loaded = group.load(memory_limit)
    if {True, False} <= {shard.data.zero_based for shard in loaded}:
        # A file that merely lacks the first feature looks as if it counted from 1.
        return group.load(memory_limit, zero_based=True)
    first = loaded[0].data.reading
    # Tables are matched by the names of their columns, as those of one machine are.
    if first is not None and first.columns is not None:
        readings = [shard.data.reading for shard in loaded]
        if any(reading != first for reading in readings):
            return group.load(memory_limit, like=first)
    return loaded


def _check_labels(group: Group) -> None:
    """Raise an error for a shard whose labels all others lack: it is of other data."""
    found = [shard.data for shard in group.loaded]
    kinds = {shard.y.dtype.kind for shard in found}
    sets = [set(classes_of(shard)) for shard in found]
    for number, own in enumerate(sets):
        others = set().union(*(other for place, other in enumerate(sets) if place != number))
        if len(sets) > 1 and not own & others:
            shown = ", ".join(repr(label) for label in sorted(own, key=str)[:3])
            hint = "" if len(kinds) > 1 else "; if files are sorted by class, shuffle the examples"
            raise DataError(
                f"its labels ({shown}) are on no other shard{hint}", path=group.shards[number].name
            )


class RemoteStorage(ExplicitWeights, NoSupportVisits):
    """Sums are added up in a tree of workers, or by those of one machine among themselves.

    An epoch is made of CoCoA+ rounds: see ``rounds``, also for ``sigma``.
    """

    def __init__(self, rows: RemoteRows, opened: list[WorkerStorage]) -> None:
        self.group = rows.group
        self.bounds = rows.bounds
        self.n, self.d = rows.shape
        self.dtype, self.width = rows.dtype, rows.width
        self.kappa = np.concatenate([own.kappa for own in opened])
        self.keeps_duals = all(own.keeps_duals for own in opened)
        plans = [own.plan for own in opened if own.plan is not None]
        self.memory_plan = f"on {len(plans)} workers: {plans[0]}" if plans else None
        # Each kind of visits has its own sigma. Visits to all classes change W more alike than
        # visits on the support, and need a larger one.
        first = max(1.0, math.sqrt(len(self.group)))
        self.sigma = {"epoch": Sigma(first, first), "polish": Sigma(first, first)}
        self._costs_there: Costs | None = None

    # --- visits ----------------------------------------------------------------------------------

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        """Rounds in which every worker visits a part of its examples, each of them once in all.

        The order only seeds the workers' own: they know their examples.
        """
        self._send(costs)
        group, seed = self.group, int(order[0])
        near, count = group.board is not None, len(group)
        share = order.size / max(1, int(np.count_nonzero(costs.cost > 0)))
        rows = math.ceil(share * int(np.diff(self.bounds).max()))
        if near:
            n_rounds = rounds_on_board(rows, group.rows_per_round, self.d / self.width)
        else:
            n_rounds = rounds_of(rows, count, group.rows_per_round, loss.sparse_duals)
        whole_every = SUMS_PER_WHOLE_ONE if near and group.rows_per_round is None else 1
        visits = Rounds(
            *("epoch", seed, count, self.sigma["epoch"], n_rounds),
            share=share,
            whole_every=whole_every,
        )
        yield from self._made(visits, loss, state, costs, every)
        if loss.sparse_duals:
            parts = min(n_rounds, MAX_SUPPORT_PARTS) if near else 1
            passes = max(min(SUPPORT_ROUNDS * n_rounds, MAX_SUPPORT_ROUNDS), SUPPORT_PASSES)
            visits = Rounds(
                *("polish", seed, count, self.sigma["polish"], parts, passes),
                gap_left=AFTER_EPOCH.gap_left,
                rows_per_part=ROWS_PER_SUPPORT_PART,
                whole_every=min(whole_every, SUPPORT_SUMS_PER_WHOLE_ONE),
            )
            # These visits add nothing to the estimate of the gap. They do not end at
            # ``state.enough``, as a worker sees only its part of the gap. With that end four
            # workers took 12 epochs instead of 8.
            yield from (0.0 for _ in self._made(visits, loss, state, costs, every))

    def _made(
        self, rounds: Rounds, loss: Loss, state: State, costs: Costs, every: int
    ) -> Iterator[float]:
        """Make the rounds; yields the gaps that were seen, message by message."""
        while not rounds.over:
            if self.group.replaced:
                self._mend(loss, state, costs)
            try:
                further, state.weights = self._further(rounds, loss, state.weights, every)
            except SumLostError:  # some changed their duals, and W does not know
                self._mend(loss, state, costs)
                continue
            state.rounding += further.rounding - rounds.rounding
            seen = sum(further.gaps) - sum(rounds.gaps)
            self.sigma[rounds.kind] = further.sigma
            rounds = further
            yield seen

    def _further(
        self, rounds: Rounds, loss: Loss, weights: NDArray, every: int
    ) -> tuple[Rounds, NDArray]:
        """One round and its message, or as many as workers make among themselves in one call."""
        group, there = self.group, self.group.put(weights)
        if group.board is not None:
            made, found = group.ask_together(
                "visit_rounds", lambda turn: (rounds, loss, there, every, turn)
            )
            group.sums += made.number - rounds.number
            return made, np.array(found)
        visited, change = group.ask_sum("visit_round", lambda _: (rounds, loss, there, every))
        changed, weights = np.array(weights), np.array(weights)
        squares, norm = add(change[None], changed, weights)
        return rounds.after(visited, squares, norm), weights

    def _mend(self, loss: Loss, state: State, costs: Costs) -> None:
        """Give the examples of replaced workers duals again, and W what belongs to all duals."""
        group = self.group
        if loss.smooth:
            # The gradients at W are close to what was lost.
            weights = group.put(state.weights)
            for number in sorted(group.replaced):
                group.ask_one(number, "fill_duals", loss, weights)
        state.weights = np.ascontiguousarray(self.rebuild(state.duals, costs.cost), self.dtype)
        state.rounding = rounding_of_weights(state.weights)

    # --- sums over examples ----------------------------------------------------------------------

    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Any,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = NO_SHARES,
    ) -> Sums:
        """Sums of all workers; shares of the gap stay with them."""
        self._send(costs)
        there = self.group.put(weights)
        found = self.group.ask("certify", lambda _: (loss, there, double))
        if self.group.replaced:
            raise OutdatedWeightsError
        return Sums(*np.sum(found, axis=0))

    def rebuild(self, duals: Any, cost: NDArray) -> NDArray:
        while True:
            self.group.replaced.clear()
            try:
                return self.group.ask_sum("rebuild", lambda _: ())[1]
            except SumLostError:
                continue

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        self._send(costs)
        there = self.group.put(weights)
        losses, gradient = self._sum_again("loss_gradient", lambda _: (loss, there, double))
        return sum(losses), np.array(gradient)

    def class_sums(self, costs: Costs, m: int) -> NDArray:
        self._send(costs)
        return self._sum_again("class_sums", lambda _: (m,))[1]

    def sample(self, step: int, first: int = 0) -> NDArray:
        firsts = (first - self.bounds) % step
        return np.concatenate(self.group.ask("sample", lambda number: (step, int(firsts[number]))))

    # --- duals -----------------------------------------------------------------------------------

    def zero_duals(self, m: int, sparse: bool) -> Any:
        self.group.prepare("set_zero_duals", lambda _: (m, sparse))
        self.group.replaced.clear()
        return RemoteDuals(self.group, (self.n, m), self.dtype)

    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Any, crew: Crew
    ) -> None:
        self._send(costs)
        there = self.group.put(weights)
        self.group.ask("fill_duals", lambda _: (loss, there))

    def spread_duals(self, own: float, other: float, costs: Costs, duals: Any) -> None:
        self._send(costs)
        self.group.ask("spread_duals", lambda _: (own, other))

    def scale_duals(self, duals: Any, factor: float) -> None:
        self.group.ask("scale_duals", lambda _: (float(factor),))

    def sum_conjugates(self, loss: Loss, duals: Any, costs: Costs, factor: float) -> float:
        self._send(costs)
        return sum(self.group.ask("sum_conjugates", lambda _: (loss, factor)))

    def saved_duals(self, loss: Loss, duals: Any) -> Duals:
        """Those of hinges, which are few. Others are left with the workers: W is kept instead."""
        if not self.keeps_duals or (loss.smooth and not loss.sparse_duals):
            return np.zeros((0, duals.shape[1]), self.dtype)
        found = self.group.ask("dual_entries", lambda _: ())
        return joined(found, duals.shape[1], self.dtype)

    def restore_duals(self, loss: Loss, costs: Costs, duals: Any, saved: Duals) -> Any:
        self._send(costs)
        begin, m = self.bounds, duals.shape[1]

        def own(number: int) -> tuple:
            return loss, m, entries_of(saved[begin[number] : begin[number + 1]])

        self.group.ask("restore_duals", own)
        return duals

    # --- messages --------------------------------------------------------------------------------

    def _send(self, costs: Costs) -> None:
        """Tell the workers labels and costs, unless they know them."""
        if costs is self._costs_there:
            return
        begin = self.bounds

        def own(number: int) -> tuple:
            part = slice(begin[number], begin[number + 1])
            return costs.y[part], costs.cost[part]

        self.group.prepare("set_costs", own)
        self._costs_there = costs

    def _sum_again(self, method: str, arguments: Any) -> tuple[list[Any], NDArray]:
        """A sum that needs no duals: simply asked for again when a worker was lost."""
        while True:
            try:
                return self.group.ask_sum(method, arguments)
            except SumLostError:
                continue
