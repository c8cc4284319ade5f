"""A clock that stands still while numba compiles, so that seconds of training mean training."""

from shortlist._compiling import CompileTimer, compilation

__all__ = ["CompileTimer", "working_time"]


def working_time() -> float:
    """Seconds on a clock like ``time.perf_counter``, stopped while kernels compile."""
    now, compiling = compilation.read()
    return now - compiling
