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
from pathlib import Path
from typing import Any, Literal, get_args

from shortlist._parameters import is_integer
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError

# What searches and paths over C share out: see ``distributed.search``.
Split = Literal["auto", "fits", "rows"]

# Examples that a worker visits in a round, that is, between two messages. With fewer, workers know
# changes of W sooner, and training takes fewer epochs: softmax at C = 1 on 4 workers takes 28 with
# one round an epoch, 12 with 4 and 7 with 16. But a message costs as much as some hundred visits.
ROWS_PER_ROUND = 1024
# Rounds in an epoch, at most: for each worker, for each worker if the loss is a hinge, and in all.
# The more workers change W at the same time, the sooner they must know of it. Hinges need more
# rounds: two workers take 10 epochs at C = 10 with 8 rounds an epoch, and 6 with 29.
MAX_ROUNDS_PER_WORKER, MAX_ROUNDS_PER_WORKER_OF_HINGES, MAX_ROUNDS = 4, 16, 32
# After an epoch come rounds of cheap visits on the support: so many for each round of the epoch,
# and at most so many. The smooth hinge at C = 10 on two workers takes 16 epochs with one for each,
# and 10 with three.
SUPPORT_ROUNDS, MAX_SUPPORT_ROUNDS = 3, 24
# Workers of one machine add up changes among themselves. Each visits so many examples, a block,
# between two sums. After every eighth block they add up all of W, which takes as long as some fifty
# visits. After the others they add up the intercept alone. Measured with softmax at C = 1 on
# 60,000 x 768 embeddings of 200 classes, two workers, six seeds: a gap of 0.79e-3 to 0.98e-3 after
# two epochs.
ROWS_PER_ROUND_ON_BOARD = 128
SUMS_PER_WHOLE_ONE = 8
# On one machine a pass over the support has at most so many parts, with a sum after each. The
# smooth hinge at C = 10 on two workers takes 5 epochs with one part and 4 with four. With 16 it
# ends at a seventh of the gap.
MAX_SUPPORT_PARTS = 16
# Examples of a worker in such a part. There are fewer if the last pass moved fewer.
ROWS_PER_SUPPORT_PART = 128
SUPPORT_SUMS_PER_WHOLE_ONE = 4
# Characters in the path of the folder for temporary files, at most. Ray keeps sockets below it. The
# system limits their paths to 107 characters, of which Ray's part and ours take up to 88.
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
            if not is_integer(value) or value < 1:
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
