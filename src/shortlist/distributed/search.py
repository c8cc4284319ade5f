"""A search over a cluster: each path of a fold, a loss and some values of C is a task of its own.

The data is put into the object store once. It must fit on every machine, as for a search on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from shortlist.estimators.cv_paths import PATHS_RUNNER, Path


@contextmanager
def paths_on_cluster(n_workers: int, cpus: float) -> Iterator[None]:
    """Searches within the context fit their paths on the cluster."""
    import ray

    advance = ray.remote(num_cpus=cpus)(_advance)
    put: dict[int, Any] = {}

    def run(tasks: list[tuple[Path, list[float]]]) -> None:
        # Fewer folds and losses than workers: the values of C are shared out too.
        parts = -(-n_workers // len(tasks))
        calls = []
        for path, Cs in tasks:
            data = path.fold.data
            if id(data) not in put:
                put[id(data)] = ray.put(data)
            bare = replace(
                path,
                fold=replace(path.fold, data=None),  # type: ignore[arg-type]
                keep_warm=False,
                outcomes={},
                models={},
                _path=None,
            )
            for chunk in np.array_split(np.sort(Cs), min(parts, len(Cs))):
                calls.append((path, advance.remote(bare, put[id(data)], chunk.tolist())))
        for path, call in calls:
            outcomes, models = ray.get(call)
            path.outcomes.update(outcomes)
            path.models.update(models)

    token = PATHS_RUNNER.set(run)
    try:
        yield
    finally:
        PATHS_RUNNER.reset(token)


def _advance(path: Path, data: Any, Cs: list[float]) -> tuple[dict, dict]:
    """Fit one path over some values of C; returns what was measured and the models kept."""
    path = replace(path, fold=replace(path.fold, data=data))
    path.advance(Cs)
    return path.outcomes, path.models
