"""Files and tables that workers read: the same examples, and errors in one line."""

import json
import os

import numpy as np
import pytest

ray = pytest.importorskip("ray")

from shortlist import TopKClassifier, distributed, load  # noqa: E402
from shortlist.datasets import write_libsvm  # noqa: E402
from shortlist.distributed.group import Group  # noqa: E402
from shortlist.distributed.shards import shards_of_files  # noqa: E402
from shortlist.distributed.storage import RemoteRows  # noqa: E402
from tests.distributed.groups import TOL, WEIGHTS, X, Y, check  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


def write_shards(folder, *parts, features=slice(None)):
    paths = []
    for number, rows in enumerate(parts):
        paths.append(folder / f"{number}.npz")
        np.savez(paths[-1], X=X[rows][:, features], y=Y[rows])
    return paths


@pytest.mark.slow
def test_files_and_tables_as_input(tmp_path):
    parts = [slice(0, 70), slice(70, 130), slice(130, 200)]
    paths = write_shards(tmp_path, *parts)
    plain = TopKClassifier(tol=1e-6, random_state=0).fit(X, Y)
    model = distributed.fit(TopKClassifier(random_state=0), paths, n_workers=2)
    assert model.result_.primal == pytest.approx(plain.result_.primal, rel=1e-3)
    lacking = X[70:].copy()
    lacking[:, 0] = lacking[:, -1] = 0.0
    write_libsvm(tmp_path / "a.svm", X[:70], Y[:70], zero_based=True)
    write_libsvm(tmp_path / "b.svm", lacking, Y[70:], zero_based=True)
    texts = [tmp_path / "a.svm", tmp_path / "b.svm"]
    narrow = distributed.fit(TopKClassifier(random_state=0), texts, n_workers=2)
    whole = TopKClassifier(tol=1e-6, random_state=0).fit(np.vstack([X[:70], lacking]), Y)
    assert narrow.result_.primal == pytest.approx(whole.result_.primal, rel=1e-3)
    columns = {**{f"x{j}": X[:, j] for j in range(5)}, "y": Y}
    table = ray.data.from_pandas(pytest.importorskip("pandas").DataFrame(columns))
    found = distributed.fit(TopKClassifier(random_state=0), table.repartition(2), n_workers=2)
    assert found.result_.primal == pytest.approx(plain.result_.primal, rel=1e-3)
    assert found.n_features_in_ == 5


def read_by(monkeypatch, group: Group, paths, **options):
    """What workers that are there already find in other files."""
    monkeypatch.setattr(group, "shards", shards_of_files(paths, len(group), options))
    return RemoteRows(group, None).data()


def test_one_clear_error(groups, monkeypatch, tmp_path):
    good, short = write_shards(tmp_path, slice(0, 100), slice(100, 200))
    np.savez(short, X=X[100:, :3], y=Y[100:])
    with pytest.raises(ValueError, match=r"\d\.npz: has \d features where .*\d\.npz has \d"):
        read_by(monkeypatch, groups[2], [good, short])
    np.savez(short, X=X[100:], y=Y[100:] + 50)
    with pytest.raises(ValueError, match=r"\d\.npz: its labels \(.*\) are on no other shard"):
        read_by(monkeypatch, groups[2], [good, short])
    short.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"1\.npz: is not a complete \.npz archive"):
        read_by(monkeypatch, groups[2], [good, short])
    for wrong, message in (
        ({"data": X, "n_workers": 2}, "need their labels"),
        ({"data": [good], "y": Y, "n_workers": 2}, "leave out y"),
        ({"data": X, "y": Y, "n_workers": 0}, "n_workers must be"),
        ({"data": X, "y": Y, "n_workers": 99}, "has 16 CPUs where the workers need 99"),
        ({"data": [], "n_workers": 2}, "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            distributed.fit(TopKClassifier(), **wrong)


def test_files_go_to_workers_by_size(tmp_path):
    sizes = {"a": 50, "b": 30, "c": 30, "d": 5}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    shards = shards_of_files([tmp_path / name for name in sizes], 2, {})
    loads = sorted(sum(os.path.getsize(file) for file in shard.files) for shard in shards)
    assert loads == [55, 60]
    assert str(tmp_path / "a") == shards[0].files[0]  # which says how the others are read
    assert [list(shard.files) for shard in shards] == [sorted(shard.files) for shard in shards]


def test_fewer_files_than_workers_are_dealt_out(groups, monkeypatch, tmp_path):
    np.savez(tmp_path / "one.npz", X=X)
    np.save(tmp_path / "labels.npy", Y)
    data = read_by(monkeypatch, groups[3], [tmp_path / "one.npz"], labels=tmp_path / "labels.npy")
    assert data.n_samples == 200
    assert np.bincount(data.y).tolist() == np.bincount(Y).tolist()
    model = TopKClassifier(tol=TOL, random_state=0).fit(data.X, data.y)
    alone = TopKClassifier(tol=1e-6, random_state=0).fit(X, Y)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-4)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.05)
    np.savez(tmp_path / "one.npz", X=X[:2], y=Y[:2])
    with pytest.raises(ValueError, match="has 2 examples for 3 workers"):
        read_by(monkeypatch, groups[3], [tmp_path / "one.npz"])


