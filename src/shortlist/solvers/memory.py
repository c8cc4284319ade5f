"""Will it fit? Asked before training, answered with advice instead of a killed process.

Training holds, besides the data itself (which is not copied):

    duals     n * m * itemsize
    weights   2 * (d + 1) * m * itemsize + 8 * (d + 1) * m   (a rebuilt copy, made in double)
    the rest  about 24 n bytes and a few blocks of 64 MiB
"""

import os
from typing import Any

FIXED = 4 * (1 << 26)


def training_bytes(n: int, d: int, m: int, itemsize: int) -> int:
    """The formula above."""
    return n * m * itemsize + (2 * itemsize + 8) * (d + 1) * m + 24 * n + FIXED


def available_bytes() -> int | None:
    """Memory that can be had without swapping, or None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    free = int(line.split()[1]) * 1024
                    return min(free, _container_limit() or free)
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _container_limit() -> int | None:
    """What a control group leaves to this process, if one limits it."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            most = limit.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as now:
            used = int(now.read())
        return None if most == "max" else max(int(most) - used, 0)
    except (OSError, ValueError):
        return None


def check_memory(X: Any, n_classes: int) -> None:
    """Raise MemoryError, with advice, if training on X cannot fit."""
    n, d = X.shape
    itemsize = X.dtype.itemsize
    free = available_bytes()
    need = training_bytes(n, d, n_classes, itemsize)
    if free is None or need <= free:
        return
    advice = []
    if itemsize == 8:
        half = training_bytes(n, d, n_classes, 4)
        advice.append(f"float32 input would need {_gib(half)}")
    advice += ["fewer classes or examples", "several machines"]
    raise MemoryError(
        f"training on {n} examples, {d} features and {n_classes} classes needs about "
        f"{_gib(need)} besides the data (one number per example and class), and "
        f"{_gib(free)} is free. Options: {'; '.join(advice)}."
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
