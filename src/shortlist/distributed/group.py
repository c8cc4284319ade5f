"""The workers of one fit: asked together, replaced when they die, named when they are silent."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import ray
from numpy.typing import NDArray
from ray.exceptions import (
    GetTimeoutError,
    ObjectLostError,
    RayActorError,
    RayError,
    RayTaskError,
)

from shortlist.distributed.board import OwnBoard, SumLostError
from shortlist.distributed.cluster import Cluster
from shortlist.distributed.shards import Shard
from shortlist.distributed.worker import Loaded, Worker

# A shard whose worker died so many times is given up: it is the shard that kills it.
MAX_REPLACEMENTS = 3

Arguments = Callable[[int], tuple]


class Group:
    """One worker for each shard.

    ``prepared`` holds the calls that make a new worker what the others are, by their method's name:
    a worker that dies is replaced by one that gets them all again. ``sums`` counts the sums that
    were asked for, ``bytes_sent`` what W and they took, to the workers and back. ``board`` is where
    workers add up sums among themselves, if they are all on this machine.
    """

    board: OwnBoard | None = None

    def __init__(self, shards: list[Shard], cluster: Cluster) -> None:
        self.shards = shards
        self.timeout = cluster.timeout
        self.rows_per_round = cluster.rows_per_round
        self.prepared: dict[str, Arguments] = {}
        self.replaced: set[int] = set()
        self.deaths = [0] * len(shards)
        self.sums = self.bytes_sent = 0
        self.loaded: list[Loaded] = []
        self._actor = ray.remote(num_cpus=cluster.cpus_per_worker, max_restarts=0)(Worker)
        self._workers = [self._actor.remote() for _ in shards]

    def __len__(self) -> int:
        return len(self.shards)

    def close(self) -> None:
        for worker in self._workers:
            ray.kill(worker)
        self._drop_board()

    def share_board(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Let workers add up arrays among themselves, if all can reach memory of this process."""
        self._drop_board()
        self.board = OwnBoard.made(len(self), shape, dtype)
        if self.board is not None:
            place, node = self.board.place, ray.get_runtime_context().get_node_id()
            if not all(self.prepare("join", lambda _: (place, node))):
                self._drop_board()

    def _drop_board(self) -> None:
        self.prepared.pop("join", None)
        if self.board is not None:
            self.board.close()
            self.board = None

    def put(self, array: NDArray) -> Any:
        """An array that all workers are to see, as an argument for calls: sent once to each."""
        return ray.put(array)

    def load(self, memory_limit: int | None, **reading: Any) -> list[Loaded]:
        """Let every worker read its shard, with further options for the readers."""

        def own(number: int) -> tuple:
            return self.shards[number], memory_limit, reading

        self.loaded = self.prepare("load", own)
        return self.loaded

    def prepare(self, method: str, arguments: Arguments) -> list[Any]:
        """Ask all, and every later replacement too."""
        self.prepared.pop(method, None)
        found = self.ask(method, arguments)
        self.prepared[method] = arguments
        return found

    def ask(self, method: str, arguments: Arguments) -> list[Any]:
        """The answers of all workers to one call, in their order."""
        calls = [self._call(number, method, arguments) for number in range(len(self))]
        return [self._answer(number, call, method, arguments) for number, call in enumerate(calls)]

    def ask_one(self, number: int, method: str, *arguments: Any) -> Any:
        def same(_: int) -> tuple:
            return arguments

        return self._answer(number, self._call(number, method, same), method, same)

    def ask_sum(self, method: str, arguments: Arguments) -> tuple[list[Any], NDArray]:
        """Calls that answer with a report and an array: the reports, and the sum of the arrays.

        The arrays stay in the object store. Workers add them up in pairs, then those sums, and so
        on; the last two are added here, which saves a message. Raises SumLostError if a worker
        dies meanwhile.
        """
        calls = [self._call(number, method, arguments, 2) for number in range(len(self))]
        arrays = [(number, array) for number, (_, array) in enumerate(calls)]
        while len(arrays) > 2:
            paired = [
                (number, self._workers[number].add.remote(array, other))
                for (number, array), (_, other) in zip(arrays[::2], arrays[1::2], strict=False)
            ]
            arrays = paired + arrays[2 * len(paired) :]
        wanted = [*enumerate(report for report, _ in calls), *arrays]
        found = self._wait_for_all(wanted)
        reports, total = found[: len(calls)], sum(found[len(calls) :])
        self.sums += 1
        self.bytes_sent += 2 * len(self) * total.nbytes
        return reports, total

    def ask_together(self, method: str, arguments: Callable[[int], tuple]) -> tuple[Any, NDArray]:
        """Calls in which workers wait for each other on the board: a report, and an array.

        Both are the first worker's. ``arguments`` is given the number of the first turn. Raises
        SumLostError if a worker dies meanwhile.
        """
        assert self.board is not None
        turn = self.board.next_turn()
        same = arguments(turn)
        calls = [self._call(number, method, lambda _: same, 2) for number in range(len(self))]
        wanted = [*calls[0], *(report for report, _ in calls[1:])]
        began = time.monotonic()
        while True:
            try:
                report, array = ray.get(wanted, timeout=self.timeout)[:2]
                self.bytes_sent += (len(self) + 1) * array.nbytes
                return report, array
            except GetTimeoutError:
                self._warn_silent(self.board.slowest, began)
            except RayError:
                self.board.tell_lost(True)
                self._end_together([report for report, _ in calls])
                self.board.tell_lost(False)
                raise SumLostError from None

    def _end_together(self, calls: list[Any]) -> None:
        """Wait until no worker is in these calls any longer; raise what one of them raised."""
        dead, raised = [], []
        for number, call in enumerate(calls):
            try:
                self._wait(number, call)
            except RayActorError:
                dead.append(number)
            except SumLostError:
                pass
            except Exception as error:
                raised.append(error)
        for number in dead:
            self._replace(number)
        if raised:
            raise raised[0]

    # --- one call --------------------------------------------------------------------------------

    def _call(self, number: int, method: str, arguments: Arguments, returns: int = 1) -> Any:
        handle = getattr(self._workers[number], method)
        return handle.options(num_returns=returns).remote(*arguments(number))

    def _answer(self, number: int, call: Any, method: str, arguments: Arguments) -> Any:
        """The answer to a call; asked of a replacement if the worker dies."""
        while True:
            try:
                return self._wait(number, call)
            except RayActorError:
                self._replace(number)
                call = self._call(number, method, arguments)

    def _wait_for_all(self, calls: list[tuple[int, Any]]) -> list[Any]:
        """The answers to calls of several workers, all at once: each wait takes milliseconds."""
        try:
            return ray.get([call for _, call in calls], timeout=self.timeout)
        except (GetTimeoutError, RayError):
            pass  # one by one it shows whose it is
        found = []
        for number, call in calls:
            try:
                found.append(self._wait(number, call))
            except RayActorError:
                self._replace(number)
                raise SumLostError from None
            except ObjectLostError:
                raise SumLostError from None
        return found

    def _wait(self, number: int, call: Any) -> Any:
        began = time.monotonic()
        while True:
            try:
                return ray.get(call, timeout=self.timeout)
            except GetTimeoutError:
                self._warn_silent(number, began)
            except RayTaskError as error:
                raise cause_of(error) from None

    def _warn_silent(self, number: int, began: float) -> None:
        warnings.warn(
            f"{self._named(number)} has not answered for {time.monotonic() - began:.0f} seconds",
            RuntimeWarning,
            stacklevel=2,
        )

    def _replace(self, number: int) -> None:
        """Start a worker in the place of one that died, and make it what the others are."""
        self.deaths[number] += 1
        if self.deaths[number] > MAX_REPLACEMENTS:
            raise RuntimeError(
                f"{self._named(number)} died {self.deaths[number]} times; its machine may lack "
                "memory for the shard"
            )
        warnings.warn(f"{self._named(number)} died and is replaced", RuntimeWarning, stacklevel=2)
        self.replaced.add(number)
        self._workers[number] = self._actor.remote()
        for method, arguments in list(self.prepared.items()):
            try:
                answer = self._wait(number, self._call(number, method, arguments))
            except RayActorError:
                self._replace(number)
                return
            if method == "join" and not answer:  # it is on another machine
                self._drop_board()

    def _named(self, number: int) -> str:
        place = ""
        if self.loaded:
            loaded = self.loaded[number]
            place = f" on node {loaded.node}, process {loaded.process}"
        return f"worker {number}{place} ({self.shards[number].name})"


def cause_of(error: RayTaskError) -> BaseException:
    """What a worker raised, without the worker's traceback."""
    cause = error.cause
    return cause if isinstance(cause, BaseException) else error
