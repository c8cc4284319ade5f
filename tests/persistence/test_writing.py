"""A save leaves a whole file or the old one, and a load imports little."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from shortlist.persistence import load, save
from tests.persistence.fake import Fake


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch, failure, moment):
    before = saved.read_bytes()

    def fail(*args):
        raise failure

    monkeypatch.setattr(os, moment, fail)
    with pytest.raises(type(failure)):
        save(Fake({"coef_": np.zeros((100, 100))}, {}), saved)
    monkeypatch.undo()
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_a_disk_that_fills_while_writing(saved, monkeypatch):
    before = saved.read_bytes()
    real_open = open

    def open_full(file, mode="r", *args, **kwargs):
        # The temporary file is opened for writing: let it be the device that is always full.
        target = "/dev/full" if "w" in mode else file
        return real_open(target, mode, *args, **kwargs)

    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr("builtins.open", open_full)
    with pytest.raises(OSError, match="No space left"):
        save(Fake({"coef_": np.zeros((100, 100))}, {}), saved)
    monkeypatch.undo()
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_a_new_file_has_ordinary_permissions_and_a_replaced_one_keeps_its_own(model, tmp_path):
    path, plain = tmp_path / "m", tmp_path / "plain"
    plain.touch()
    save(model, path)
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    save(model, path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(model, saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    save(Fake({}, {"k": 7}), link)
    assert link.is_symlink()
    assert load(saved).meta == {"k": 7}


def test_places_that_cannot_be_written(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        save(model, tmp_path / "gone" / "m")
    with pytest.raises(OSError, match="not a regular file"):
        save(model, tmp_path)
    # A device is not replaced by a file.
    with pytest.raises(OSError, match="not a regular file"):
        save(model, os.devnull)


def test_loading_imports_neither_pickle_based_nor_heavy_modules(saved):
    code = (
        "import sys, shortlist.persistence as p\n"
        f"p.describe({str(saved)!r})\n"
        "print([m for m in ('numba', 'torch', 'joblib', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
