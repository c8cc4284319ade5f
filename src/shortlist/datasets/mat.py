"""MATLAB's files up to version 7.2: matrices, sparse matrices and text, read as untrusted data.

scipy's reader for versions 5 to 7.2 is compiled and follows whatever a file says: a wrong number in
a damaged file ends the process. So these are read here in Python, and every element is held against
the bytes there are.

Such a file is a header and a row of elements. An element is a tag (its type and its number of
bytes) and so many bytes, filled up to a multiple of eight; up to four bytes stand within the tag
itself. A variable is an element of elements: flags with the class, dimensions, name, and the
values. Between versions 7 and 7.2 a variable may be compressed as a whole.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataError
from .files import parser_errors
from .limits import read_limit, too_large

_MESSAGE = "is not a complete MATLAB file"
_HEADER_BYTES = 128
_TAG_BYTES = 8
_SMALL_BYTES = 4
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15
# Types of elements, as NumPy's; those of text are below.
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"} | {
    12: "i8",
    13: "u8",
}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
# Classes of variables.
_CELL, _CHAR, _SPARSE = 1, 4, 5
_NUMERIC = range(6, 16)
_COMPLEX = 0x0800
_DEEPEST = 4  # cells within cells


def load_mat(path: str, wanted: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the wanted variables that a MATLAB file has, and the names of all it has.

    Structures, functions and objects in the file are never looked at.
    """
    from scipy.io.matlab import matfile_version

    with parser_errors(_MESSAGE, path):
        with open(path, "rb") as file:
            content = file.read()
        version, _ = matfile_version(io.BytesIO(content))
    if version == 2:
        message = "is a MATLAB 7.3 (HDF5) file: save it with '-v7' to read it here"
        raise DataError(message, path=path)
    with parser_errors(_MESSAGE, path):
        if version == 1:
            return read_mat5(content, wanted, path)
        return _read_mat4(content, wanted)


