"""``fit`` and ``fit_path`` over a cluster: ordinary fits, on workers or of rows that they hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from shortlist.datasets.containers import LabeledData
from shortlist.distributed.cluster import Cluster, Split, connected
from shortlist.estimators import TopKClassifier, TopKClassifierCV
from shortlist.estimators.cv_folds import Part
from shortlist.estimators.paths import check_path

Model = TypeVar("Model")


def fit(
    estimator: Model,
    data: Any,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_workers: int,
    address: str | None = None,
    cpus_per_worker: float = 1,
    timeout: float = 300.0,
    label: str | int = "auto",
    split: Split = "auto",
    rows_per_round: int | None = None,
    **fit_options: Any,
) -> Model:
    """Fit a :class:`~shortlist.TopKClassifier` on a Ray cluster; returns the estimator itself.

    Every worker holds a shard of the data and the duals of its examples. The optimum and the
    certificate are those of one machine. A :class:`~shortlist.TopKClassifierCV` takes arrays; its
    folds, losses and values of C are shared out where each has room on every machine.

    Parameters
    ----------
    estimator : TopKClassifier or TopKClassifierCV
        Its ``memory_limit`` is for each worker. Its ``checkpoint`` is written by this process: a
        fit of as many workers goes on from it.
    data : array, sparse matrix, list of files, folder or ray.data.Dataset
        Arrays go with ``y`` and are dealt out at random. Files are read by the workers, under the
        same names: whole files each or, of fewer files than workers, parts of the rows. Formats and
        labels are those of :func:`shortlist.datasets.read_dataset`.
    y : array or None
        Labels of arrays. Files and datasets bring their own.
    sample_weight : array or None
        Weights of the examples, for arrays. A weight column of files is used otherwise.
    n_workers : int
        Number of workers; fewer if there are fewer examples or blocks.
    address : str or None
        Of the cluster, as for ``ray.init``; "auto" finds one on this machine. None: the one this
        process is connected to, or one that is started here and stopped at the end.
    cpus_per_worker : float, default=1
        CPUs that each worker asks for: as many threads compute in it.
    timeout : float, default=300
        Seconds after which a worker that does not answer is named in a warning.
    label : str or int, default="auto"
        The labels' column of files and datasets.
    split : {"auto", "fits", "rows"}, default="auto"
        What a search shares out: whole fits, or the rows of one fit after the other. By itself it
        takes whole fits where the memory of every machine has room for its share of them.
    rows_per_round : int or None
        Examples that a worker visits between two messages, each of the size of W. A slow network
        asks for more; training then takes more epochs. None: 1024, or more where an epoch would
        have more than four rounds for each worker; 128 where all workers are on this machine.
    **fit_options
        What the estimator's ``fit`` takes besides: ``callback``, ``X_val``, ``y_val``.
    """
    cluster = Cluster(n_workers, address, cpus_per_worker, timeout, label, split, rows_per_round)
    if isinstance(estimator, TopKClassifierCV):
        return _search(estimator, data, y, sample_weight, cluster, fit_options)
    with _scattered(estimator, data, y, sample_weight, cluster) as examples:
        estimator.fit(examples.X, examples.y, examples.weight, **fit_options)  # type: ignore[attr-defined]
    return estimator


def fit_path(
    estimator: Model,
    data: Any,
    y: ArrayLike | None = None,
    *,
    Cs: Iterable[float],
    n_workers: int,
    sample_weight: ArrayLike | None = None,
    callback: Callable[[Model], object] | None = None,
    **options: Any,
) -> list[Model]:
    """``TopKClassifier.fit_path`` on a Ray cluster; further options are those of :func:`fit`.

    Of arrays every worker fits a piece of the path, neighbouring values of C, where there is room
    for that on every machine, or ``split`` asks for it. Otherwise, and of files and datasets, one
    value follows the other, each over shards of the rows.
    """
    cluster, wanted = Cluster(n_workers, **options), check_path(Cs)
    if _is_matrix(data) and y is not None and cluster.split != "rows":
        with connected(cluster):
            from shortlist.distributed.search import ClusterFits

            part = _part(_checked(estimator, data, y), y, sample_weight)
            return ClusterFits(cluster).fit_path(estimator, part, wanted, callback)
    if cluster.split == "fits":
        raise ValueError("files and datasets are split by rows: leave out split='fits'")
    with _scattered(estimator, data, y, sample_weight, cluster) as examples:
        return estimator.fit_path(  # type: ignore[attr-defined]
            examples.X, examples.y, wanted, examples.weight, callback=callback
        )


def _search(
    search: Any, X: Any, y: Any, sample_weight: Any, cluster: Cluster, fit_options: dict[str, Any]
) -> Any:
    if y is None:
        raise ValueError("a search needs arrays and their labels: fit(search, X, y, n_workers=...)")
    with connected(cluster):
        from shortlist.distributed.search import ClusterFits

        with ClusterFits(cluster).of_searches():
            return search.fit(X, y, sample_weight, **fit_options)


@contextmanager
def _scattered(
    estimator: Any, data: Any, y: Any, sample_weight: Any, cluster: Cluster
) -> Iterator[Part]:
    """The examples, held by workers for the time of the context."""
    _check_model(estimator)
    with connected(cluster):
        from shortlist.distributed.storage import rows_with_workers

        shards, order = _shards(estimator, data, y, cluster)
        with rows_with_workers(shards, cluster, estimator.memory_limit) as X:
            if order is None:
                found = X.data()
                yield Part(
                    X, found.y, found.weight if sample_weight is None else sample_weight, None
                )
            else:
                yield _part(X, y, sample_weight, order)


@contextmanager
def files_with_workers(
    path: str, cluster: Cluster, memory_limit: Any, options: dict[str, Any]
) -> Iterator[LabeledData]:
    """A file, or the files of a folder, read and held by workers for the time of the context.

    ``options`` are for the readers. X of what is given back is for ``fit``.
    """
    with connected(cluster):
        from shortlist.distributed.shards import shards_of_files
        from shortlist.distributed.storage import rows_with_workers

        shards = shards_of_files(_files(path), cluster.n_workers, options)
        with rows_with_workers(shards, cluster, memory_limit) as X:
            yield replace(X.data(), source=path)


def _files(path: str | os.PathLike[str]) -> list[str]:
    from shortlist.datasets.shards import files_in

    return files_in(os.fspath(path)) if os.path.isdir(path) else [os.fspath(path)]


def _shards(estimator: Any, data: Any, y: Any, cluster: Cluster) -> tuple[list[Any], Any]:
    """Shards of the data and, for arrays, the order that their rows are in there."""
    from shortlist.distributed import shards

    if isinstance(data, str | os.PathLike):
        data = _files(data)
    if hasattr(data, "to_arrow_refs"):
        _refuse_labels(y)
        return shards.shards_of_dataset(data, cluster.n_workers, cluster.label), None
    if not _is_matrix(data):
        _refuse_labels(y)
        if not len(data):
            raise ValueError("the list of files is empty")
        reading = {} if cluster.label == "auto" else {"label": cluster.label}
        return shards.shards_of_files(data, cluster.n_workers, reading), None
    if y is None:
        raise ValueError("arrays need their labels: fit(estimator, X, y, n_workers=...)")
    return shards.shards_of_arrays(_checked(estimator, data, y), cluster.n_workers)


def _check_model(estimator: Any) -> None:
    if not isinstance(estimator, TopKClassifier):
        raise TypeError(f"a cluster trains a TopKClassifier; got {type(estimator).__name__}")


def _checked(estimator: Any, X: Any, y: Any) -> Any:
    """X after the checks of one machine, which leave their marks on a copy."""
    from sklearn.base import clone

    from shortlist.estimators.inputs import check_input

    _check_model(estimator)
    return check_input(clone(estimator), X, y=y, ensure_min_samples=2, multi_output=True)[0]


def _is_matrix(data: Any) -> bool:
    """Whether these are features, in one array or several: not names of files, nor a dataset."""
    if sparse.issparse(data) or hasattr(data, "__array__"):
        return True
    named = isinstance(data, str | os.PathLike) or hasattr(data, "to_arrow_refs")
    return not named and not all(isinstance(path, str | os.PathLike) for path in data)


def _refuse_labels(y: Any) -> None:
    if y is not None:
        raise ValueError("files and datasets bring their own labels: leave out y")


def _part(X: Any, y: Any, weight: Any, order: Any = slice(None)) -> Part:
    y = y.tocsr() if sparse.issparse(y) else np.asarray(y)
    return Part(X, y[order], None if weight is None else np.asarray(weight)[order], None)
