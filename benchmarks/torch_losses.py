"""Forward and backward time of the torch losses, as multiples of F.cross_entropy's.

    python -m benchmarks.torch_losses [--rows 256] [--classes 1000] [--k 5] [--threads 1]

All losses are timed in one process, in turn, over several batches of random scores, each after an
untimed pass of its own, so that none pays for what its neighbour left in the caches. Each one's
fastest round counts: other work on the machine slows all of them down, at different moments. The
median tells how noisy the machine was.
The packages difftopk and pytopk take part if they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from shortlist.torch import functional as F

Loss = Callable[[Tensor, Tensor], Tensor]

# What is asked for: multiples of cross_entropy at 256 x 1000 in single precision.
TARGETS = {"smooth hinge": 3.0, "truncated entropy": 3.0, "entropy": 6.0}


def own_losses(k: int) -> dict[str, Loss]:
    """Return the losses of Shortlist by name."""
    losses: dict[str, Loss] = {
        "smooth hinge alpha": lambda f, y: F.topk_hinge_loss(f, y, k),
        "smooth hinge beta": lambda f, y: F.topk_hinge_loss(f, y, k, 1.0, "beta"),
        "hinge alpha": lambda f, y: F.topk_hinge_loss(f, y, k, 0.0),
        "entropy alpha": lambda f, y: F.topk_entropy_loss(f, y, k),
        "entropy beta": lambda f, y: F.topk_entropy_loss(f, y, k, "beta"),
        "truncated entropy": lambda f, y: F.truncated_topk_entropy_loss(f, y, k),
        "one-vs-all smooth hinge": F.ova_hinge_loss,
        "one-vs-all logistic": F.ova_logistic_loss,
    }
    return losses


def rival_losses(k: int, n_classes: int) -> dict[str, Loss]:
    """Return what other packages offer for the same purpose, so far as they are installed."""
    rivals: dict[str, Loss] = {}
    # difftopk reports on its own optional parts when it is imported.
    with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
        import difftopk

        rivals["difftopk SmoothTopKLoss"] = difftopk.SmoothTopKLoss(n_classes, k)
        rivals["difftopk TopKCrossEntropyLoss"] = difftopk.TopKCrossEntropyLoss(
            "odd_even", 1.0, [1 / k] * k, n_classes, m=min(16, n_classes - 1), distribution="cauchy"
        )
    with contextlib.suppress(ImportError):
        import pytopk

        rivals["pytopk BalNoisedTopK"] = pytopk.BalNoisedTopK(k, epsilon=1.0)
    return rivals


def measure(
    losses: dict[str, Loss], batches: list[tuple[Tensor, Tensor]], repeats: int
) -> dict[str, list[float]]:
    """Return each loss's seconds a batch, one number for each round."""
    rounds: dict[str, list[float]] = {name: [] for name in losses}
    for _ in range(repeats):
        for name, loss in losses.items():
            _pass(loss, batches)
            start = time.perf_counter()
            _pass(loss, batches)
            rounds[name].append((time.perf_counter() - start) / len(batches))
    return rounds


def _pass(loss: Loss, batches: list[tuple[Tensor, Tensor]]) -> None:
    for scores, target in batches:
        scores.grad = None
        loss(scores, target).backward()


def make_batches(rows: int, classes: int, scale: float, count: int) -> list[tuple[Tensor, Tensor]]:
    """Return batches of normal scores and uniform labels."""
    generator = torch.Generator().manual_seed(0)
    return [
        (
            (torch.randn(rows, classes, generator=generator) * scale).requires_grad_(),
            torch.randint(classes, (rows,), generator=generator),
        )
        for _ in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="standard deviation of scores")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    # As in a training process, where large blocks come and go: glibc then keeps freed memory
    # instead of returning it to the system, and no loss is charged for page faults.
    torch.zeros(7_500_000)
    batches = make_batches(options.rows, options.classes, options.scale, options.batches)
    losses = {
        "cross_entropy": torch.nn.functional.cross_entropy,
        **own_losses(options.k),
        **rival_losses(options.k, options.classes),
    }
    rounds = measure(losses, batches, options.repeats)
    yardstick = min(rounds["cross_entropy"])

    table = Table(
        title=f"{options.rows} x {options.classes}, k = {options.k}, scores of deviation "
        f"{options.scale:g}, {options.threads} thread(s)"
    )
    for column in ("loss", "microseconds", "median", "x cross_entropy", "asked for"):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for name, seconds in rounds.items():
        target = next((f"<= {t:g}" for start, t in TARGETS.items() if name.startswith(start)), "")
        best, usual = min(seconds), statistics.median(seconds)
        table.add_row(
            name, f"{1e6 * best:.0f}", f"{1e6 * usual:.0f}", f"{best / yardstick:.2f}", target
        )
    Console().print(table)


if __name__ == "__main__":
    main()
