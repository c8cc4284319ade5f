"""Examples, groups of workers that hold them, and what a fit on them must reach."""

import numpy as np
import pytest

ray = pytest.importorskip("ray")

from shortlist import TopKClassifier  # noqa: E402
from shortlist.distributed.cluster import Cluster  # noqa: E402
from shortlist.distributed.group import Group  # noqa: E402
from shortlist.distributed.shards import ArrayShard  # noqa: E402
from shortlist.distributed.storage import RemoteRows  # noqa: E402
from tests.solvers.problems import make_data  # noqa: E402

X, Y = make_data(200)
# Small ones: with weights about 1 a hinge takes 250 epochs, with these 27.
WEIGHTS = 0.1 * np.linspace(0.5, 1.5, len(Y))
TOL = 1e-4


def shards_of(parts, matrix=np.asarray) -> list[ArrayShard]:
    return [
        ArrayShard(f"shard {number}", (ray.put(matrix(X[rows])),))
        for number, rows in enumerate(parts)
    ]


def group_of(*parts, matrix=np.asarray) -> Group:
    return Group(shards_of(parts, matrix), Cluster(len(parts), timeout=600.0))


def group_within(largest: Group, *parts) -> Group:
    """The first workers of a larger group. Whoever replaces one does so for both groups."""
    group = Group([], Cluster(len(parts), timeout=largest.timeout))
    group.shards, group.deaths = shards_of(parts), [0] * len(parts)
    group._workers = largest._workers
    return group


def forget(group: Group) -> None:
    """Make the workers what new ones are: nothing of earlier fits is left with them."""
    calls = [worker.__ray_call__.remote(_forget) for worker in group._workers]
    ray.get(calls)


def _forget(worker) -> None:
    vars(worker).clear()


def dealt(n_workers: int) -> list[np.ndarray]:
    return [np.arange(len(Y))[number::n_workers] for number in range(n_workers)]


def train(group: Group, parts, loss="softmax", checkpoint=None, **options):
    order = np.concatenate(parts)
    model = TopKClassifier(loss, tol=TOL, random_state=0, checkpoint=checkpoint, checkpoint_every=0)
    model.fit(RemoteRows(group, None), Y[order], WEIGHTS[order], **options)
    return model


def check(model, loss="softmax", classes=None) -> None:
    alone = TopKClassifier(loss, tol=1e-6, random_state=0).fit(X, Y, WEIGHTS)
    result = model.result_
    assert result.status == "converged"
    assert result.relative_gap <= TOL
    assert result.primal == pytest.approx(alone.result_.primal, rel=1e-4)
    assert result.dual <= alone.result_.primal
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.015)
    np.testing.assert_array_equal(model.classes_, alone.classes_ if classes is None else classes)