def test_tables_are_matched_by_the_names_of_their_columns(groups, monkeypatch, tmp_path):
    names = ["p", "q", "r", "s", "t"]
    for file, rows, order in (
        ("a", slice(0, 120), [0, 1, 2, 3, 4]),
        ("b", slice(120, 200), [4, 2, 0, 1, 3]),
    ):
        columns = [names[j] for j in order]
        lines = [",".join([*columns, "label", "w"])]
        for x, y, w in zip(X[rows][:, order], Y[rows], WEIGHTS[rows], strict=True):
            lines.append(",".join([*map(repr, map(float, x)), f"c{y}", repr(float(w))]))
        (tmp_path / f"{file}.csv").write_text("\n".join(lines))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    data = read_by(monkeypatch, groups[2], paths, weight_column="w")
    assert data.reading.feature_names == tuple(names)
    model = TopKClassifier(tol=TOL, random_state=0).fit(data.X, data.y, data.weight)
    check(model, classes=[f"c{y}" for y in range(4)])


def test_examples_with_several_labels(groups, monkeypatch, tmp_path):
    """The labels of the files need not be the same."""
    (tmp_path / "a.svm").write_text("1,2 1:1\n2 2:1\n3 1:1 2:1\n")
    (tmp_path / "b.svm").write_text("2 1:1\n5,2 2:1\n")
    data = read_by(monkeypatch, groups[2], [tmp_path / "a.svm", tmp_path / "b.svm"])
    assert data.reading.classes == (1, 2, 3, 5)
    expected = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]]
    np.testing.assert_array_equal(data.y.toarray(), expected)


def test_workers_read_the_files_of_a_folder(command, tmp_path, monkeypatch):
    """This process reads none of them, and finds the accuracy of all."""
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(2):
        np.savez(shards / f"{number}.npz", X=X[number::2], y=Y[number::2])
    # Before the workers, which would compile the same kernels twice.
    alone = TopKClassifier(k=2, random_state=0, tol=1e-6).fit(X, Y)
    monkeypatch.setattr("shortlist.datasets.read_splits", None)
    options = ("-k", 2, "--workers", 2, "--memory-limit", "4GB", "--json")
    ended = command("train", shards, "-o", tmp_path / "model", *options)
    assert ended.code == 0, ended.err
    assert "memory limit 4GB: on 2 workers: rows and duals in memory" in ended.err
    told, model = json.loads(ended.out), load(tmp_path / "model")
    assert (told["n_samples"], told["n_features"], told["n_classes"]) == (200, 5, 4)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-3)
    assert told["accuracy"]["training"]["top-2"] == pytest.approx(model.score(X, Y))
    monkeypatch.undo()
    ended = command("evaluate", tmp_path / "model", shards, "--json")
    assert json.loads(ended.out)["n_samples"] == 200
