"""Where Shortlist keeps what it can make or fetch again."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "SHORTLIST_CACHE"


def default_cache_dir() -> Path:
    """Return the cache folder: ``$SHORTLIST_CACHE``, or the platform's own for Shortlist."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("shortlist", appauthor=False)
