"""What a figure was measured on: processor, threads, versions, and how busy the machine was."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console

from shortlist._machine import processor_name

# What makes each library do without AVX-512. A processor's name alone does not: numba keeps the
# features of the one that it runs on.
NARROW = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
}
PACKAGES = ("shortlist", "numpy", "numba", "scikit-learn", "torch", "cyanure")


def output() -> Console:
    """Standard output; where it is no terminal, wide enough that no table is cut."""
    console = Console()
    return console if console.is_terminal else Console(width=110)


def describe_machine() -> dict[str, str]:
    """Facts for the head of a table and for its JSON file."""
    facts = {
        "processor": f"{processor_name()}, {os.cpu_count()} logical",
        "AVX-512": _wide_units(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "BLAS threads": ", ".join(sorted(_blas_threads())) or "unknown",
        "load": load(),
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _wide_units() -> str:
    from llvmlite.binding import get_host_cpu_features

    if not get_host_cpu_features().get("avx512f"):
        return "none"
    return "off" if all(os.environ.get(name) == value for name, value in NARROW.items()) else "on"


def load() -> str:
    """Processes that wanted to run in the last minute, this one included; 1 is an idle machine."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _blas_threads() -> set[str]:
    from threadpoolctl import threadpool_info

    return {f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()}
