"""Many fits over a cluster: searches, and paths over C.

Where a fit has room on every machine, whole fits are shared out: folds, losses, and pieces of the
path over C, each of which starts cold. The data is put into the object store once. Otherwise one
fit comes after the other, each over shards of its data.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayTaskError
from sklearn.base import clone

from shortlist.distributed.cluster import Cluster
from shortlist.distributed.group import cause_of
from shortlist.distributed.shards import shards_of_arrays
from shortlist.distributed.storage import rows_with_workers
from shortlist.estimators.callers import level_outside
from shortlist.estimators.cv_folds import Fold, Part
from shortlist.estimators.cv_paths import PATHS_RUNNER, SearchPath
from shortlist.estimators.paths import in_order_given


@dataclass(frozen=True)
class _ScatteredFold(Fold):
    """A fold whose training part the workers hold."""

    scattered: Part | None = None

    def training_part(self) -> Part:
        assert self.scattered is not None
        return self.scattered


class ClusterFits:
    """Makes the fits of searches and paths in place of this process."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        task = ray.remote(num_cpus=cluster.cpus_per_worker)
        self._advance, self._follow = task(_advance), task(_follow)
        # What was put into the store, with the data itself, so that its id stays its own.
        self._stored: dict[int, tuple[Part, Any]] = {}

    @contextmanager
    def of_searches(self) -> Iterator[None]:
        """Searches within the context make their fits here."""
        token = PATHS_RUNNER.set(self)
        try:
            yield
        finally:
            PATHS_RUNNER.reset(token)

    def takes_whole(self, folds: list[Fold]) -> bool:
        """Whether whole fits are shared out, not rows."""
        if self.cluster.split != "auto":
            return self.cluster.split == "fits"
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        at_a_time = -(-self.cluster.n_workers // len(nodes))
        X, y = folds[0].data.X, folds[0].data.y
        n_classes = len(np.unique(y)) if y.ndim == 1 else y.shape[1]
        need = at_a_time * max(fold.bytes_needed(n_classes) for fold in folds)
        stored = (X.nnz if hasattr(X, "nnz") else X.size) * X.dtype.itemsize
        return all(
            need <= node.get("memory", 0.0) and stored <= node.get("object_store_memory", 0.0)
            for node in nodes
        )

    def advance(self, tasks: list[tuple[SearchPath, list[float]]]) -> None:
        """Fit and measure all paths of a search over their values of C."""
        if self.takes_whole([path.fold for path, _ in tasks]):
            self._advance_whole(tasks)
        else:
            self._advance_over_rows(tasks)

    def fit_path(
        self, model: Any, data: Part, Cs: list[float], callback: Callable | None = None
    ) -> list[Any]:
        """``model.fit_path``."""
        if self.takes_whole([Fold(0, data, None, None)]):
            return self._follow_whole(model, data, Cs, callback)
        with self._scattered(data, model.memory_limit) as there:
            return model.fit_path(there.X, there.y, Cs, there.weight, callback=callback)

    # --- whole fits ------------------------------------------------------------------------------

    def _advance_whole(self, tasks: list[tuple[SearchPath, list[float]]]) -> None:
        # Fewer folds and losses than workers: the values of C are shared out too.
        parts = -(-self.cluster.n_workers // len(tasks))
        pieces = [(path, piece) for path, Cs in tasks for piece in _pieces(Cs, parts)]
        calls = [
            (_without_data(path), self._store(path.fold.data), piece) for path, piece in pieces
        ]
        for (path, _), (outcomes, models) in zip(
            pieces, self._answers(self._advance, calls), strict=True
        ):
            path.outcomes.update(outcomes)
            path.models.update(models)

    def _follow_whole(
        self, model: Any, data: Part, Cs: list[float], callback: Callable | None
    ) -> list[Any]:
        stored, plain = self._store(data), _anywhere(model)
        calls = [(plain, stored, piece) for piece in _pieces(Cs, self.cluster.n_workers)]
        models: dict[float, Any] = {}
        for found, told in self._answers(self._follow, calls):
            for message in told:
                warnings.warn(message, stacklevel=level_outside())
            for each in found:
                models[each.C] = each
                if callback is not None and callback(each) is True:
                    return in_order_given(models, Cs)
        return in_order_given(models, Cs)

    def _store(self, data: Part) -> Any:
        if id(data) not in self._stored:
            self._stored[id(data)] = data, ray.put(data)
        return self._stored[id(data)][1]

    def _answers(self, task: Any, calls: list[tuple]) -> Iterator[Any]:
        """Answers to calls of a task in their order, as many at a time as there are workers."""
        begun: list[Any] = []
        running: list[Any] = []
        try:
            for call in calls:
                if len(running) == self.cluster.n_workers:
                    _, running = ray.wait(running)
                begun.append(task.remote(*call))
                running.append(begun[-1])
            for one in begun:
                yield ray.get(one)
        except RayTaskError as error:
            raise cause_of(error) from None
        finally:
            # Without force, as by Ctrl-C: training ends with the model that it has. With force, Ray
            # 2.60 ends this process if the task ends at the same moment.
            left = ray.wait(begun, num_returns=len(begun), timeout=0)[1] if begun else []
            for one in left:
                ray.cancel(one)

    # --- fits over rows --------------------------------------------------------------------------

    def _advance_over_rows(self, tasks: list[tuple[SearchPath, list[float]]]) -> None:
        folds = {path.fold.number: path.fold for path, _ in tasks}
        for number, fold in folds.items():
            with self._scattered(fold.training_part(), None) as there:
                own = {each.name: getattr(fold, each.name) for each in fields(fold)}
                scattered = _ScatteredFold(**own, scattered=there)
                for path, Cs in tasks:
                    if path.fold.number == number:
                        here = replace(path, fold=scattered, keep_warm=False, _path=None)
                        here.advance(Cs)
                        path.models = here.models

    @contextmanager
    def _scattered(self, data: Part, memory_limit: Any) -> Iterator[Part]:
        shards, order = shards_of_arrays(data.X, self.cluster.n_workers)
        with rows_with_workers(shards, self.cluster, memory_limit) as rows:
            weight = None if data.weight is None else data.weight[order]
            yield Part(rows, data.y[order], weight, None)


def _pieces(Cs: list[float], most: int) -> list[list[float]]:
    """Neighbouring values of C together, in at most so many pieces."""
    wanted = sorted(set(Cs))
    return [piece.tolist() for piece in np.array_split(wanted, min(most, len(wanted)))]


def _without_data(path: SearchPath) -> SearchPath:
    return replace(
        path,
        template=_anywhere(path.template),
        fold=replace(path.fold, data=None),  # type: ignore[arg-type]
        keep_warm=False,
        outcomes={},
        models={},
        _path=None,
    )


def _anywhere(model: Any) -> Any:
    """The model with a folder of checkpoints that means the same wherever a process runs."""
    if model.checkpoint is None:
        return model
    return clone(model).set_params(checkpoint=os.path.abspath(model.checkpoint))


# --- what workers do -----------------------------------------------------------------------------


def _advance(path: SearchPath, data: Part, Cs: list[float]) -> tuple[dict, dict]:
    """Fit one path over some values of C; returns what was measured and the models kept."""
    path = replace(path, fold=replace(path.fold, data=data))
    path.advance(Cs)
    return path.outcomes, path.models


def _follow(model: Any, data: Part, Cs: list[float]) -> tuple[list[Any], list[Warning]]:
    """The models of a piece of a path, and what there was to warn of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        models = model.fit_path(data.X, data.y, Cs, data.weight)
    return models, [each.message for each in told if isinstance(each.message, Warning)]
