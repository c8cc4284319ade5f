"""A limit on the address space is named as such, before a library fails for it."""

import os

import pytest

from shortlist.cli.start import fit_into_address_space
from tests.cli.conftest import shell

resource = pytest.importorskip("resource")
MB = 10**6


def limited(size):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))}


def test_too_little_for_the_libraries(files, tmp_path):
    ended = shell("train", files / "data.svm", "-o", tmp_path / "m", **limited(300 * MB))
    assert ended.code == 1
    assert ended.err == (
        "shortlist: the limit on address space is 300 MB (ulimit -v), and Shortlist needs 485 MB "
        "to start\n"
    )


@pytest.mark.parametrize(
    ("limit", "threads"), [(None, None), (500 * MB, "1"), (900 * MB, "3"), (10**12, None)]
)
def test_as_many_threads_as_there_is_room_for(limit, threads, monkeypatch):
    monkeypatch.setattr("shortlist.cli.start.address_space_limit", lambda: limit)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "7"})
    fit_into_address_space()
    assert os.environ["OMP_NUM_THREADS"] == "7"  # the user's own number stands
    assert os.environ.get("OPENBLAS_NUM_THREADS") == threads
