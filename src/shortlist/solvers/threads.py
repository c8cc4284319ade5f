"""How many threads matrix products and sums over examples may use."""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

# Below this many operations a product is done before its threads have met, and when other
# processes are busy their waiting for each other can cost a hundred times the work.
WORTH_THREADS = 1e8


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneThread:
    """BLAS on one thread while anybody is inside.

    The limit is the process's. Trainings in several threads enter and leave in any order: the
    first sets it and the last one lifts it, lest somebody restores what another has set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()


_ONE_THREAD = _OneThread()


def threads_for(operations: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread if each of its products is small."""
    return nullcontext() if operations >= WORTH_THREADS else _ONE_THREAD


def threads_allowed(most: int) -> int:
    """Threads for our own kernels: at most ``most``, and what the user or a worker pool allows."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(allowed) if allowed.isdigit() and int(allowed) > 0 else most
    return max(1, min(most, limit, os.cpu_count() or 1))
