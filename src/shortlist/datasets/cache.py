"""Where downloads are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_VARIABLE = "SHORTLIST_CACHE"


def default_cache_dir() -> Path:
    """Return the directory for downloads: $SHORTLIST_CACHE, or the platform's cache directory."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "shortlist" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "shortlist"
    # The XDG rule: a relative path there is to be ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "shortlist"


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Let one process at a time work in a directory; the lock ends with the process that holds it.

    Where the system has no such locks (Windows) processes are not kept apart.
    """
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(directory / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
