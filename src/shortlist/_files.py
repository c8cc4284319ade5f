"""Writing files so that a reader sees the old one or the whole new one, never a part."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# A temporary file of this age is no longer being written: its process was killed.
_STRAY_SECONDS = 24 * 3600


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file to write, and put it in place of ``path`` at the end.

    The temporary file lies in the same directory, is flushed to disk before it is renamed, and is
    removed if anything goes wrong (an error, a full disk, Ctrl-C): then ``path`` is as it was. What
    a killed process left is removed by a later call for the same ``path``, a day after.
    """
    # A link's target is replaced, not the link.
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: no such directory: {target.parent}")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)}: exists and is not a regular file")
    _remove_strays(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        _take_mode(part, target)
        yield part
        _flush(part)
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            # A full disk shows when data is written, where the system does not name the file.
            error.filename = os.fspath(path)
        raise
    # The file is complete and in place: a file system that cannot flush directories is no error.
    with suppress(OSError):
        _flush(target.parent)


def _remove_strays(target: Path) -> None:
    pattern = f".{glob.escape(target.name)}.*.part"
    for stray in target.parent.glob(pattern):
        with suppress(OSError):
            if time.time() - stray.stat().st_mtime > _STRAY_SECONDS:
                stray.unlink()


def _take_mode(part: Path, target: Path) -> None:
    """Give the new file the old one's permissions, or those that a plain open() would give."""
    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    # Some file systems have no permissions to set.
    with suppress(OSError):
        part.chmod(mode)


def _flush(path: Path) -> None:
    """Ask the system to put a file, or a directory's entries, on disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open a directory, and renames durably by itself.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
