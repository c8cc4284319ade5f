"""Loaded once, into the process whose copies :func:`tests.processes.run` takes."""

from numba.core.registry import cpu_target

# What numba otherwise does before it compiles its first function.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
