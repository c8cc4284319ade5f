"""A limit on the address space (``ulimit -v``), looked at before libraries fail in misleading ways.

BLAS reserves address space for each of its threads when it is loaded. Where there is too little, it
hangs or aborts, and other libraries then report that they cannot be found.
"""

import os

from shortlist._memory import address_space_limit

# Address space that training takes at its peak. Measured with Letter on Linux, Python 3.11: 474 MB
# with one thread, 656 MB with two.
_MB = 1_000_000
_BASE_BYTES, _BYTES_PER_THREAD = 300 * _MB, 185 * _MB
_THREAD_COUNT_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def fit_into_address_space() -> None:
    """Let BLAS start as many threads as there is room for; MemoryError if not even one fits."""
    limit = address_space_limit()
    if limit is None:
        return
    threads = (limit - _BASE_BYTES) // _BYTES_PER_THREAD
    if threads < 1:
        raise MemoryError(
            f"the limit on address space is {limit // _MB} MB (ulimit -v), and Shortlist needs "
            f"{(_BASE_BYTES + _BYTES_PER_THREAD) // _MB} MB to start"
        )
    if threads < (os.cpu_count() or 1):
        for name in _THREAD_COUNT_VARIABLES:
            os.environ.setdefault(name, str(threads))
