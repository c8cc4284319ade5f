"""NumPy's own files, read as untrusted data: .npy arrays and .npz archives.

What a header claims is checked against the bytes there are before anything is allocated, and an
archive's checksums are checked before its numbers are used. Pickled objects are refused.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

import numpy as np

from ..errors import DataError
from .files import parser_errors
from .limits import check_read_size

_CHUNK_BYTES = 2**24
_STORED_KINDS = "biufcSU"
_LOCAL_HEADER = struct.Struct("<4s22xHH")
# Deflate makes at most 1032 bytes of one: a member that claims more is damaged.
_DEFLATE_EXPANSION = 1032
_END_BYTES = 64


@dataclass(frozen=True)
class _Header:
    """The contents of a .npy header, and its length in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    size: int

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def arrange(self, flat: np.ndarray) -> np.ndarray:
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


def load_npy(path: str) -> np.ndarray:
    """Return the array of a .npy file, as a read-only memory map."""
    with parser_errors("is not a complete .npy file", path), open(path, "rb") as file:
        header = _read_header(file, os.path.getsize(path))
        return header.arrange(_mapped(path, header, header.size))


def _mapped(path: str, header: _Header, offset: int) -> np.ndarray:
    if header.data_bytes == 0:
        return np.empty(math.prod(header.shape), header.dtype)
    count = math.prod(header.shape)
    return np.memmap(path, dtype=header.dtype, mode="r", offset=offset, shape=(count,))


def _read_header(file: IO[bytes], total_bytes: int) -> _Header:
    """Read a .npy header and hold it against the number of bytes that it and the data take."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"unknown version {version[0]}.{version[1]}")
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    with warnings.catch_warnings():
        # NumPy warns about headers written by Python 2, but reads them correctly.
        warnings.simplefilter("ignore")
        shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if dtype.kind not in _STORED_KINDS or dtype.itemsize == 0:
        raise ValueError(f"it holds values of type {dtype}")
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    header = _Header(shape, bool(fortran), dtype, file.tell())
    if header.size + header.data_bytes != total_bytes:
        held = total_bytes - header.size
        raise ValueError(f"{header.data_bytes} bytes are announced and {held} are there")
    return header


class Archive(Mapping[str, np.ndarray]):
    """The arrays of an .npz file by name, each read and checked once, when it is asked for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read: dict[str, np.ndarray] = {}
        with parser_errors("is not a complete .npz archive", path):
            self._size = os.path.getsize(path)
            self._zip = zipfile.ZipFile(path)
            self._members = {
                info.filename.removesuffix(".npy"): info
                for info in self._zip.infolist()
                if info.filename.endswith(".npy")
            }

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def __contains__(self, name: object) -> bool:
        return name in self._members  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._members[name]
        if name not in self._read:
            with parser_errors(f"array {name!r} cannot be read", self._path):
                if info.compress_type == zipfile.ZIP_STORED:
                    self._read[name] = self._stored(info)
                else:
                    self._read[name] = self._decompressed(info, name)
        return self._read[name]

    def _stored(self, info: zipfile.ZipInfo) -> np.ndarray:
        """Return a member without compression as a memory map, its checksum checked."""
        if info.compress_size != info.file_size:
            raise ValueError("its two sizes differ")
        with self._zip.open(info) as file:  # checks the member's own header too
            header = _read_header(file, info.file_size)
        start = self._data_start(info)
        if start + info.file_size > self._size:
            raise ValueError("it reaches beyond the end of the file")
        if info.file_size:
            content = np.memmap(
                self._path, dtype=np.uint8, mode="r", offset=start, shape=(info.file_size,)
            )
            checksum = 0
            for begin in range(0, info.file_size, _CHUNK_BYTES):
                checksum = zlib.crc32(content[begin : begin + _CHUNK_BYTES].data, checksum)
            if checksum != info.CRC:
                raise ValueError("its checksum does not match")
        return header.arrange(_mapped(self._path, header, start + header.size))

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        """Return where a member's bytes begin: behind its header, its name and an extra field."""
        with open(self._path, "rb") as file:
            file.seek(info.header_offset)
            _, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        return int(info.header_offset + _LOCAL_HEADER.size + name_length + extra_length)

    def _decompressed(self, info: zipfile.ZipInfo, name: str) -> np.ndarray:
        """Return a compressed member, decompressed straight into its array."""
        if info.compress_size > self._size:
            raise ValueError("it is longer than the file")
        if info.compress_type == zipfile.ZIP_DEFLATED:
            possible = _DEFLATE_EXPANSION * info.compress_size + _END_BYTES
            if info.file_size > possible:
                raise ValueError(f"{info.file_size} bytes cannot come from {info.compress_size}")
        check_read_size(info.file_size, info.compress_size, self._path, f"array {name!r}")
        with self._zip.open(info) as file:
            header = _read_header(file, info.file_size)
            content = np.empty(header.data_bytes, np.uint8)
            filled = 0
            while filled < content.size:
                count = file.readinto(content[filled : filled + _CHUNK_BYTES])  # type: ignore[attr-defined]
                if not count:
                    raise DataError("the archive is cut short or damaged", path=self._path)
                filled += count
            # zipfile compares the checksum only when a member is read to its end.
            if file.read(1):
                raise ValueError("it is longer than announced")
        return header.arrange(content.view(header.dtype))
