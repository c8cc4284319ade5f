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
WEIGHTS = np.linspace(0.5, 1.5, len(Y))
TOL = 1e-4


def group_of(*parts, matrix=np.asarray) -> Group:
    shards = [
        ArrayShard(f"shard {number}", (ray.put(matrix(X[rows])),))
        for number, rows in enumerate(parts)
    ]
    return Group(shards, Cluster(len(shards), timeout=600.0))


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
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.05)
    np.testing.assert_array_equal(model.classes_, alone.classes_ if classes is None else classes)
