"""Reaching a Ray cluster, or starting one on this machine for the time of a fit."""

from __future__ import annotations

import math
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError

# What searches and paths over C share out: see ``distributed.search``.
Split = Literal["auto", "fits", "rows"]

# Examples that a worker visits between two messages. Fewer: changes of W are known sooner, and
# training takes fewer epochs (softmax at C = 1, 4 workers: 28 with one round an epoch, 12 with 4, 7
# with 16). More: the message, which costs as much as some hundred visits, weighs less.
ROWS_PER_ROUND = 1024
# Rounds in an epoch for each worker there is, and in all, however large the shards are: the more
# workers change W at a time, the sooner they must know. Hinges need more: two workers take 10
# epochs at C = 10 with 8 rounds an epoch, and 6 with 29.
MAX_ROUNDS_PER_WORKER, MAX_ROUNDS_PER_WORKER_OF_HINGES, MAX_ROUNDS = 4, 16, 32
# Rounds of cheap visits on the support that may follow an epoch, for each of its own, and in all.
# Two workers, smooth hinge at C = 10: 16 epochs with one for each, 10 with three.
SUPPORT_ROUNDS, MAX_SUPPORT_ROUNDS = 3, 24
# Examples that a worker visits between two sums among the workers of one machine: a block of them.
# After every eighth round all of W is added up, which takes as long as some fifty visits; after the
# others the intercept alone. Softmax on 60,000 x 768 embeddings of 200 classes, C = 1, two workers:
# a gap of 0.79e-3 to 0.98e-3 after two epochs with six seeds.
ROWS_PER_ROUND_ON_BOARD = 128
SUMS_PER_WHOLE_ONE = 8
# Parts that a pass over the support is made in there, at most. Two workers, smooth hinge at C = 10:
# 5 epochs with one part, 4 with four, at a gap seven times as small with 16.
MAX_SUPPORT_PARTS = 16
# Examples of a worker in such a part, if the last pass moved as many.
ROWS_PER_SUPPORT_PART = 128
SUPPORT_SUMS_PER_WHOLE_ONE = 4
# Characters in the name of the folder for temporary files. Ray keeps sockets below it, whose names
# the system limits to 107 characters; Ray's part and ours take up to 88 of them.
MAX_FOLDER_CHARACTERS = 18
FOLDER_PREFIX = "ray-of-"
# Seconds for a cluster's first answer.
CONNECT_SECONDS = 10.0
# What workers print is not shown on the terminal of the process that trains.
QUIET = {"log_to_driver": False, "logging_level": "error"}

# Settings of the Ray that is started here: no idle processes, and normal priority for workers.
LOCAL_SETTINGS = {
    "enable_worker_prestart": False,
    "prestart_worker_first_driver": False,
    "worker_niceness": 0,
}


def require_ray() -> Any:
    """The package, or an error that says how to install it."""
    try:
        import ray
    except ImportError:
        raise ImportError(
            "training on a cluster needs Ray: install it with pip install 'shortlist[ray]'"
        ) from None
    return ray


@dataclass(frozen=True)
class Cluster:
    """Where to train, and how: see :func:`shortlist.distributed.fit`."""

    n_workers: int
    address: str | None = None
    cpus_per_worker: float = 1
    timeout: float = 300.0
    label: str | int = "auto"
    split: Split = "auto"
    rows_per_round: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_workers", "rows_per_round"):
            value = getattr(self, name)
            if name == "rows_per_round" and value is None:
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ParameterError(name, f"must be an integer, 1 or larger; got {value!r}")
        if self.split not in get_args(Split):
            raise ParameterError("split", f"must be 'auto', 'fits' or 'rows'; got {self.split!r}")


@contextmanager
def connected(cluster: Cluster) -> Iterator[None]:
    """Ray at the cluster's address within the context, with CPUs enough for the workers.

    Without an address: the cluster this process is connected to already, otherwise one on this
    machine that ends with the context and leaves nothing behind.
    """
    ray = require_ray()
    address, cpus = cluster.address, cluster.n_workers * cluster.cpus_per_worker
    if ray.is_initialized():
        _check_cpus(ray, cpus, "the cluster")
        yield
        return
    folder = None
    try:
        if address is None:
            folder = _temporary_folder()
            _start(ray, cpus, folder)
        else:
            _connect(ray, address)
        _check_cpus(ray, cpus, f"the cluster at {address}")
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder() -> str:
    """A new folder, named by this process; those of processes that were killed are removed."""
    short = len(tempfile.gettempdir()) <= MAX_FOLDER_CHARACTERS
    parent = Path(tempfile.gettempdir() if short else "/tmp")
    for old in parent.glob(f"{FOLDER_PREFIX}*"):
        process = old.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if process.isdigit() and not _is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=parent)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _start(ray: Any, cpus: float, folder: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    many = max(math.ceil(cpus), os.cpu_count() or 1)
    try:
        ray.init(
            address="local",
            num_cpus=many,
            _temp_dir=folder,
            include_dashboard=False,
            _system_config=LOCAL_SETTINGS,
            **QUIET,
        )
    except Exception as error:  # Ray waits half a minute for its processes, then raises just that
        if type(error) is not Exception:
            raise
        raise ConnectionError(
            f"Ray did not start on this machine, which may be busy: {_reason(error)}"
        ) from None


def _connect(ray: Any, address: str) -> None:
    try:
        _check_port(address)
        ray.init(address=address, **QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(f"there is no Ray cluster at {address!r}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else "no answer"


def _check_port(address: str) -> None:
    """Raise OSError if nobody listens there: Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def _check_cpus(ray: Any, cpus: float, name: str) -> None:
    there = ray.cluster_resources().get("CPU", 0.0)
    if there < cpus:
        found = f"{name} has {there:g} CPUs where the workers need {cpus:g}: use a smaller "
        raise WordedError(found + Setting("n_workers"))
