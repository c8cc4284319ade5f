"""How much memory this process may still take.

Three things bound it: what the machine has free, the control group the process runs in (containers
and batch systems), and the limit on its address space (``ulimit -v``). The smallest counts.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Version 1 of control groups writes a number near 2**63 where nothing is limited.
_NO_LIMIT = 2**60
_GROUPS = Path("/sys/fs/cgroup")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_bytes(text: str) -> int | None:
    """Return the number that "16G", "16 GB" or "16GiB" stands for; None if it is none."""
    pattern = r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*"
    match = re.fullmatch(pattern, text, flags=re.IGNORECASE)
    return None if match is None else int(float(match[1]) * _UNITS[match[2].upper()])


def resident_bytes() -> int:
    """Memory that this process holds now: its resident set; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def release_pages(array: Any) -> None:
    """Give back the memory that a mapped file takes; what was written to it stays in the file."""
    owner = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = getattr(owner, "_mmap", None) or getattr(owner, "base", None)
    if owner is not None and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def available_bytes() -> int | None:
    """Memory that can be had without swapping, or None where the system does not tell."""
    bounds = [_machine_free(), _address_space_free(), *_group_limits()]
    known = [bound for bound in bounds if bound is not None]
    return max(min(known), 0) if known else None


def _machine_free() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def address_space_limit() -> int | None:
    """The limit on this process's address space (``ulimit -v``), if there is one."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError, ValueError, AttributeError):
        return None
    return None if limit == resource.RLIM_INFINITY else int(limit)


def _address_space_free() -> int | None:
    """The address space that the limit leaves to this process; None without a limit."""
    limit = address_space_limit()
    if limit is None:
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        return limit - pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _group_limits() -> Iterator[int | None]:
    """The memory that each control group above this process leaves. A parent's can be the least."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":  # version 2
            root, names = _GROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root = _GROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        folder = root / path.strip("/")
        # In a container the path is often the host's and does not exist here: the root does.
        for group in (folder, *folder.parents):
            yield _left_in_group(group, *names)
            if group == root:
                break


def _left_in_group(group: Path, limit_name: str, usage_name: str) -> int | None:
    try:
        limit = int((group / limit_name).read_text(encoding="ascii"))
        used = int((group / usage_name).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return None if limit >= _NO_LIMIT else limit - used
