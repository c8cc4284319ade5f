"""Reaching a Ray cluster, or starting one on this machine for the time of a fit."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def require_ray() -> Any:
    """The package, or an error that says how to install it."""
    try:
        import ray
    except ImportError:
        raise ImportError(
            "training on a cluster needs Ray: install it with pip install 'shortlist[ray]'"
        ) from None
    return ray


@contextmanager
def connected(address: str | None, cpus: float) -> Iterator[None]:
    """Ray at ``address`` within the context, with so many CPUs for workers.

    Without an address: the cluster this process is connected to already, otherwise one on this
    machine that ends with the context and leaves nothing behind.
    """
    ray = require_ray()
    if ray.is_initialized():
        _check_cpus(ray, cpus, "the cluster")
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    folder = None
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        folder = tempfile.mkdtemp(prefix="ray-")
        many = max(int(cpus + 0.999), os.cpu_count() or 1)
        options = {"address": "local", "num_cpus": many, "_temp_dir": folder}
        ray.init(**options, include_dashboard=False, **quiet)
    else:
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else "no answer"
            raise ConnectionError(f"there is no Ray cluster at {address!r}: {reason}") from None
    try:
        _check_cpus(ray, cpus, f"the cluster at {address}")
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _check_cpus(ray: Any, cpus: float, name: str) -> None:
    there = ray.cluster_resources().get("CPU", 0.0)
    if there < cpus:
        raise ValueError(
            f"{name} has {there:g} CPUs where the workers need {cpus:g}: use fewer workers"
        )
