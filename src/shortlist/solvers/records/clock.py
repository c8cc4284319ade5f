"""A clock that stands still while numba compiles, so that seconds of training mean training."""

import threading
import time
from typing import Any

from numba.core import event


class CompileTimer(event.Listener):
    """Counts the seconds in which some thread of the process compiles a kernel.

    Kernels from the cache on disk do not count: they load in no time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0  # compiling a kernel compiles those it calls
        self._begun = 0.0
        self._spent = 0.0

    def on_start(self, _: Any) -> None:
        with self._lock:
            if self._depth == 0:
                self._begun = time.perf_counter()
            self._depth += 1

    def on_end(self, _: Any) -> None:
        with self._lock:
            if self._depth == 1:
                self._spent += time.perf_counter() - self._begun
            # An interrupt can come between the two halves of a beginning.
            self._depth = max(self._depth - 1, 0)

    @property
    def seconds(self) -> float:
        """Seconds of compilation so far."""
        return self.read()[1]

    def read(self) -> tuple[float, float]:
        """The time now and the seconds of compilation so far, seen at the same moment."""
        with self._lock:
            now = time.perf_counter()
            return now, self._spent + (now - self._begun if self._depth else 0.0)


_compilation = CompileTimer()
# For good: taking a listener out while another thread compiles could lose it an event, and
# one that hears of nothing but compilations costs nothing.
event.register("numba:compile", _compilation)


def working_time() -> float:
    """Seconds on a clock like ``time.perf_counter``, stopped while kernels compile."""
    now, compiling = _compilation.read()
    return now - compiling
