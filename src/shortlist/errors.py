"""The errors of reading files. Each is a ValueError, told in one line that names the file."""

from __future__ import annotations

import os

from ._text import escape_controls


class DataError(ValueError):
    """Data that cannot be used, told in one line that names the file and the place.

    Parameters
    ----------
    message : str
        What is wrong, in the user's terms. Control characters in it are shown escaped.
    path : path-like or None
        The file at fault; ``"-"`` is shown as standard input.
    line : int or None
        The line at fault, counted from 1 (text formats).
    row : int or None
        The example at fault, counted from 1 (binary formats, which have no lines).
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        row: int | None = None,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.line = line
        self.row = row
        place = []
        if self.path is not None:
            place.append("standard input" if self.path == "-" else self.path)
        if line is not None:
            place.append(f"line {line}")
        if row is not None:
            place.append(f"row {row}")
        text = " ".join(message.split())
        super().__init__(escape_controls(f"{', '.join(place)}: {text}" if place else text))


class ModelFileError(DataError):
    """A model file that cannot be used, told in one line that names the file."""


class CheckpointError(DataError):
    """A checkpoint that cannot be used for a fit, told in one line that names the file."""
