"""MATLAB files up to version 7.2, read as data that nobody vouches for.

scipy reads them. Before it does, compressed variables are decompressed here, once and up to the
limit, with their sizes held against the bytes there are; and only the variables asked for are
given to it, so that structures, functions and objects in the file are never looked at.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from ..errors import DataError
from .files import parser_errors
from .limits import read_limit, too_large

_HEADER_BYTES = 128
_TAG_BYTES = 8
_COMPRESSED = 15
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}


def load_mat(path: str, wanted: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the wanted variables that a MATLAB file has, and the names of all it has."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import matfile_version

    message = "is not a complete MATLAB file"
    with parser_errors(message, path):
        with open(path, "rb") as file:
            content = file.read()
        version, _ = matfile_version(io.BytesIO(content))
    if version == 2:
        raise DataError(
            "is a MATLAB 7.3 (HDF5) file: save it with '-v7' to read it here", path=path
        )
    with parser_errors(message, path):
        plain = io.BytesIO(_inflated(content, path) if version == 1 else content)
        held = [str(name) for name, _, _ in whosmat(plain)]
        asked = sorted(set(wanted) & set(held))
        stored = loadmat(plain, variable_names=asked) if asked else {}
    return {name: stored[name] for name in asked if name in stored}, held


def _inflated(content: bytes, path: str) -> bytes:
    """Return a version 5 file with its compressed variables decompressed."""
    order = _BYTE_ORDERS.get(content[126:128])
    if order is None:
        raise ValueError("its byte order is unknown")
    limit = read_limit(len(content))
    plain = bytearray(content[:_HEADER_BYTES])
    place = _HEADER_BYTES
    while place < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        begin, end = place + _TAG_BYTES, place + _TAG_BYTES + size
        if end > len(content):
            raise ValueError(f"{end - len(content)} bytes are missing at its end")
        if kind == _COMPRESSED:
            plain += _variable(content[begin:end], order, limit - len(plain), limit, path)
        else:
            plain += content[place:end]
        place = end
    return bytes(plain)


def _variable(compressed: bytes, order: str, room: int, limit: int, path: str) -> bytes:
    """Return one variable, decompressed: a tag with its size, and so many bytes."""
    decompressor = zlib.decompressobj()
    variable = decompressor.decompress(compressed, max(room, 1))
    if decompressor.unconsumed_tail:
        raise too_large(limit, path)
    if not decompressor.eof:
        raise ValueError("a variable is cut short")
    _, size = struct.unpack_from(f"{order}II", variable)
    if _TAG_BYTES + size != len(variable):
        raise ValueError(f"a variable announces {size} bytes and has {len(variable) - _TAG_BYTES}")
    return variable
