"""A path over C by warm starts against as many cold fits: total time and epochs.

    python -m benchmarks path [--data letter embeddings FILE.npz] [--losses entropy smooth_hinge]
                              [--points 20] [--first 1e-5] [--last 1e3] [--json FILE]

Both produce one solution per C certified to the same relative gap. They are run in turn, and
the fastest of ``--repeat`` runs counts. Compilation is not timed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.data import EMBEDDINGS, LETTER, Examples, load
from benchmarks.machine import describe_machine, output
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from shortlist import TopKClassifier
from shortlist import losses as registry


@dataclass(frozen=True)
class Sweep:
    """One way through all values of C."""

    seconds: float
    epochs: float
    largest_gap: float
    epochs_per_C: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """A path and the cold fits it replaces."""

    data: str
    loss: str
    k: int
    path: Sweep
    cold: Sweep

    @property
    def time_ratio(self) -> float:
        return self.cold.seconds / self.path.seconds

    @property
    def epoch_ratio(self) -> float:
        return self.cold.epochs / self.path.epochs


def sweep(template: TopKClassifier, data: Examples, Cs: np.ndarray, *, warm: bool) -> Sweep:
    """Fit for every C, along the path or each from nothing."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge show in the gaps
        if warm:
            models = template.fit_path(data.X, data.y, Cs)
        else:
            parameters = template.get_params()
            models = [
                TopKClassifier(**{**parameters, "C": float(C)}).fit(data.X, data.y) for C in Cs
            ]
    seconds = time.perf_counter() - began
    results = [model.result_ for model in models]
    epochs = tuple(result.epochs for result in results)
    return Sweep(seconds, sum(epochs), max(result.relative_gap for result in results), epochs)


def compare(
    data: Examples, loss: str, k: int, Cs: np.ndarray, *, tol: float, max_epochs: int, repeat: int
) -> Comparison:
    """The better of ``repeat`` runs of each kind, in turn."""
    template = TopKClassifier(
        loss, k=k, tol=tol, max_epochs=max_epochs, fit_intercept=False, random_state=0
    )
    template.fit(data.X, data.y)  # compiles
    runs: dict[bool, list[Sweep]] = {True: [], False: []}
    for _ in range(repeat):
        for warm in (True, False):
            runs[warm].append(sweep(template, data, Cs, warm=warm))
    path, cold = (min(runs[warm], key=lambda s: s.seconds) for warm in (True, False))
    return Comparison(data.name, loss, k, path, cold)


def table_of(comparisons: list[Comparison], title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for column in ("data", "loss"):
        table.add_column(column)
    for column in ("path s", "cold s", "ratio", "path ep.", "cold ep.", "ratio", "gap"):
        table.add_column(column, justify="right")
    for each in comparisons:
        table.add_row(
            each.data,
            f"{each.loss} k={each.k}",
            f"{each.path.seconds:.2f}",
            f"{each.cold.seconds:.2f}",
            f"{each.time_ratio:.2f}",
            f"{each.path.epochs:.0f}",
            f"{each.cold.epochs:.0f}",
            f"{each.epoch_ratio:.2f}",
            f"{max(each.path.largest_gap, each.cold.largest_gap):.1e}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks path",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convex = [name for name in registry.names() if registry.get(name).convex]
    parser.add_argument("--data", nargs="+", default=[LETTER, EMBEDDINGS])
    parser.add_argument("--losses", nargs="+", choices=convex, default=["entropy", "smooth_hinge"])
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--first", type=float, default=1e-5)
    parser.add_argument("--last", type=float, default=1e3)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-epochs", type=int, default=1000)
    parser.add_argument("--dtype", choices=["float32", "float64"], help="the data's own otherwise")
    parser.add_argument("--samples", type=int, help="take at most so many examples")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()

    Cs = np.geomspace(options.first, options.last, options.points)
    machine = describe_machine()
    progress = Console(stderr=True)
    comparisons: list[Comparison] = []
    for source in options.data:
        data = load(source, dtype=options.dtype, most=options.samples)
        for loss in options.losses:
            progress.print(f"{data.describe()}: {loss}", highlight=False)
            comparisons.append(
                compare(
                    data,
                    loss,
                    options.k,
                    Cs,
                    tol=options.tol,
                    max_epochs=options.max_epochs,
                    repeat=options.repeat,
                )
            )
            if options.json:
                shown = [asdict(each) for each in comparisons]
                text = json.dumps({"machine": machine, "Cs": Cs.tolist(), "rows": shown}, indent=1)
                options.json.write_text(text, encoding="utf-8")
    out = output()
    title = f"{options.points} values of C from {options.first:g} to {options.last:g}"
    out.print(table_of(comparisons, f"{title}, relative gap {options.tol:g}"))
    out.print(", ".join(f"{name} {fact}" for name, fact in machine.items()), highlight=False)


if __name__ == "__main__":
    main()
