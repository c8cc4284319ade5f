"""How many threads matrix products and sums over examples may use."""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

# Below this many operations a product is done before its threads have met, and when other
# processes are busy their waiting for each other can cost a hundred times the work.
WORTH_THREADS = 1e8


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def threads_for(operations: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread if each of its products is small."""
    if operations >= WORTH_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


def threads_allowed(most: int) -> int:
    """Threads for our own kernels: at most ``most``, and what the user or a worker pool allows."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(allowed) if allowed.isdigit() and int(allowed) > 0 else most
    return max(1, min(most, limit, os.cpu_count() or 1))
