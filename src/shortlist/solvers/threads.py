"""Threads for training: our own, each with BLAS on one thread.

BLAS threads meet at every product. On small products that costs more than it gains, and on a busy
machine a hundred times more. Threads of our own meet once for each block of examples, and a thread
that waits gives its core away.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from shortlist._jit import DISABLED

# More threads would wait for memory.
MAX_THREADS = 16
# Multiplications that are worth another thread: some tens of microseconds of work.
MULTIPLICATIONS_PER_THREAD = 1e6


class Crew:
    """A crew of ``size`` threads, the calling one included; a context manager."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Crew":
        if self.size > 1:
            self._pool = ThreadPoolExecutor(self.size - 1, "shortlist")
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def run(self, work: Callable[..., Any], arguments: list[tuple]) -> list[Any]:
        """``work(*a)`` for all arguments, the first in this thread; results in that order."""
        if self._pool is None or len(arguments) == 1:
            return [work(*a) for a in arguments]
        others = [self._pool.submit(work, *a) for a in arguments[1:]]
        first = work(*arguments[0])
        return [first, *(other.result() for other in others)]

    @property
    def awake(self) -> int:
        """How many threads can run at the same time now: one outside of the context."""
        return 1 if self._pool is None else self.size

    def together(self, threads: int, work: Callable[[int], Any]) -> list[Any]:
        """``work(thread)`` in so many threads at once, at most ``awake``: they may meet."""
        return self.run(work, [(thread,) for thread in range(threads)])

    def assisted(self, lead: Callable[[], Any], assistants: Sequence[Callable[[], Any]]) -> Any:
        """``lead()`` while the assistants run in the other threads."""
        if not assistants:
            return lead()
        assert self._pool is not None
        others = [self._pool.submit(assistant) for assistant in assistants]
        found = lead()
        for other in others:
            other.result()
        return found


def crew_for(multiplications: float) -> Crew:
    """A crew for work that comes in pieces of so many multiplications."""
    if DISABLED:
        return Crew(1)
    return Crew(max(1, min(threads_allowed(), int(multiplications / MULTIPLICATIONS_PER_THREAD))))


def threads_allowed() -> int:
    """The cores this process may use, or fewer if the user or a pool of workers says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    most = min(MAX_THREADS, cores or 1)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        limit = os.environ.get(name, "")
        if limit.isdigit() and int(limit) > 0:
            most = min(most, int(limit))
    return max(1, min(most, _blas_limit()))


@cache
def _controller() -> Any:
    # A controller knows the libraries that are loaded when it is made: kernels use SciPy's BLAS.
    import scipy.linalg.cython_blas
    from threadpoolctl import ThreadpoolController

    assert scipy.linalg.cython_blas
    return ThreadpoolController().select(user_api="blas")


def _blas_limit() -> int:
    """The threads that BLAS may use; our own limit of one thread does not count."""
    if _ONE_THREAD.limit_before is not None:
        return _ONE_THREAD.limit_before
    found = [library["num_threads"] for library in _controller().info()]
    return max(found, default=MAX_THREADS)


def _set_threads(library: Any, count: int) -> None:
    """Set the threads of a BLAS whatever Python thread asks.

    threadpoolctl lets one thread of the process do so and ignores the others without a word; its
    inner function does not.
    """
    setter = getattr(library, "_real_set_num_threads", library.set_num_threads)
    setter(count)


class _OneBlasThread:
    """Limits BLAS to one thread while any caller is inside.

    The limit is the process's. Trainings in several threads enter and leave in any order: the
    first sets it and the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[tuple[Any, int]] = []
        self.limit_before: int | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self.limit_before = _blas_limit()
                libraries = _controller().lib_controllers
                self._before = [(each, each.get_num_threads()) for each in libraries]
                for library in libraries:
                    _set_threads(library, 1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, count in self._before:
                    _set_threads(library, count)
                self.limit_before = None


_ONE_THREAD = _OneBlasThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, in this process, inside the context."""
    with _ONE_THREAD:
        yield
