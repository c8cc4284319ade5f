"""Opening data files: compressed or not, from disk or standard input, errors in plain words."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import DataError

STDIN = "-"

# First bytes and opener of each compression; the suffix is what users expect to see.
_COMPRESSIONS: dict[str, tuple[bytes, Any]] = {
    ".gz": (b"\x1f\x8b", gzip.open),
    ".bz2": (b"BZh", bz2.open),
    ".xz": (b"\xfd7zXZ\x00", lzma.open),
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

# Standard input is kept in memory up to this size and on disk beyond.
_SPOOL_BYTES = 64 * 2**20


def check_readable(path: str | os.PathLike[str]) -> str:
    """Return the path as text; a DataError if there is no such file or it is out of reach."""
    name = os.fspath(path)
    if name == STDIN:
        return name
    with plain_errors(name):
        mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise DataError("is a directory, not a file", path=name)
    return name


@contextmanager
def plain_errors(path: str) -> Iterator[None]:
    """Turn what the operating system and the decompressors raise into a DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None
    except IsADirectoryError:
        raise DataError("is a directory, not a file", path=path) from None
    except PermissionError:
        raise DataError("no permission to read this file", path=path) from None
    except _DAMAGE as error:
        raise DataError(f"the archive is cut short or damaged ({error})", path=path) from None
    except OSError as error:
        # bz2 reports a damaged stream as an OSError without an error number.
        if error.errno is None:
            raise DataError(f"the archive is cut short or damaged ({error})", path=path) from None
        raise DataError(f"cannot be read ({error.strerror})", path=path) from None


def compression_suffix(path: str | os.PathLike[str]) -> str:
    """Return ".gz", ".bz2" or ".xz" if the name ends so, otherwise an empty string."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in _COMPRESSIONS else ""


def format_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix that names the format: ".csv" for both a.csv and a.csv.gz."""
    name = Path(path)
    return (name.with_suffix("") if compression_suffix(name) else name).suffix.lower()


@contextmanager
def open_data(path: str) -> Iterator[IO[bytes]]:
    """Open a data file, or standard input for "-", as decompressed bytes that can be rewound.

    Compression is recognised by the first bytes, so standard input may be compressed too.
    """
    with plain_errors(path):
        if path == STDIN:
            raw = _standard_input()
        else:
            raw = open(path, "rb")  # noqa: SIM115 (closed below, after the decompressor)
        with raw:
            start = raw.read(8)
            raw.seek(0)
            for suffix, (magic, opener) in _COMPRESSIONS.items():
                if start.startswith(magic):
                    with opener(raw, "rb") as file:
                        yield file
                    return
                if start and path.lower().endswith(suffix):
                    raise DataError(f"is not a {suffix} archive, despite its name", path=path)
            yield raw


def _standard_input() -> IO[bytes]:
    """Take all of standard input, which cannot be rewound, into a file that can."""
    spool: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.seek(0)
    return spool


def as_text(file: IO[bytes]) -> io.TextIOWrapper:
    """Read bytes as UTF-8 text, without the byte-order mark that some spreadsheets write."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
