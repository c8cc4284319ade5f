"""Standard streams whose readers may leave before the work is done."""

from __future__ import annotations

import errno
import os
from typing import Any, TextIO

#: The errors of writing to a pipe whose reader has left, or to a closed terminal.
_READER_GONE_ERRORS = (errno.EPIPE, errno.EIO)


class Unread:
    """Standard error whose reader may leave.

    ``shortlist train ... 2>&1 | head`` is not to lose its model when ``head`` has seen enough:
    what is said after that goes nowhere, and the work goes on.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._leave(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._leave(error)

    def _leave(self, error: OSError) -> None:
        if error.errno not in _READER_GONE_ERRORS:
            raise error
        abandon(self._stream)


def abandon(stream: TextIO) -> None:
    """Point a stream that nobody reads to nowhere: the interpreter flushes it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
