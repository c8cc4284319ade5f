"""The speed this library promises, as ratios measured in one run: pass or fail.

    python -m benchmarks targets [--clinc FILE.npz] [--news FILE.npz] [--only TEXT] [--json FILE]

Each line is a ratio of seconds, ours against the fastest peer's or against matrix products. Peers
run to the same primal, as in ``python -m benchmarks peers``; ours runs until certified. Without
files, made-up embeddings stand in for CLINC150, and the text targets are left out. To measure as on
a machine without AVX-512, set NUMBA_CPU_NAME=haswell and OPENBLAS_CORETYPE=Haswell.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.data import EMBEDDINGS, LETTER, Examples, load, make_embeddings
from benchmarks.epoch import LOSSES, measure
from benchmarks.machine import describe_machine, output
from benchmarks.peers import CERTIFIED, OWN, contest
from benchmarks.solvers import own_model, quietly
from rich.console import Console
from rich.table import Table

TOLERANCE = 1e-3


@dataclass(frozen=True)
class Outcome:
    """A target and what was measured; ``at_least`` tells which side of it is good."""

    what: str
    wanted: float
    at_least: bool
    measured: float
    detail: str

    @property
    def met(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted


@dataclass(frozen=True)
class Target:
    """What is measured, the ratio wanted, and how to measure it."""

    what: str
    wanted: float
    at_least: bool
    measure: Callable[[], tuple[float, str]]

    def run(self) -> Outcome:
        measured, detail = self.measure()
        return Outcome(self.what, self.wanted, self.at_least, measured, detail)


def against_peers(data: Examples, loss: str, C: float) -> tuple[float, str]:
    """The fastest peer's seconds over ours."""
    model = own_model(loss, C, TOLERANCE)
    model.fit(data.X, data.y)  # compiles
    began = time.perf_counter()
    model.fit(data.X, data.y)
    # A peer this many times slower than Shortlist is not the fastest; its run is cut short.
    patience = 20.0 * (time.perf_counter() - began) + 1.0
    rows = contest(
        loss,
        data,
        C,
        targets=[TOLERANCE],
        repeat=3,
        patience=patience,
        reference_tol=0.1 * TOLERANCE,
    )
    ours = next(row for row in rows if row.solver == CERTIFIED)
    peers = [row for row in rows if row.solver not in (CERTIFIED, OWN) and row.seconds]
    fastest = min(peers, key=lambda row: row.best)
    return fastest.best / ours.best, f"{ours.best:.3f} s, {fastest.solver} {fastest.best:.3f} s"


def against_products(data: Examples, loss: str, k: int, C: float) -> tuple[float, str]:
    """A whole certified fit over the two products of each of its epochs."""
    model = own_model(loss, C, TOLERANCE).set_params(k=k)
    quietly(lambda _: model.fit(data.X[:2000], data.y[:2000]), 0.0)  # compiles
    began = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    weights = np.zeros((data.X.shape[1], data.n_classes), data.X.dtype)
    began = time.perf_counter()
    scores = data.X @ weights
    data.X.T @ scores
    products = time.perf_counter() - began
    epochs = model.result_.epochs
    return seconds / (
        products * epochs
    ), f"{seconds:.1f} s, {epochs:.1f} epochs of {products:.2f} s"


def targets(options: argparse.Namespace) -> list[Target]:
    """All targets, in the order they are run."""
    found = []
    for shape, wanted in (((10_000, 2048, 1000), 1.35), ((15_000, 384, 150), 2.2)):
        for name, k in LOSSES:
            found.append(
                Target(
                    f"epoch / products, {name} k={k}, {' x '.join(map(str, shape))}",
                    wanted,
                    False,
                    lambda shape=shape, name=name, k=k: _epoch(shape, name, k),
                )
            )
    clinc = load(options.clinc) if options.clinc else load(EMBEDDINGS)
    letter = load(LETTER)
    for data, loss, wanted_at in (
        (clinc, "softmax", {1: 5, 10: 5, 100: 3, 1000: 3}),
        (clinc, "hinge", {1: 10, 10: 10}),
        (letter, "softmax", {1: 2, 10: 2, 100: 2, 1000: 2}),
        (letter, "hinge", {1: 3, 10: 3}),
    ):
        found += [_peers(data, loss, C, wanted) for C, wanted in wanted_at.items()]
    if options.news:
        news = load(options.news)
        found += [_peers(news, "softmax", C, 8) for C in (1, 10)]
        found += [_peers(news, "hinge", C, wanted) for C, wanted in ((1, 3), (10, 2))]
    found.append(_made_up((10_000, 2048, 1000), "softmax", 10, 8))
    found.append(_made_up((54_000, 128, 1000), "softmax", 10, 5))
    for loss, k in (("entropy", 1), ("smooth_hinge", 5)):
        found.append(
            Target(
                f"fit / products of its epochs, {loss} k={k} C=1, 100000 x 768 x 1000",
                3.2,
                False,
                lambda loss=loss, k=k: against_products(
                    _examples((100_000, 768, 1000)), loss, k, 1.0
                ),
            )
        )
    return [target for target in found if options.only in target.what]


def _epoch(shape: tuple[int, int, int], name: str, k: int) -> tuple[float, str]:
    X, y = make_embeddings(*shape)
    found = measure(X, y.astype(np.int64), name, k)
    return found.ratio, f"{found.epoch:.3f} s, products {found.products:.3f} s"


def _peers(data: Examples, loss: str, C: float, wanted: float) -> Target:
    what = f"fastest peer / ours, {data.name} {loss} C={C:g}"
    return Target(what, wanted, True, lambda: against_peers(data, loss, C))


def _examples(shape: tuple[int, int, int]) -> Examples:
    X, y = make_embeddings(*shape)
    return Examples(" x ".join(map(str, shape)), X, y.astype(np.int64))


def _made_up(shape: tuple[int, int, int], loss: str, C: float, wanted: float) -> Target:
    what = f"fastest peer / ours, {' x '.join(map(str, shape))} {loss} C={C:g}"
    return Target(what, wanted, True, lambda: against_peers(_examples(shape), loss, C))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clinc", metavar="FILE", help="CLINC150 embeddings")
    parser.add_argument("--news", metavar="FILE", help="20 newsgroups, tf-idf")
    parser.add_argument("--only", default="", metavar="TEXT", help="targets whose name has this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    err, out = Console(stderr=True), output()
    outcomes = []
    for target in targets(options):
        err.print(target.what, highlight=False)
        outcome = target.run()
        outcomes.append(outcome)
        sign = ">=" if outcome.at_least else "<="
        verdict = "pass" if outcome.met else "FAIL"
        err.print(
            f"  {outcome.measured:.2f} ({sign} {outcome.wanted:g}) {verdict}: {outcome.detail}",
            highlight=False,
        )
    table = Table("target", "wanted", "measured", "", "detail")
    for outcome in outcomes:
        sign = ">=" if outcome.at_least else "<="
        table.add_row(
            outcome.what,
            f"{sign} {outcome.wanted:g}",
            f"{outcome.measured:.2f}",
            "pass" if outcome.met else "FAIL",
            outcome.detail,
        )
    out.print(table)
    machine = describe_machine()
    out.print(", ".join(f"{name} {fact}" for name, fact in machine.items()))
    if options.json:
        rows = [{**asdict(outcome), "met": outcome.met} for outcome in outcomes]
        text = json.dumps({"machine": machine, "targets": rows}, indent=1)
        options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
