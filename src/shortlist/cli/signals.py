"""SIGTERM and SIGHUP, from schedulers, ``timeout`` and lost connections, end like Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_ENDING = ("SIGTERM", "SIGHUP")


@dataclass
class Received:
    """The signal that ended the command."""

    number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    @property
    def told(self) -> str:
        name = signal.Signals(self.number).name
        return "interrupted" if self.number == signal.SIGINT else f"interrupted by {name}"


@contextmanager
def ended_like_ctrl_c() -> Iterator[Received]:
    """Within the body these signals raise KeyboardInterrupt: what there is, is kept."""
    received = Received()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def interrupt(number: int, frame: Any) -> None:
        received.number = number
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if callable(on_ctrl_c):
            on_ctrl_c(number, frame)
        else:  # ignored, as a shell arranges for jobs in the background
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    # A signal that is ignored, as SIGHUP under nohup, stays so.
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield received
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
