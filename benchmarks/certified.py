"""Which share of the test shortlists cannot change any more, by the tolerance of training.

    python -m benchmarks certified [--data FILE.npz] [--losses softmax ova_logistic] [--C 1 10]
                                   [--tols 1e-3 1e-4 1e-5 1e-6 1e-7] [--dtype float64]

One model for each loss and C goes on from one tolerance to the next; epochs are counted in all.
The file has a training and a test part. Nothing is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.data import EMBEDDINGS, load, make_embeddings
from benchmarks.machine import output
from rich.box import SIMPLE
from rich.table import Table

from shortlist import TopKClassifier

KS = (1, 5)


def parts(source: str, dtype: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The training and the test part."""
    if source == EMBEDDINGS:
        X, y = make_embeddings(n_samples=19_500)
        X = X.astype(dtype)
        return (X[:15_000], y[:15_000]), (X[15_000:], y[15_000:])
    from shortlist.datasets import read_splits

    examples, test = load(source, dtype=dtype), read_splits(source)["test"]
    return (examples.X, examples.y), (test.X.astype(dtype), test.y)


def rows(
    train: tuple[Any, Any], X: Any, loss: str, C: float, tols: list[float]
) -> Iterator[list[str]]:
    """A row of the table for each tolerance."""
    model = TopKClassifier(loss, C=C, warm_start=True, random_state=0)
    epochs = 0.0
    for tol in sorted(tols, reverse=True):
        result = model.set_params(tol=tol).fit(*train).result_
        epochs += result.epochs
        shares = [f"{np.mean(model.certified_topk(X, k)):.0%}" for k in KS]
        yield [loss, f"{C:g}", f"{tol:g}", f"{result.relative_gap:.1e}", f"{epochs:.0f}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks certified",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default=EMBEDDINGS)
    parser.add_argument("--losses", nargs="+", default=["softmax", "ova_logistic"])
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--tols", nargs="+", type=float, default=[1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    options = parser.parse_args()
    train, (X, _) = parts(options.data, options.dtype)
    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("loss", "C", "tol", "relative gap", "epochs", *(f"top-{k}" for k in KS)):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for loss in options.losses:
        for C in options.C:
            for row in rows(train, X, loss, C, options.tols):
                table.add_row(*row)
    output().print(table)


if __name__ == "__main__":
    main()
