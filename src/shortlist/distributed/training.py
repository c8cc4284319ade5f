"""``fit`` and ``fit_path`` over a cluster: ordinary fits of rows that the workers hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from shortlist.distributed.cluster import connected, require_ray
from shortlist.estimators import TopKClassifier, TopKClassifierCV

Model = TypeVar("Model")


class _Examples(NamedTuple):
    X: Any
    y: Any
    weight: Any


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
    **fit_options: Any,
) -> Model:
    """Fit a :class:`~shortlist.TopKClassifier` on a Ray cluster; returns the estimator itself.

    Every worker holds a shard of the data and the duals of its examples. The optimum and the
    certificate are those of one machine. A :class:`~shortlist.TopKClassifierCV` takes arrays that
    fit on every machine: folds, losses and values of C are shared out.

    Parameters
    ----------
    estimator : TopKClassifier or TopKClassifierCV
        Its ``memory_limit`` is for each worker.
    data : array, sparse matrix, list of files, folder or ray.data.Dataset
        Arrays go with ``y`` and are dealt out at random. Files are read by the workers, under the
        same names; formats and labels are those of :func:`shortlist.datasets.read_dataset`.
    y : array or None
        Labels of arrays. Files and datasets bring their own.
    sample_weight : array or None
        Weights of the examples, for arrays. A weight column of files is used otherwise.
    n_workers : int
        Number of workers; fewer if there are fewer examples, files or blocks.
    address : str or None
        Of the cluster, as for ``ray.init``; "auto" finds one on this machine. None: the one this
        process is connected to, or one that is started here and stopped at the end.
    cpus_per_worker : float, default=1
        CPUs that each worker asks for: as many threads compute in it.
    timeout : float, default=300
        Seconds after which a worker that does not answer is named in a warning.
    label : str or int, default="auto"
        The labels' column of files and datasets.
    **fit_options
        What the estimator's ``fit`` takes besides: ``callback``, ``X_val``, ``y_val``.
    """
    options = _Options(n_workers, address, cpus_per_worker, timeout, label)
    if isinstance(estimator, TopKClassifierCV):
        return _search(estimator, data, y, sample_weight, options, fit_options)
    with _scattered(estimator, data, y, sample_weight, options) as examples:
        estimator.fit(examples.X, examples.y, examples.weight, **fit_options)  # type: ignore[attr-defined]
    return estimator


def fit_path(
    estimator: Model,
    data: Any,
    y: ArrayLike | None = None,
    *,
    Cs: Iterable[float],
    sample_weight: ArrayLike | None = None,
    n_workers: int,
    address: str | None = None,
    cpus_per_worker: float = 1,
    timeout: float = 300.0,
    label: str | int = "auto",
    **path_options: Any,
) -> list[Model]:
    """``TopKClassifier.fit_path`` on a Ray cluster; parameters are those of :func:`fit`."""
    options = _Options(n_workers, address, cpus_per_worker, timeout, label)
    with _scattered(estimator, data, y, sample_weight, options) as examples:
        return estimator.fit_path(  # type: ignore[attr-defined]
            examples.X, examples.y, Cs, examples.weight, **path_options
        )


def _search(
    search: Any, X: Any, y: Any, sample_weight: Any, options: _Options, fit_options: dict[str, Any]
) -> Any:
    _check_workers(options.n_workers)
    require_ray()
    from shortlist.distributed.search import paths_on_cluster

    if y is None:
        raise ValueError("a search needs arrays and their labels: fit(search, X, y, n_workers=...)")
    with (
        connected(options.address, options.n_workers * options.cpus),
        paths_on_cluster(options.n_workers, options.cpus),
    ):
        return search.fit(X, y, sample_weight, **fit_options)


class _Options(NamedTuple):
    n_workers: int
    address: str | None
    cpus: float
    timeout: float
    label: str | int


@contextmanager
def _scattered(
    estimator: Any, data: Any, y: Any, sample_weight: Any, options: _Options
) -> Iterator[_Examples]:
    """The examples, held by workers for the time of the context."""
    _check_workers(options.n_workers)
    if not isinstance(estimator, TopKClassifier):
        raise TypeError(f"a cluster trains a TopKClassifier; got {type(estimator).__name__}")
    if estimator.checkpoint is not None:
        raise ValueError("checkpoints are for training on one machine: leave out checkpoint")
    require_ray()
    from shortlist.distributed.group import Group
    from shortlist.distributed.storage import RemoteRows
    from shortlist.estimators.elsewhere import check_memory_limit

    limit = check_memory_limit(estimator.memory_limit)
    with connected(options.address, options.n_workers * options.cpus):
        shards, order = _shards(estimator, data, y, options)
        group = Group(shards, options.cpus, options.timeout)
        try:
            X = RemoteRows(group, limit)
            if order is None:
                if sample_weight is None:
                    sample_weight = X.weights()
                yield _Examples(X, X.labels(), sample_weight)
            else:
                weight = None if sample_weight is None else np.asarray(sample_weight)[order]
                yield _Examples(X, _rows(y, order), weight)
        finally:
            group.close()


def _shards(estimator: Any, data: Any, y: Any, options: _Options) -> tuple[list[Any], Any]:
    """Shards of the data and, for arrays, the order that their rows are in there."""
    from shortlist.distributed import shards

    if isinstance(data, str | os.PathLike):
        from shortlist.datasets.shards import files_in

        data = files_in(os.fspath(data)) if os.path.isdir(data) else [data]
    is_array = sparse.issparse(data) or hasattr(data, "__array__")
    if not is_array and hasattr(data, "to_arrow_refs"):
        _refuse_labels(y)
        return shards.shards_of_dataset(data, options.n_workers, options.label), None
    if not is_array and all(isinstance(path, str | os.PathLike) for path in data):
        _refuse_labels(y)
        if not len(data):
            raise ValueError("the list of files is empty")
        reading = {} if options.label == "auto" else {"label": options.label}
        return shards.shards_of_files(data, options.n_workers, reading), None
    if y is None:
        raise ValueError("arrays need their labels: fit(estimator, X, y, n_workers=...)")
    from sklearn.base import clone

    from shortlist.estimators.training import check_input, seed_of

    # The checks of one machine, which leave their marks on a copy.
    X, _ = check_input(clone(estimator), data, y=y, ensure_min_samples=2, multi_output=True)
    seed = seed_of(estimator.random_state)
    return shards.shards_of_arrays(X, options.n_workers, seed)


def _check_workers(n_workers: Any) -> None:
    if not isinstance(n_workers, Integral) or isinstance(n_workers, bool) or n_workers < 1:
        raise ValueError(f"n_workers must be an integer, 1 or larger; got {n_workers!r}")


def _refuse_labels(y: Any) -> None:
    if y is not None:
        raise ValueError("files and datasets bring their own labels: leave out y")


def _rows(y: Any, order: Any) -> Any:
    return y.tocsr()[order] if sparse.issparse(y) else np.asarray(y)[order]
