"""``shortlist train --workers``: a Ray of its own, which leaves nothing behind."""

import json
import os
import shutil
import tempfile

import numpy as np
import pytest

import shortlist
from shortlist import TopKClassifier
from shortlist.distributed import cluster
from shortlist.distributed.cluster import LONGEST_FOLDER, Cluster, connected
from tests.cli.conftest import Files, shell
from tests.solvers.problems import make_data

pytest.importorskip("ray")


def processes_with(text: str) -> list[str]:
    """Command lines of running processes that name a folder."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [line] if text in line else []
    return found


@pytest.mark.slow
def test_a_cluster_is_started_and_stopped(tmp_path, monkeypatch):
    files = Files(tmp_path)
    folder = tempfile.mkdtemp(dir="/tmp")  # sockets need short names
    try:
        monkeypatch.setenv("TMPDIR", folder)
        ended = shell("train", files / "data.svm", "-o", files / "model", "--workers", 2, "-q")
        assert ended.code == 0, ended.err
        assert os.listdir(folder) == []
        assert processes_with(folder) == []
    finally:
        shutil.rmtree(folder)
    model = shortlist.load(files / "model")
    alone = TopKClassifier(random_state=0).fit(files.X, files.y)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-3)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.1)


def test_workers_read_the_files_of_a_folder(command, tmp_path, monkeypatch):
    """This process reads none of them, and finds the accuracy of all."""
    X, y = make_data(200)
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(2):
        np.savez(shards / f"{number}.npz", X=X[number::2], y=y[number::2])
    monkeypatch.setattr("shortlist.datasets.read_splits", None)
    options = ("-k", 2, "--workers", 2, "--memory-limit", "4GB", "--json")
    with connected(Cluster(2)):
        ended = command("train", shards, "-o", tmp_path / "model", *options)
    assert ended.code == 0, ended.err
    assert "memory limit 4GB: on 2 workers: rows and duals in memory" in ended.err
    told, model = json.loads(ended.out), shortlist.load(tmp_path / "model")
    assert (told["n_samples"], told["n_features"], told["n_classes"]) == (200, 5, 4)
    alone = TopKClassifier(k=2, random_state=0, tol=1e-6).fit(X, y)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-3)
    assert told["accuracy"]["training"]["top-2"] == pytest.approx(model.score(X, y))
    monkeypatch.undo()
    ended = command("evaluate", tmp_path / "model", shards, "--json")
    assert json.loads(ended.out)["n_samples"] == 200


@pytest.mark.parametrize("length", [LONGEST_FOLDER, LONGEST_FOLDER + 1])
def test_sockets_have_names_that_are_short_enough(monkeypatch, length):
    """The system allows 107 characters; processes have at most seven digits."""
    parent = "/tmp/" + "x" * (length - len("/tmp/"))
    os.makedirs(parent)
    try:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        monkeypatch.setattr(os, "getpid", lambda: 4194304)
        folder = cluster._temporary_folder()
        shutil.rmtree(folder)
    finally:
        shutil.rmtree(parent)
    session = "session_2026-11-16_23-02-29_099302_4194304"
    assert len(f"{folder}/{session}/sockets/plasma_store") <= 107
    assert folder.startswith(parent if length == LONGEST_FOLDER else "/tmp/ray-of-")


def test_no_cluster_at_the_address():
    with (
        pytest.raises(ConnectionError, match=r"no Ray cluster at '127\.0\.0\.1:1': .*refused"),
        connected(Cluster(2, "127.0.0.1:1")),
    ):
        pass


def test_a_ray_that_does_not_start(monkeypatch):
    import ray

    def late(**options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", late)
    with (
        pytest.raises(ConnectionError, match=r"did not start .* timed out during startup"),
        connected(Cluster(2)),
    ):
        pass
    mine = f"{cluster.FOLDER_PREFIX}{os.getpid()}-"
    assert not [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(mine)]
