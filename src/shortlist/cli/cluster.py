"""DATA of ``train``: read here, or by the workers of a cluster that hold its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shortlist.cli.data import is_named, read_data, reader_options

if TYPE_CHECKING:
    from shortlist.cli.options import MachineOptions, ReadingOptions
    from shortlist.cli.ranking import Ranking
    from shortlist.datasets.containers import LabeledData
    from shortlist.datasets.how_read import Reading


@contextmanager
def training_data(
    name: str, options: ReadingOptions, like: Reading | None, machine: MachineOptions
) -> Iterator[LabeledData]:
    """The examples to train on. Workers hold those that they read until the context ends."""
    if not _workers_read(name, options, machine):
        on_disk = machine.memory_limit is not None
        yield read_data(name, options, "train", like=like, on_disk=on_disk)
        return
    from shortlist.datasets import with_class_names
    from shortlist.distributed.cluster import Cluster
    from shortlist.distributed.training import files_with_workers

    assert machine.workers is not None
    given = reader_options(name, options)
    if options.split is not None:
        given["split"] = options.split.value
    if options.labels is not None:
        given["labels"] = os.path.abspath(options.labels)
    cluster = Cluster(machine.workers, machine.ray)
    with files_with_workers(name, cluster, machine.memory_limit, given) as data:
        if options.names is not None:
            data = with_class_names({"all": data}, options.names)["all"]
        yield data


def _workers_read(name: str, options: ReadingOptions, machine: MachineOptions) -> bool:
    """Whether the workers read DATA themselves.

    They do where it may be too much for this process: a folder, or whatever is to stay below a
    limit on memory.
    """
    if machine.workers is None:
        return False
    reason = _reason_to_read_here(name, options)
    if machine.memory_limit is None:
        return reason is None and os.path.isdir(name)
    if reason is not None:
        raise ValueError(f"with --memory-limit the workers read DATA themselves, but {reason}")
    return True


def _reason_to_read_here(name: str, options: ReadingOptions) -> str | None:
    if is_named(name):
        return f"{name} is a data set by name, not a file"
    if name == "-":
        return "standard input is read once"
    if options.scale is not None:
        return "--scale takes its numbers from all examples"
    if options.missing == "mean":
        return "--missing mean takes its numbers from all examples"
    return None


def fit(model: Any, examples: LabeledData, machine: MachineOptions) -> None:
    """Train where the options say."""
    X, y = examples
    if machine.workers is None or _with_workers(X):
        model.fit(X, y, sample_weight=examples.weight)
        return
    from shortlist import distributed

    where: dict[str, Any] = {"n_workers": machine.workers, "address": machine.ray}
    distributed.fit(model, X, y, sample_weight=examples.weight, **where)


def accuracies(model: Any, examples: LabeledData) -> dict[str, float]:
    """The share of examples whose shortlist holds a right label, for 1 and the model's k."""
    from shortlist.cli.ranking import rank_labels

    X, y = examples
    if _with_workers(X):
        rankings: list[Ranking] = X.apply(_ranked, lambda part: (model, examples.reading, y[part]))
    else:
        rankings = [rank_labels(model, examples)]
    n = sum(ranking.n_examples for ranking in rankings)
    return {
        f"top-{k}": sum(ranking.accuracy(k) * ranking.n_examples for ranking in rankings) / n
        for k in sorted({1, model.k})
    }


def _ranked(X: Any, model: Any, reading: Reading, y: Any) -> Ranking:
    """What a worker finds on its own rows."""
    from shortlist.cli.ranking import rank_labels
    from shortlist.datasets.containers import LabeledData

    return rank_labels(model, LabeledData(X, y, reading=reading))


def _with_workers(X: Any) -> bool:
    return hasattr(X, "apply")
