"""Signals that are handled for the time of a context."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

#: From schedulers, ``timeout`` and lost connections. Windows has no SIGHUP.
ENDING = ("SIGTERM", "SIGHUP")


@contextmanager
def handled(
    handler: Callable[[int, Any], Any],
    names: Sequence[str] = ENDING,
    instead_of: Sequence[Any] = (signal.SIG_DFL,),
) -> Iterator[None]:
    """Call ``handler(number, frame)`` for these signals within the body.

    Handlers other than those of ``instead_of`` stay as they are: a signal that is ignored, as
    SIGHUP under nohup, is still ignored. Only the main thread may set handlers; in others nothing
    changes.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        found = {number: signal.getsignal(number) for number in numbers}
        before = {number: one for number, one in found.items() if one in instead_of}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


def leave(number: int, frame: Any) -> None:
    """A handler that raises SystemExit, so that unfinished files and processes are seen to."""
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise SystemExit(128 + number)


class _Interrupted(BaseException):
    """Ctrl-C, in a form that no code takes for a wish to end well with what there is."""


@contextmanager
def ctrl_c_not_swallowed() -> Iterator[None]:
    """Ctrl-C ends the body at once, or at its end at the latest if it is caught there."""
    # A job in the background ignores Ctrl-C. Other signals that end it come to this handler too.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    caught = False

    def note(number: int, frame: Any) -> None:
        nonlocal caught
        if number == signal.SIGINT and ignored:
            return
        caught = True
        raise _Interrupted

    usual = (signal.default_int_handler, signal.SIG_IGN)
    with suppress(_Interrupted), handled(note, ["SIGINT"], instead_of=usual):
        yield
    if caught:
        raise KeyboardInterrupt
