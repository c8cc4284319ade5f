"""Files of arrays and JSON with a checksum: what model files and checkpoints have in common.

A file is a safetensors file. Its arrays are stored as they are; its metadata have one entry, named
for the kind of file, a JSON object (one entry, because safetensors writes several in any order, and
saving the same state twice is to give the same bytes):

    format_version   a number, for each kind of file
    shortlist        the version of Shortlist that wrote it
    state            plain data
    sha256           of the state and the arrays, so that damage does not go unnoticed

and whatever else the kind of file says of itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import __version__
from ._files import atomic_write
from .datasets.files import check_readable, plain_errors
from .errors import DataError

# The limit of safetensors on the header's length. A damaged length is usually far larger.
_MAX_HEADER_BYTES = 100_000_000
_SHOWN_REASON = 300
_TYPES = {"b": "BOOL", "i": "I{}", "u": "U{}", "f": "F{}"}
_ALIGNMENT = 8


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name in messages and in the metadata, its format, its error."""

    name: str
    format_version: int
    error: type[DataError]

    @property
    def mark(self) -> str:
        return f"shortlist-{self.name}"


@dataclass(frozen=True)
class Header:
    """The metadata of a file, and the types and shapes of its arrays."""

    own: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...]]]

    @property
    def state(self) -> Any:
        return self.own["state"]


def write_state(
    path: str | os.PathLike[str],
    kind: FileKind,
    state: Any,
    arrays: Mapping[str, np.ndarray],
    **more: Any,
) -> None:
    """Write a file of this kind; it appears whole or not at all. Arrays are not copied."""
    own = {
        "format_version": kind.format_version,
        "shortlist": __version__,
        **more,
        "state": state,
        "sha256": digest(state, arrays),
    }
    header: dict[str, Any] = {"__metadata__": {kind.mark: to_json(own)}}
    # The widest numbers first: all are aligned then.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    end = 0
    for name in order:
        array = arrays[name]
        begin, end = end, end + array.nbytes
        code = _TYPES[array.dtype.kind].format(8 * array.dtype.itemsize)
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [begin, end]}
    text = to_json(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with atomic_write(path) as part, open(part, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name in order:
            file.write(bytes_of(arrays[name]))


def bytes_of(array: np.ndarray) -> Any:
    """The contents of an array, not copied where its rows lie together."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def read_header(path: str, kind: FileKind) -> Header:
    """Read and judge a file's header: is it whole, of this kind, in a format known here?"""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        text = file.read(min(length, _MAX_HEADER_BYTES))
    stranger = f"is not a Shortlist {kind.name} file"
    if not text.startswith(b"{"):
        raise kind.error(stranger, path=path)
    if len(text) < length:
        # The file ends within its header. The header's beginning shows which program wrote it.
        if kind.mark.encode() in text:
            raise kind.error("is cut short", path=path)
        raise kind.error(f"{stranger}, or is cut short", path=path)
    try:
        header = json.loads(text)
    except ValueError:
        raise kind.error(stranger, path=path) from None
    metadata = header.pop("__metadata__", {})
    if kind.mark not in metadata:
        raise kind.error(stranger, path=path)
    own = json.loads(metadata[kind.mark])
    version = int(own["format_version"])
    if version > kind.format_version:
        raise kind.error(
            f"was written by a newer Shortlist ({own.get('shortlist', 'unknown')}, file format "
            f"{version}; this one, {__version__}, reads up to {kind.format_version}): upgrade "
            "Shortlist",
            path=path,
        )
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if size < 8 + length + end:
        raise kind.error(f"is cut short: {size} bytes of {8 + length + end}", path=path)
    arrays = {key: (entry["dtype"], tuple(entry["shape"])) for key, entry in header.items()}
    return Header(own, arrays)


def read_arrays(path: str, kind: FileKind, header: Header) -> dict[str, np.ndarray]:
    """The arrays of a file whose header has been read, compared with its checksum."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise kind.error(f"is damaged ({error})", path=path) from None
    if digest(header.state, arrays) != header.own["sha256"]:
        raise kind.error("is damaged: its checksum does not match", path=path)
    return arrays


@contextmanager
def told_as(kind: FileKind, path: str) -> Iterator[None]:
    """Turn whatever a bad file causes into this kind's error, which names it."""
    try:
        with plain_errors(check_readable(path)):
            yield
    except kind.error:
        raise
    except DataError as error:
        raise kind.error(str(error).removeprefix(f"{path}: "), path=path) from None
    except Exception as error:  # the file may come from anyone
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        message = f"does not hold a complete {kind.name} ({reason[:_SHOWN_REASON]})"
        raise kind.error(message, path=path) from error


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def digest(state: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of a state and its arrays: names, types, shapes and contents."""
    sha256 = hashlib.sha256(to_json(state).encode())
    for name, array in sorted(arrays.items()):
        sha256.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        sha256.update(bytes_of(array))
    return sha256.hexdigest()
