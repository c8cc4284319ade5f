"""MATLAB files up to version 7.2, read as untrusted data."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import Any

from ..errors import DataError
from .files import parser_errors
from .mat5 import read_mat5

_MESSAGE = "is not a complete MATLAB file"


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
