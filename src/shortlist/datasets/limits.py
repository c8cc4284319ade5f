"""How large a compressed file may become.

A file of a few kilobytes can decompress to many gigabytes. Reading stops with a DataError beyond

    the larger of 1 GiB and 200 times the compressed size, and at most half of the free memory.

Real data stays well below: dense numbers compress 2 to 10 times, sparse data stored dense up to
about 100 times, and deflate, the strongest case, 1032 times. ``SHORTLIST_MAX_READ_BYTES`` replaces
the limit: a number of bytes, or with a suffix as in ``16G``.
"""

from __future__ import annotations

import os

from .._memory import available_bytes, parse_bytes
from ..errors import DataError

LIMIT_VARIABLE = "SHORTLIST_MAX_READ_BYTES"
UNQUESTIONED_BYTES = 2**30
MAX_EXPANSION = 200
FREE_MEMORY_SHARE = 0.5


def read_limit(stored_bytes: int) -> int:
    """Return how many bytes may be made of a compressed file or member of this size."""
    if chosen := os.environ.get(LIMIT_VARIABLE):
        return _parsed(chosen)
    limit = max(UNQUESTIONED_BYTES, MAX_EXPANSION * stored_bytes)
    free = available_bytes()
    return limit if free is None else min(limit, int(free * FREE_MEMORY_SHARE))


def check_read_size(size: int, stored_bytes: int, path: str, what: str = "") -> None:
    """Raise a DataError if ``size`` bytes are too many to make of a file, or of ``what`` in it."""
    limit = read_limit(stored_bytes)
    if size > limit:
        raise too_large(limit, path, what)


def too_large(limit: int, path: str, what: str = "") -> DataError:
    """Return the error for a file, or ``what`` in it, that decompresses beyond ``limit``."""
    subject = f"{what} " if what else ""
    return DataError(
        f"{subject}would take more than the {_shown(limit)} allowed for a file of this size: if "
        f"it is to be trusted, raise the limit with the environment variable {LIMIT_VARIABLE}",
        path=path,
    )


def _parsed(text: str) -> int:
    found = parse_bytes(text)
    if found is None:
        raise ValueError(f"{LIMIT_VARIABLE} must be a number of bytes such as 16G; got {text!r}")
    return found


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
