"""Opening data files: compressed or not, from disk or standard input, errors in plain words.

What a file decompresses to is bounded: see :mod:`shortlist.datasets.limits`.
"""

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

from ..errors import DataError
from .limits import read_limit, too_large

STDIN = "-"

# First bytes and opener of each compression; the suffix is what users expect to see.
_COMPRESSIONS: dict[str, tuple[bytes, Any]] = {
    ".gz": (b"\x1f\x8b", gzip.open),
    ".bz2": (b"BZh", bz2.open),
    ".xz": (b"\xfd7zXZ\x00", lzma.open),
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

# First bytes of what is not UTF-8 text; the longer first.
_OTHER_TEXT = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_ZIP = b"PK\x03\x04"
_LOOKED_AT = 8

# Standard input is kept in memory up to this size and on disk beyond.
_SPOOL_BYTES = 64 * 2**20
_BUFFER_BYTES = 2**18
# Characters of a parser's own message that an error shows.
_SHOWN_REASON = 200


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
    except MemoryError:
        raise DataError("does not fit in memory", path=path) from None


@contextmanager
def parser_errors(message: str, path: str) -> Iterator[None]:
    """Turn whatever a parser of ours or others' raises on a bad file into a DataError.

    Parsers of damaged files raise almost anything: SyntaxError, OverflowError, SystemError,
    struct.error. So everything counts as damage here. Only a call of a parser belongs inside.
    """
    try:
        with plain_errors(path):
            yield
    except DataError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__)[:_SHOWN_REASON]
        raise DataError(f"{message} ({reason})", path=path) from None


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
    """Open a data file, or standard input for "-", as decompressed bytes.

    Compression is recognised by the first bytes, so standard input may be compressed too.
    """
    with plain_errors(path):
        if path == STDIN:
            raw = _standard_input()
        else:
            raw = open(path, "rb")  # noqa: SIM115 (closed below, after the decompressor)
        with raw:
            start = raw.read(_LOOKED_AT)
            size = raw.seek(0, os.SEEK_END) if raw.seekable() else 0
            raw.seek(0)
            for suffix, (magic, opener) in _COMPRESSIONS.items():
                if start.startswith(magic):
                    with opener(raw, "rb") as file:
                        bounded = io.BufferedReader(_Bounded(file, path, size), _BUFFER_BYTES)
                        _refuse_other_text(bounded.peek(_LOOKED_AT)[:_LOOKED_AT], path)
                        yield bounded
                    return
                if start and path.lower().endswith(suffix):
                    raise DataError(f"is not a {suffix} archive, despite its name", path=path)
            _refuse_other_text(start, path)
            yield raw


def _refuse_other_text(start: bytes, path: str) -> None:
    """Say what to do about text in other encodings, and spreadsheets, by their first bytes."""
    if start.startswith(_ZIP):
        message = "is a zip archive, as spreadsheets are, not text: save the table as .csv"
        raise DataError(message, path=path)
    encoding = next((name for mark, name in _OTHER_TEXT.items() if start.startswith(mark)), None)
    # Without a mark: every other byte of plain words is zero.
    even, odd = any(start[::2]), any(start[1::2])
    if encoding is None and len(start) >= 4 and even != odd:
        encoding = "UTF-16LE" if even else "UTF-16BE"
    if encoding is not None:
        source = "" if path == STDIN or compression_suffix(path) else f" {path} > NEW"
        advice = f"convert it (iconv -f {encoding} -t UTF-8{source})"
        raise DataError(f"is {encoding} text, not UTF-8: {advice}", path=path)


class _Bounded(io.RawIOBase):
    """The bytes of a decompressor, up to the limit for a file of this size."""

    def __init__(self, file: IO[bytes], path: str, stored_bytes: int) -> None:
        self._file, self._path = file, path
        self._limit = read_limit(stored_bytes)
        self._seen = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._seen += count
        if self._seen > self._limit:
            raise too_large(self._limit, self._path)
        return count


def _standard_input() -> IO[bytes]:
    """Take all of standard input, which cannot be rewound, into a file that can."""
    spool: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.seek(0)
    return spool


def as_text(file: IO[bytes]) -> io.TextIOWrapper:
    """Read bytes as UTF-8 text, without the byte-order mark that some spreadsheets write."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
