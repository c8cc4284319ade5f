"""ImageNet-21k on 8, 32 and 128 machines, by simulation.

The rounds are real: the workers' own code, as many workers as machines, all in this process, on a
problem that is small enough for that. What they would take on machines of their own is computed
from the model of :class:`Machine`. ``docs/scale.md`` has the table and the assumptions.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.one_process import OneProcess
from benchmarks.scale import clusters

MACHINES = (8, 32, 128)
# Rounds in an epoch that are tried; the quickest is shown.
ROUNDS_PER_EPOCH = (4, 16)
# The problem that rounds are counted on: about as many examples a class as ImageNet-21k has, and
# enough features that training takes the same way.
SMALL = (24_000, 400, 40)
# The problem that time is computed for: examples, features, classes.
LARGE = (14_000_000, 1024, 21_841)
# Nonzero duals of an example that hinges keep, in the mean, and bytes of one with its class.
HINGE_DUALS, HINGE_DUAL_BYTES = 50, 1.25 * 6
# What visits on the support of all examples cost, in epochs: a number there costs as much as eight
# in the products of an epoch.
SUPPORT_SHARE = 8 * HINGE_DUALS / LARGE[2]
# Bytes of a number.
NUMBER = 4


@dataclass(frozen=True)
class Machine:
    """What is assumed of each machine and of the network between them.

    ``flops`` are multiplications and additions a second in products of float32 matrices;
    ``visits`` is how much longer an epoch takes than its two products; ``jitter`` is the standard
    deviation of the logarithm of what a worker takes, by which the slowest is waited for.
    """

    flops: float = 2e12
    visits: float = 2.0
    bytes_per_second: float = 25e9 / 8
    latency: float = 2e-3
    memory: float = 64e9
    jitter: float = 0.1

    def pass_seconds(self, rows: float) -> float:
        """Two products of so many rows with W."""
        return 4.0 * rows * (LARGE[1] + 1) * LARGE[2] / self.flops

    def message_seconds(self, machines: int) -> float:
        """W to all machines and one sum back, both along a tree."""
        steps = math.ceil(math.log2(machines))
        return 2 * steps * (weights_bytes() / self.bytes_per_second + self.latency)


def weights_bytes() -> float:
    return NUMBER * (LARGE[1] + 1) * LARGE[2]


@dataclass(frozen=True)
class Counted:
    """The epochs of a fit, and how often it called each method of its workers."""

    epochs: float
    gap: float
    calls: Counter[str]

    @property
    def rounds(self) -> int:
        """Messages with changes of W: those of epochs, and of visits on the support."""
        return self.calls["epoch"] + self.calls["polish"]


def count(loss: str, machines: int, rounds: int, duals: bool = True) -> Counted:
    """Train the small problem with so many workers in this process."""
    from shortlist import TopKClassifier
    from shortlist.distributed.storage import RemoteRows

    class Rows(RemoteRows):
        def open_storage(self, *options: Any) -> Any:
            storage = super().open_storage(*options)
            storage.keeps_duals = storage.keeps_duals and duals
            return storage

    X, y = clusters(*SMALL)
    parts = np.array_split(np.arange(len(y)), machines)
    rows_per_round = math.ceil(len(parts[0]) / rounds)
    group = OneProcess([X[part] for part in parts], rows_per_round)
    k = 5 if loss == "smooth_hinge" else 1
    model = TopKClassifier(loss, k=k, random_state=0).fit(Rows(group, None), y)
    return Counted(model.result_.epochs, model.result_.relative_gap, group.calls)


def seconds(
    counted: Counted, machines: int, per_epoch: int, machine: Machine
) -> tuple[float, float]:
    """Time on machines of their own, all in all and in messages."""
    rows = LARGE[0] / machines
    evaluations = counted.calls["loss_gradient"]
    # A certificate is one product, and so is a rebuild; in double each counts as two.
    looks = 0.5 * counted.calls["certify"] + counted.calls["rebuild"]
    epochs = counted.calls["epoch"] / per_epoch + SUPPORT_SHARE * counted.calls["polish"]
    work = machine.visits * epochs + evaluations + looks
    random = np.random.default_rng(0)
    calls = max(
        1, counted.rounds + evaluations + counted.calls["certify"] + counted.calls["rebuild"]
    )
    slowest = np.exp(machine.jitter * random.standard_normal((calls, machines))).max(axis=1).mean()
    messages = calls * machine.message_seconds(machines)
    return work * machine.pass_seconds(rows) * float(slowest) + messages, messages


def memory(loss: str, duals: bool, machines: int) -> tuple[float, float]:
    """Bytes on each machine: those of duals, and all."""
    n, d, m = LARGE
    rows = n / machines
    each = (HINGE_DUALS * HINGE_DUAL_BYTES if loss == "smooth_hinge" else m * NUMBER) * duals
    features, weights = rows * d * NUMBER, 6 * weights_bytes()
    return rows * each, rows * each + features + weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="*", default=MACHINES)
    options = parser.parse_args()
    machine = Machine()
    print(f"{machine}\n")
    print(
        "| loss | machines | rounds an epoch | epochs | rounds | hours | of it messages | sent and "
        "got by each, GB | duals on each, GB | memory on each, GB |"
    )
    print("| --- |" + " --- |" * 9)
    for loss, duals in (("softmax", True), ("softmax", False), ("smooth_hinge", True)):
        for machines in options.machines:
            tried = []
            for rounds in ROUNDS_PER_EPOCH if duals else (1,):
                found = count(loss, machines, rounds, duals)
                tried.append((*seconds(found, machines, rounds, machine), rounds, found))
            total, messages, rounds, found = min(tried, key=lambda each: each[0])
            of_duals, all_bytes = memory(loss, duals, machines)
            name = loss + ("" if duals else ", no duals")
            sums = found.rounds + found.calls["loss_gradient"]
            room = "" if all_bytes <= machine.memory else " (no room)"
            print(
                f"| {name} | {machines} | {rounds if duals else ''} | "
                f"{found.epochs:.1f} | {sums} | "
                f"{total / 3600:.2f} | {messages / total:.0%} | "
                f"{2 * sums * weights_bytes() / 1e9:.0f} | {of_duals / 1e9:.1f} | "
                f"{all_bytes / 1e9:.0f}{room} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
