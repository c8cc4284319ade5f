"""How long kernels take to compile, and a word to the user while they do."""

import contextlib
import gc
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from shortlist._jit_cache import cache_place

try:
    from numba.core.event import Listener, install_listener, register
except Exception:
    # This numba does not tell of compilations in the way known here: they are not heard of.
    Listener = object

    def register(kind: str, listener: Any) -> None:
        pass

    def install_listener(kind: str, listener: Any) -> Any:
        return contextlib.nullcontext()


# Seconds of compilation before the user is told. Less than this needs no explanation.
SECONDS_BEFORE_TELLING = 1.0


class CompileTimer(Listener):
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
            # An interrupt can come between the statements that mark a beginning.
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


class CompileNotice(CompileTimer):
    """Tells the user once, after some seconds of compilation."""

    def __init__(
        self, tell: Callable[[str], None], patience: float = SECONDS_BEFORE_TELLING
    ) -> None:
        super().__init__()
        self._tell = tell
        self._patience = patience
        self.pending = True

    def on_start(self, which: Any) -> None:
        super().on_start(which)
        if self.pending and self.seconds >= self._patience:
            self.pending = False
            self._tell(notice_text())


def notice_text() -> str:
    """What is going on, how long it takes, and whether it will happen again."""
    place = cache_place()
    # CPU of a first fit with an empty cache, two cores, 18 November 2026: 3.0 s for the default
    # classifier on a quiet machine; on a busy one 4.5 s for it, 12 s for the smooth top-5 hinge
    # and 14 s for the top-5 hinge with a kernel.
    what = "compiling for this machine, which takes 3 to 15 s"
    if place.obstacle:
        return f"{what}; not kept for the next time: {place.obstacle}"
    return f"{what}; kept for the next time in {place.folder}"


def _tell_terminal(text: str) -> None:
    """Write a line to standard error, if a person is there to read it."""
    watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    tested = "PYTEST_CURRENT_TEST" in os.environ
    if watched and not tested and multiprocessing.parent_process() is None:
        sys.stderr.write(f"shortlist: {text}\n")
        sys.stderr.flush()


def _tell_safely(text: str) -> None:
    # A standard error that is closed or missing must not end a compilation.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        _tell_terminal(text)


# Listeners stay for good: taking one out while another thread compiles could lose it an event,
# and one that hears of nothing but compilations costs nothing.
compilation = CompileTimer()
register("numba:compile", compilation)
_notice = CompileNotice(_tell_safely)
register("numba:compile", _notice)


@contextlib.contextmanager
def compilation_told(tell: Callable[[str], None]) -> Iterator[CompileTimer]:
    """Tell of compilation at once and in this way only; the timer's seconds grow as it goes on."""
    pending, _notice.pending = _notice.pending, False
    notice = CompileNotice(tell, patience=0.0)
    try:
        with install_listener("numba:compile", notice):
            yield notice
    finally:
        _notice.pending = pending and notice.pending


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Do not look for garbage among the objects that a compilation makes, and mostly keeps.

    Looking takes a ninth of the time. Without it a fit holds 4 MB more at its peak.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
