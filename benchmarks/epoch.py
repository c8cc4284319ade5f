"""What an SDCA epoch costs against the two matrix products it cannot avoid.

    python -m benchmarks epoch [--data FILE.npz]

Embeddings made up for the purpose, float32, at C = 10; X W and X'G over all examples at once, on
BLAS's own threads, and the epoch itself, alternately in one process. The first epochs, which start
from zero, are left out. Also Letter (d = 16, m = 26), whose epoch has no products to compare with.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from benchmarks.data import load, make_embeddings
from benchmarks.machine import describe_machine, output
from rich.table import Table

from shortlist import losses
from shortlist.datasets import load_letter
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, open_storage
from shortlist.solvers.threads import crew_for, one_blas_thread

EPOCHS = 7
LEFT_OUT = 2
LOSSES = [("entropy", 1), ("smooth_hinge", 1), ("smooth_hinge", 5)]


@dataclass(frozen=True)
class EpochTime:
    """Seconds of an epoch and of its two products, the best of several."""

    what: str
    products: float
    epoch: float

    @property
    def ratio(self) -> float:
        return self.epoch / self.products


def measure(X: np.ndarray, y: np.ndarray, name: str, k: int, C: float = 10.0) -> EpochTime:
    """Epochs of one loss and the products, in turn."""
    n, d = X.shape
    m = int(y.max()) + 1
    loss = losses.get(name, k=k)
    problem = Problem(open_storage(X, 0.0), Costs(y, np.full(n, C)), m, loss)
    state = problem.zero_state()
    random = np.random.default_rng(0)
    weights, gradients = np.zeros((d, m), X.dtype), np.zeros((n, m), X.dtype)
    products, epochs = [], []
    with crew_for(problem.storage.shared_work(m)) as crew:
        for _ in range(EPOCHS):
            began = time.perf_counter()
            X @ weights
            X.T @ gradients
            products.append(time.perf_counter() - began)
            order = random.permutation(n)
            with one_blas_thread():
                began = time.perf_counter()
                sum(problem.storage.epoch(loss, order, state, problem.costs, 8, crew))
                epochs.append(time.perf_counter() - began)
    what = f"{name} k={k}, {n} x {d} x {m}, {X.dtype}"
    return EpochTime(what, min(products), min(epochs[LEFT_OUT:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="measure on this file instead of the made-up embeddings")
    options = parser.parse_args()
    if options.data:
        data = load(options.data)
        sets = [(data.X, data.y)]
    else:
        sets = [make_embeddings(10_000, 2048, 1000), make_embeddings(15_000, 384, 150)]
    table = Table("epoch of", "products (s)", "epoch (s)", "ratio")
    for X, y in sets:
        for name, k in LOSSES:
            row = measure(X, np.asarray(y, np.int64), name, k)
            table.add_row(row.what, f"{row.products:.4f}", f"{row.epoch:.4f}", f"{row.ratio:.2f}")
    letter = load_letter()
    codes = np.unique(letter.y_train, return_inverse=True)[1].astype(np.int64)
    for dtype in (np.float32, np.float64):
        row = measure(letter.X_train.astype(dtype), codes, "entropy", 1, 1.0)
        table.add_row(row.what, "", f"{row.epoch:.4f}", "")
    out = output()
    out.print(table)
    out.print(", ".join(f"{name} {fact}" for name, fact in describe_machine().items()))


if __name__ == "__main__":
    main()
