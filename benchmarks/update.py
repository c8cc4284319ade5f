"""Epochs of an update after a small change of the data, against those of a fit on the new data.

    python -m benchmarks update [--data FILE.npz] [--losses softmax smooth_hinge hinge]
                                [--C 1 10] [--share 0.01] [--most N]

A share of the rows is added, removed, given other rows' labels, or had these and gets its own back;
or the rows of one class are new, or gone. Nothing is timed.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from benchmarks.data import EMBEDDINGS, Examples, load
from benchmarks.machine import output
from rich.box import SIMPLE
from rich.table import Table

from shortlist import TopKClassifier

Change = tuple[tuple[Any, Any], dict[str, Any], tuple[Any, Any]]


def changes(X: Any, y: np.ndarray, few: int) -> dict[str, Change]:
    """For each kind of change: what to fit, what to update with, and the data as it is then."""
    first, other = np.arange(few), np.roll(y[:few], 1)
    known = y != y.max()
    together = np.r_[np.flatnonzero(known), np.flatnonzero(~known)]
    relabelled = {"X_new": X[:few], "y_new": other, "removed": first}
    corrected = {"X_new": X[:few], "y_new": y[:few], "removed": first}
    return {
        f"{few} added": (
            (X[few:], y[few:]),
            {"X_new": X[:few], "y_new": y[:few]},
            (np.r_[X[few:], X[:few]], np.r_[y[few:], y[:few]]),
        ),
        f"{few} removed": ((X, y), {"removed": first}, (X[few:], y[few:])),
        f"{few} relabelled": (
            (X, y),
            relabelled,
            (np.r_[X[few:], X[:few]], np.r_[y[few:], other]),
        ),
        f"{few} corrected": (
            (X, np.r_[other, y[few:]]),
            corrected,
            (np.r_[X[few:], X[:few]], np.r_[y[few:], y[:few]]),
        ),
        f"a class of {np.count_nonzero(~known)}": (
            (X[known], y[known]),
            {"X_new": X[~known], "y_new": y[~known]},
            (X[together], y[together]),
        ),
        "it goes": ((X, y), {"removed": ~known}, (X[known], y[known])),
    }


def table_row(examples: Examples, loss: str, C: float, few: int) -> dict[str, str]:
    """Epochs of the update and of the fit, for each kind of change."""
    found = {}
    for kind, (before, given, after) in changes(examples.X, examples.y, few).items():
        new = {"loss": loss, "C": C, "random_state": 0, "warm_start": True}
        update = TopKClassifier(**new).fit(*before).update(**given).result_
        fit = TopKClassifier(**new).fit(*after).result_
        found[kind] = f"{update.epochs:.1f} of {fit.epochs:.1f}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks update",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default=EMBEDDINGS)
    parser.add_argument("--losses", nargs="+", default=["softmax", "smooth_hinge", "hinge"])
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--most", type=int)
    options = parser.parse_args()
    given = load(options.data, most=options.most)
    order = np.random.default_rng(0).permutation(len(given.y))  # files may be sorted by class
    examples = Examples(given.name, given.X[order], given.y[order])
    few = max(1, round(options.share * len(examples.y)))
    table = Table(title=examples.describe(), box=SIMPLE)
    settings = [(loss, C) for loss in options.losses for C in options.C]
    for number, (loss, C) in enumerate(settings):
        row = table_row(examples, loss, C, few)
        if number == 0:
            for heading in ("loss", "C", *row):
                table.add_column(heading)
        table.add_row(loss, f"{C:g}", *row.values())
    output().print(table)


if __name__ == "__main__":
    main()
