"""The errors of files and of parameters. Each is a ValueError, told in one line."""

from __future__ import annotations

import os
from collections.abc import Callable

from ._text import Setting, Words, escape_controls, worded


class Worded(Exception):
    """An error or warning whose message names parameters: in ``str`` as Python does."""

    def __init__(self, words: Words) -> None:
        self._words = words
        super().__init__(self.worded())

    def worded(self, name: Callable[[Setting], str] = str) -> str:
        """Return the message in one line, with each parameter as ``name`` puts it."""
        return escape_controls(" ".join(worded(self._words, name).split()))


class WordedError(Worded, ValueError):
    """A ValueError whose message names parameters."""


class WordedMemoryError(Worded, MemoryError):
    """A MemoryError whose message names parameters."""


class ParameterError(WordedError):
    """A parameter that cannot be what it is.

    Parameters
    ----------
    parameter : str
        Its name, also an attribute.
    problem : str or Phrase
        What is wrong, to stand behind the name: "must be positive; got -1".
    """

    def __init__(self, parameter: str, problem: Words) -> None:
        self.parameter, self._problem = parameter, problem
        super().__init__(Setting(parameter) + " " + problem)

    def __reduce__(self) -> tuple[type, tuple[str, Words]]:
        return type(self), (self.parameter, self._problem)


class DataError(WordedError):
    """Data that cannot be used, told in one line that names the file and the place.

    Parameters
    ----------
    message : str or Phrase
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
        message: Words,
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
        super().__init__(f"{', '.join(place)}: " + message if place else message)


class ModelFileError(DataError):
    """A model file that cannot be used, told in one line that names the file."""


class CheckpointError(DataError):
    """A checkpoint that cannot be used for a fit, told in one line that names the file."""
