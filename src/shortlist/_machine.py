"""The processor at hand, for reports and benchmarks to name."""

import platform
from pathlib import Path


def processor_name() -> str:
    """The processor's name as Linux knows it; elsewhere what Python knows of it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
