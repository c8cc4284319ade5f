"""What an SDCA epoch costs against the two matrix products it cannot avoid.

Random unit rows, n x d, m classes, float32: X_B W and X_B' dA for every block B of the epoch,
alone, and then the epoch itself, alternately in one process. Also Letter (d = 16, m = 26).
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from shortlist import losses
from shortlist.datasets import load_letter
from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import BLOCK, Costs, DenseRows, _add_product

REPEATS = 5


def products_alone(x: np.ndarray, order: np.ndarray, w: np.ndarray) -> float:
    """Seconds for the two products of every block, on rows already gathered."""
    blocks = [np.ascontiguousarray(x[order[i : i + BLOCK]]) for i in range(0, len(order), BLOCK)]
    scores = np.empty((BLOCK, w.shape[1]), w.dtype)
    began = time.perf_counter()
    for rows in blocks:
        _add_product(w[:-1], rows, np.dot(rows, w[:-1], out=scores[: len(rows)]))
    return time.perf_counter() - began


def measure(n: int, d: int, m: int, name: str, k: int = 1, epochs: int = REPEATS) -> dict:
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d), dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = random.integers(0, m, n)
    problem = Problem(DenseRows(x), Costs(y, np.full(n, 10.0)), m, losses.get(name, k=k))
    state = problem.zero_state()
    dummy = np.zeros_like(state.weights)
    plain, whole = [], []
    for _ in range(epochs + 1):
        order = random.permutation(n)
        dummy[:] = 1e-6
        plain.append(products_alone(x, order, dummy))
        began = time.perf_counter()
        sum(problem.rows.epoch(problem.loss.spec, order, state, problem.costs, 8))
        whole.append(time.perf_counter() - began)
    plain, whole = plain[1:], whole[1:]  # the first epoch compiles and starts from ties
    return {
        "what": f"{name} k={k}, {n} x {d}, {m} classes",
        "products": min(plain),
        "epoch": min(whole),
        "spread": max(whole) / min(whole),
    }


def letter_epochs(name: str, k: int, dtype: type) -> dict:
    data = load_letter()
    x = data.X_train.astype(dtype)
    y = np.unique(data.y_train, return_inverse=True)[1].astype(np.int64)
    problem = Problem(DenseRows(x), Costs(y, np.ones(len(y))), 26, losses.get(name, k=k))
    state = problem.zero_state()
    random = np.random.default_rng(0)
    seconds = []
    for _ in range(30):
        order = random.permutation(len(y))
        began = time.perf_counter()
        sum(problem.rows.epoch(problem.loss.spec, order, state, problem.costs, 8))
        seconds.append(time.perf_counter() - began)
    seconds = seconds[1:]
    return {
        "what": f"Letter, {name} k={k}, {np.dtype(dtype)}",
        "epoch": min(seconds),
        "spread": max(seconds) / min(seconds),
    }


def main() -> None:
    table = Table("epoch of", "products (s)", "epoch (s)", "ratio", "worst/best")
    for name, k in [("smooth_hinge", 1), ("entropy", 1), ("smooth_hinge", 5), ("entropy", 5)]:
        row = measure(10_000, 2048, 1000, name, k, 3)
        table.add_row(
            row["what"],
            f"{row['products']:.3f}",
            f"{row['epoch']:.3f}",
            f"{row['epoch'] / row['products']:.2f}",
            f"{row['spread']:.2f}",
        )
    for name, k in [("smooth_hinge", 1), ("entropy", 1), ("smooth_hinge", 5), ("entropy", 5)]:
        for dtype in (np.float32, np.float64):
            row = letter_epochs(name, k, dtype)
            table.add_row(row["what"], "", f"{row['epoch']:.4f}", "", f"{row['spread']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
