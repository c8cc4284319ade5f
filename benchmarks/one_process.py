"""The workers of a cluster, all in this process: the same steps, rounds and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from shortlist.distributed.group import Group
from shortlist.distributed.worker import Worker


class OneProcess(Group):
    """Workers that are called in turn; ``calls`` counts what they are asked for, rounds by kind."""

    def __init__(self, parts: list[NDArray], rows_per_round: int | None = None) -> None:
        self.shards = [_Rows(part) for part in parts]
        self.rows_per_round = rows_per_round
        self.prepared, self.replaced, self.loaded = {}, set(), []
        self.sums = self.bytes_sent = 0
        self._workers = [Worker() for _ in parts]
        self.calls: Counter[str] = Counter()

    def share_board(self, shape: tuple[int, ...], dtype: Any) -> None:
        """There is none: workers that are called in turn cannot wait for each other."""

    def put(self, array: NDArray) -> Any:
        return array

    def ask(self, method: str, arguments: Callable[[int], tuple]) -> list[Any]:
        self.calls[arguments(0)[0].kind if method == "visit_round" else method] += 1
        return [
            getattr(worker, method)(*arguments(number))
            for number, worker in enumerate(self._workers)
        ]

    def ask_sum(self, method: str, arguments: Callable[[int], tuple]) -> tuple[list[Any], NDArray]:
        found = self.ask(method, arguments)
        total = sum(array for _, array in found)
        self.sums += 1
        self.bytes_sent += 2 * len(self) * total.nbytes
        return [report for report, _ in found], total


@dataclass(frozen=True)
class _Rows:
    """A shard that is there already."""

    x: NDArray
    name: str = "rows"

    def load(self, on_disk: bool, **reading: Any) -> Any:
        from shortlist.datasets.containers import LabeledData

        return LabeledData(self.x, None, source=self.name)
