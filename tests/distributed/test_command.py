"""``shortlist train --workers``: a Ray of its own, which leaves nothing behind."""

import os
import shutil
import tempfile

import numpy as np
import pytest

import shortlist
from shortlist import TopKClassifier
from shortlist.distributed import cluster
from shortlist.distributed.cluster import MAX_FOLDER_CHARACTERS, Cluster, connected
from tests.cli.conftest import Files, shell

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


@pytest.mark.parametrize("length", [MAX_FOLDER_CHARACTERS, MAX_FOLDER_CHARACTERS + 1])
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
    assert folder.startswith(parent if length == MAX_FOLDER_CHARACTERS else "/tmp/ray-of-")


@pytest.fixture
def no_cluster(monkeypatch):
    """As in a process without a cluster: the other tests' one stays as it is."""
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)


def test_no_cluster_at_the_address(no_cluster):
    with (
        pytest.raises(ConnectionError, match=r"no Ray cluster at '127\.0\.0\.1:1': .*refused"),
        connected(Cluster(2, "127.0.0.1:1")),
    ):
        pass


def test_a_ray_that_does_not_start(no_cluster, monkeypatch):
    import ray

    def folders():
        mine = f"{cluster.FOLDER_PREFIX}{os.getpid()}-"
        return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(mine)]

    def late(**options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", late)
    before = folders()
    with (
        pytest.raises(ConnectionError, match=r"did not start .* timed out during startup"),
        connected(Cluster(2)),
    ):
        pass
    assert folders() == before