def _read_mat4(content: bytes, wanted: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Read a file of version 4. scipy's reader for these is written in Python and checks sizes."""
    from scipy.io import loadmat, whosmat

    held = [str(name) for name, _, _ in whosmat(io.BytesIO(content))]
    asked = sorted(set(wanted) & set(held))
    stored = loadmat(io.BytesIO(content), variable_names=asked) if asked else {}
    return {name: stored[name] for name in asked}, held


@dataclass(frozen=True)
class _Element:
    kind: int
    content: memoryview


@dataclass(frozen=True)
class _Variable:
    """A variable whose values are not read yet."""

    kind: int
    dimensions: tuple[int, ...]
    name: str
    values: list[_Element]


def read_mat5(
    content: bytes, wanted: Collection[str], path: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the wanted variables of a file, and the names of all it has.

    Raises ValueError, or struct.error and the like, if the file is damaged.
    """
    order = _BYTE_ORDERS.get(content[126:_HEADER_BYTES])
    if order is None:
        raise ValueError("its byte order is unknown")
    reader = _Reader(order)
    found: dict[str, Any] = {}
    held: list[str] = []
    for element in _inflated(reader, content, path):
        if element.kind != _MATRIX:
            continue
        variable = reader.variable(element)
        held.append(variable.name)
        if variable.name in wanted:
            found[variable.name] = reader.value(variable)
    return found, held


def _inflated(reader: _Reader, content: bytes, path: str) -> Iterator[_Element]:
    """Yield a file's elements, decompressed one at a time and up to the limit for all."""
    limit = room = read_limit(len(content))
    for element in reader.elements(memoryview(content)[_HEADER_BYTES:], padded=False):
        if element.kind != _COMPRESSED:
            yield element
            continue
        decompressor = zlib.decompressobj()
        plain = decompressor.decompress(element.content, max(room, 1))
        if decompressor.unconsumed_tail:
            raise too_large(limit, path)
        if not decompressor.eof:
            raise ValueError("a variable is cut short")
        room -= len(plain)
        yield from reader.elements(memoryview(plain), padded=False)


class _Reader:
    """Reads elements in one byte order."""

    def __init__(self, order: str) -> None:
        self._order = order

    def elements(self, content: memoryview, *, padded: bool = True) -> Iterator[_Element]:
        """Yield the elements in a row; those of a file are not filled up."""
        place = 0
        while place < len(content):
            first, size = struct.unpack_from(f"{self._order}II", content, place)
            begin = place + _TAG_BYTES
            kind, small = first & 0xFFFF, first >> 16
            if small:  # the bytes stand within the tag
                if small > _SMALL_BYTES:
                    raise ValueError(f"an element within its tag has {small} bytes")
                begin, size = place + _SMALL_BYTES, small
                following = place + _TAG_BYTES
            else:
                following = begin + size
                if padded:
                    following += -size % _TAG_BYTES
            if begin + size > len(content):
                missing = begin + size - len(content)
                raise ValueError(f"{missing} bytes are missing at the end of an element")
            yield _Element(kind, content[begin : begin + size])
            place = following

    def numbers(self, element: _Element) -> np.ndarray:
        if element.kind not in _NUMBERS:
            raise ValueError(f"an element of type {element.kind} stands for numbers")
        dtype = np.dtype(self._order + _NUMBERS[element.kind])
        values = np.frombuffer(element.content, dtype=dtype)
        return values.astype(dtype.newbyteorder("="), copy=False)

    def variable(self, element: _Element) -> _Variable:
        flags, sizes, name, *values = self.elements(element.content)
        first = int(self.numbers(flags)[0])
        kind = first & 0xFF
        if first & _COMPLEX:
            raise ValueError("a variable holds complex numbers")
        dimensions = tuple(int(size) for size in self.numbers(sizes))
        if len(dimensions) < 2 or min(dimensions) < 0:
            raise ValueError(f"a variable has the dimensions {dimensions}")
        return _Variable(kind, dimensions, bytes(name.content).decode("latin-1"), values)

    def value(self, variable: _Variable, depth: int = 0) -> Any:
        """Return a variable as an array, a CSC matrix, or an array of objects for cells."""
        if variable.kind in _NUMERIC:
            return self._array(self.numbers(_only(variable.values)), variable.dimensions)
        if variable.kind == _SPARSE:
            return self._sparse(variable)
        if variable.kind == _CHAR:
            return self._text(_only(variable.values), variable.dimensions)
        if variable.kind == _CELL and depth < _DEEPEST:
            cells = np.empty(len(variable.values), dtype=object)
            for i, element in enumerate(variable.values):
                cells[i] = self.value(self.variable(element), depth + 1)
            return self._array(cells, variable.dimensions)
        raise ValueError(f"variable {variable.name!r} is neither numbers nor text")

    def _array(self, values: np.ndarray, dimensions: tuple[int, ...]) -> np.ndarray:
        if math.prod(dimensions) != values.size:
            raise ValueError(f"{values.size} values do not make {dimensions}")
        return values.reshape(dimensions, order="F")

    def _sparse(self, variable: _Variable) -> sparse.csc_matrix:
        rows, starts, data = (self.numbers(element) for element in variable.values)
        if starts.size == 0 or starts.dtype.kind == "f" or rows.dtype.kind == "f":
            raise ValueError("a sparse matrix has no places for its values")
        count = int(starts[-1])  # MATLAB may leave room for more
        if not 0 <= count <= min(rows.size, data.size):
            raise ValueError(f"a sparse matrix announces {count} values and has {data.size}")
        parts = (data[:count], rows[:count], starts)
        return sparse.csc_matrix(parts, shape=variable.dimensions)

    def _text(self, element: _Element, dimensions: tuple[int, ...]) -> np.ndarray:
        """Return one text for each row of characters, without the blanks that fill it up."""
        encoding = _TEXTS.get(element.kind)
        if encoding is None:
            raise ValueError(f"an element of type {element.kind} stands for text")
        if encoding in ("utf-16", "utf-32"):
            encoding += "-le" if self._order == "<" else "-be"
        text = bytes(element.content).decode(encoding)
        n_rows, length = dimensions[0], math.prod(dimensions[1:])
        if n_rows <= 1 or n_rows * length != len(text):
            return np.array([text])
        return np.array([text[row::n_rows].rstrip() for row in range(n_rows)])


def _only(elements: list[_Element]) -> _Element:
    if len(elements) != 1:
        raise ValueError(f"a variable has {len(elements)} lists of values")
    return elements[0]
