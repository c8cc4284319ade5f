"""Data of any kind as shards: one for each worker, which reads its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.datasets.containers import LabeledData
from shortlist.errors import DataError


class Shard(Protocol):
    """Something that a worker turns into examples; ``name`` is for messages."""

    @property
    def name(self) -> str: ...
    def load(self, on_disk: bool, **reading: Any) -> LabeledData: ...


@dataclass(frozen=True)
class ArrayShard:
    """Rows in the cluster's object store. Labels stay with the driver."""

    name: str
    rows: Any

    def load(self, on_disk: bool, **reading: Any) -> LabeledData:
        import ray

        # Within a structure a reference is passed on as it is.
        return LabeledData(ray.get(self.rows[0]), None, source=self.name)


@dataclass(frozen=True)
class FileShard:
    """Files that the worker's machine can read under these names.

    ``dealt`` is a number and how many there are of them: only this part of the rows is taken.
    """

    name: str
    files: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    dealt: tuple[int, int] | None = None

    def load(self, on_disk: bool, **reading: Any) -> LabeledData:
        from shortlist.datasets import read_dataset

        files = self.files[0] if len(self.files) == 1 else self.files
        there = on_disk or self.dealt is not None
        found = read_dataset(files, on_disk=there, **{**self.options, **reading})
        if found.y is None:
            raise DataError("has no labels", path=self.name)
        return found if self.dealt is None else self._part_of(found, on_disk)

    def _part_of(self, found: LabeledData, on_disk: bool) -> LabeledData:
        from shortlist.datasets.on_disk import DealtRows

        assert self.dealt is not None
        rows = DealtRows(found.X, *self.dealt)
        if not len(rows):
            count = f"{found.n_samples} examples for {self.dealt[1]} workers"
            raise DataError(f"has {count}: use fewer workers", path=found.source)
        return replace(
            found,
            X=rows if on_disk else rows[:],
            y=found.y[rows.places],
            weight=None if found.weight is None else found.weight[rows.places],
            ids=None,
        )


@dataclass(frozen=True)
class TableShard:
    """Blocks of a ``ray.data.Dataset``: Arrow tables in the object store."""

    name: str
    blocks: Any
    label: str | int

    def load(self, on_disk: bool, **reading: Any) -> LabeledData:
        import pyarrow
        import ray

        from shortlist.datasets.arrow_tables import table_data

        tables = [_with_lists(table) for table in ray.get(list(self.blocks)) if table.num_rows]
        found = table_data(pyarrow.concat_tables(tables), self.name, self.label)
        if found.y is None:
            raise DataError("has no labels", path=self.name)
        return found


def _with_lists(table: Any) -> Any:
    """The table with Ray's columns of tensors as columns of lists, which every reader knows."""
    import pyarrow

    for place, column in enumerate(table.columns):
        if isinstance(column.type, pyarrow.ExtensionType):
            parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
            values = np.concatenate(parts).reshape(table.num_rows, -1)
            flat = pyarrow.array(values.reshape(-1))
            lists = pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
            table = table.set_column(place, table.column_names[place], lists)
    return table


def shards_of_arrays(X: Any, n_workers: int) -> tuple[list[Shard], NDArray]:
    """Rows dealt out at random, so that every shard is like the whole; also returns their order.

    The same rows are dealt out alike every time, so that a checkpoint fits them.
    """
    import ray

    n = X.shape[0]
    order = np.random.default_rng(0).permutation(n)
    shards: list[Shard] = []
    parts = np.array_split(order, min(n_workers, n))
    for number, rows in enumerate(parts):
        rows.sort()
        shards.append(ArrayShard(f"shard {number}", (ray.put(X[rows]),)))
    return shards, np.concatenate(parts)


def shards_of_files(
    paths: Sequence[str | os.PathLike[str]], n_workers: int, options: dict[str, Any]
) -> list[Shard]:
    """Whole files, the largest first, each to the worker that has the fewest bytes so far.

    Where there are fewer files than workers, or labels for all of them are in a file of their own,
    every worker opens all files and takes its part of the rows.
    """
    files = [os.path.abspath(path) for path in paths]
    if len(files) < n_workers or options.get("labels") is not None:
        return [
            FileShard(
                f"part {number} of {_name_of(files)}", tuple(files), options, (number, n_workers)
            )
            for number in range(n_workers)
        ]
    sizes = [os.path.getsize(file) if os.path.exists(file) else 0 for file in files]
    held: list[list[int]] = [[] for _ in range(n_workers)]
    loads = [0] * n_workers
    for place in np.argsort(sizes)[::-1].tolist():
        least = int(np.argmin(loads))
        held[least].append(place)
        loads[least] += sizes[place] + 1
    # The first file comes first, as on one machine: it says how the others are read.
    lists = [[files[place] for place in own] for own in sorted(map(sorted, held))]
    return [FileShard(_name_of(own), tuple(own), options) for own in lists]


def shards_of_dataset(data: Any, n_workers: int, label: str | int) -> list[Shard]:
    """The blocks of a ``ray.data.Dataset``, dealt out in turn."""
    blocks = data.to_arrow_refs()
    count = min(n_workers, len(blocks))
    if not count:
        raise DataError("the dataset holds no examples")
    return [
        TableShard(f"blocks {number}, {number + count}, ... of the dataset", own, label)
        for number, own in enumerate(tuple(blocks[i::count]) for i in range(count))
    ]


def _name_of(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
