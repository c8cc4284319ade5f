"""Which folders are trusted to hold compiled kernels."""

import os
from pathlib import Path

import pytest

from shortlist._jit_cache import check_trusted
from tests.jit_cache.probe import (
    AS_ROOT,
    POSIX,
    PROBE,
    files,
    kernels,
)
from tests.processes import run


@POSIX
def test_the_folder_is_private(installed, tmp_path):
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=tmp_path / "cache")
    assert Path(found["folder"]).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    for path in kernels(tmp_path):
        assert path.stat().st_mode & 0o777 == 0o600


def _refusal(installed, root) -> str:
    """Why a cache below this folder is refused; it is refused, and the kernel runs."""
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=root)
    assert (found["answer"], found["compiled"], found["folder"]) == (42.0, 1, "None")
    return found["obstacle"]


@POSIX
def test_a_parent_that_all_can_write_is_refused(installed, tmp_path):
    shared = tmp_path / "shared"
    root = shared / "a" / "b"
    root.mkdir(parents=True)
    shared.chmod(0o777)
    assert f"{shared} can be written by other users" in _refusal(installed, root)
    assert files(root) == set()
    shared.chmod(0o1777)  # like /tmp
    for loaded in (0, 1):
        assert run(PROBE, site=installed, NUMBA_CACHE_DIR=root)["loaded"] == loaded


@POSIX
def test_links_are_followed_before_the_check(installed, tmp_path):
    (tmp_path / "shared" / "cache").mkdir(parents=True)
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "cache")
    assert "can be written by other users" in _refusal(installed, tmp_path / "link")


@pytest.fixture
def folder(tmp_path):
    """A folder that can be trusted, in one whose mode a test may change."""
    made = tmp_path / "parent" / "kernels"
    made.mkdir(parents=True, mode=0o700)
    check_trusted(made)
    return made


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_not_trusted(folder, mode):
    folder.chmod(mode)
    with pytest.raises(PermissionError, match=f"{folder} can be written by other users"):
        check_trusted(folder)


@POSIX
def test_a_folder_that_others_can_read_is_trusted(folder):
    folder.chmod(0o755)
    check_trusted(folder)


@POSIX
@pytest.mark.parametrize(
    ("mode", "own", "trusted"),
    [
        (0o755, True, True),
        (0o755, False, True),
        (0o775, True, True),  # groups of one user are common
        (0o775, False, False),
        (0o777, True, False),
        (0o777, False, False),
        (0o702, True, False),
        (0o1777, True, True),
        (0o1777, False, True),  # /tmp
    ],
)
def test_which_parents_are_trusted(folder, monkeypatch, mode, own, trusted):
    """A parent that is not this user's own is root's here: all is, to another user."""
    if not own and not AS_ROOT:
        pytest.skip("only root has folders of root's")
    folder.parent.chmod(mode)
    if not own:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    if trusted:
        check_trusted(folder)
    else:
        with pytest.raises(PermissionError, match=f"{folder.parent} can be written"):
            check_trusted(folder)


@pytest.mark.skipif(not AS_ROOT, reason="only root can give files away")
def test_folders_of_another_user_are_not_trusted(folder):
    for path in (folder, folder.parent, folder.parent.parent):
        os.chown(path, 12345, -1)
        with pytest.raises(PermissionError, match=f"{path} is not a folder of this user"):
            check_trusted(folder)
        os.chown(path, 0, -1)
    check_trusted(folder)
