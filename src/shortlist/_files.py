"""Writing files so that a reader sees the old one or the whole new one, never a part."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# The lock on a temporary file shows that its process still runs. Where there are no locks, a file
# of this age is no longer being written.
_STRAY_SECONDS = 24 * 3600
# A temporary file is locked within this time.
_SECONDS_TO_LOCK = 1.0


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, private: bool = False, flushed: bool = True
) -> Iterator[Path]:
    """Yield the path of a temporary file to write, and put it in place of ``path`` at the end.

    The temporary file lies in the same directory, is flushed to disk before it is renamed, and is
    removed if anything goes wrong (an error, a full disk, Ctrl-C): then ``path`` is as it was. What
    a killed process left is removed by a later call for the same ``path``.

    ``private`` files are for this user's eyes only. Files that can be made again need not be
    ``flushed``: after a power failure they may be damaged.
    """
    # A link's target is replaced, not the link.
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: no such directory: {target.parent}")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)}: exists and is not a regular file")
    remove_strays(target.parent, f".{glob.escape(target.name)}.*.part", locked=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    part = Path(name)
    if fcntl is None or not _lock(handle):
        os.close(handle)
        handle = -1
    try:
        if not private:  # as the temporary file is
            _take_mode(part, target)
        yield part
        if flushed:
            _flush(part)
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            # A full disk shows when data is written, where the system does not name the file.
            error.filename = os.fspath(path)
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    # The file is complete and in place: a file system that cannot flush directories is no error.
    if flushed:
        with suppress(OSError):
            _flush(target.parent)


def remove_strays(folder: Path, pattern: str = "*.part", *, locked: bool = False) -> None:
    """Remove temporary files of killed processes: those a day old, in any case.

    ``locked`` says that their processes hold locks. Then those without one go at once.
    """
    for stray in folder.glob(pattern):
        with suppress(OSError):
            age = time.time() - stray.stat().st_mtime
            abandoned = locked and age > _SECONDS_TO_LOCK and _is_abandoned(stray)
            if abandoned or age > _STRAY_SECONDS:
                stray.unlink()


def _is_abandoned(part: Path) -> bool:
    """Whether no process holds the lock of a temporary file, as far as that can be known."""
    if fcntl is None:
        return False
    handle = os.open(part, os.O_RDWR)
    try:
        return _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another has it, or there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
