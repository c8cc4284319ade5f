"""Time to the same objective on the same data: this library and its peers, in one process.

    python -m benchmarks peers [--data letter embeddings FILE.npz] [--losses softmax hinge ...]
                               [--C 1 10] [--targets 1e-3 1e-4] [--json FILE]

The best possible objective P* is bounded from below by a dual certified to a relative gap of
1e-6. A solver has reached a target when its own W has (P(W) - bound) / bound at most the target, P
computed here in double for all. Few peers tell their objective as they go, so each gets the
weakest setting on its ladder that reaches the target, found by doubling and bisection to 5%;
only runs with that setting are timed, all solvers in turn. "shortlist, certified" is given no such
help: it stops when its own certificate says so, and the ratios are to its time. No solver
fits an intercept. Compilation and imports are not timed. Threads are the caller's choice
(OMP_NUM_THREADS) and are reported.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.data import EMBEDDINGS, LETTER, Examples, load
from benchmarks.machine import describe_machine, output
from benchmarks.machine import load as machine_load
from benchmarks.solvers import LOSSES, OWN, Solver, own_model, quietly, solvers_for
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from shortlist import losses
from shortlist.cli.bench import Search

CERTIFIED = "shortlist, certified"
# BLAS's threads stay awake, and in the way of the next solver, for some hundredths of a second.
BLAS_GOES_TO_SLEEP = 0.2


@dataclass(frozen=True)
class Row:
    """One solver's time to one target; ``seconds`` is empty if it did not get there."""

    data: str
    loss: str
    C: float
    target: float
    solver: str
    setting: str
    suboptimality: float
    seconds: tuple[float, ...]
    ratio: float | None

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """The slowest of the runs over the fastest."""
        return max(self.seconds) / min(self.seconds)


class Objective:
    """P(W) in double, and how far it is above the certified bound."""

    def __init__(self, loss: str, data: Examples, C: float, tol: float) -> None:
        self.loss = losses.get(loss)
        self.data = data
        self.C = C
        exact = own_model(loss, C, tol).fit(data.X.astype(np.float64), data.y)
        self.bound = exact.result_.dual
        self.relative_gap = exact.result_.relative_gap

    def __call__(self, coef: np.ndarray) -> float:
        coef = np.asarray(coef, dtype=np.float64)
        total = 0.5 * float(np.vdot(coef, coef))
        for begin in range(0, len(self.data.y), 4096):
            part = slice(begin, begin + 4096)
            scores = np.asarray(self.data.X[part] @ coef.T)
            total += self.C * float(self.loss.value(scores, self.data.y[part]).sum())
        return total

    def suboptimality(self, coef: np.ndarray) -> float:
        """(P(W) - bound) / bound, never less than the true relative suboptimality."""
        return (self(coef) - self.bound) / self.bound


def search_for(solver: Solver, objective: Objective, patience: float) -> Search:
    """The search for the weakest setting of a solver by the suboptimality that it reaches."""

    def run(place: int) -> tuple[float, float]:
        began = time.perf_counter()
        coef = quietly(solver.train, solver.ladder[place])
        seconds = time.perf_counter() - began
        return objective.suboptimality(coef), seconds

    return Search(run, len(solver.ladder), patience)


@dataclass(frozen=True)
class Timed:
    """A solver at the setting that is to be timed for a target."""

    solver: str
    target: float
    shown: str
    train: Callable[[], np.ndarray]


def contest(
    loss: str,
    data: Examples,
    C: float,
    *,
    targets: list[float],
    repeat: int = 3,
    patience: float = 120.0,
    reference_tol: float = 1e-6,
    peers: Collection[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """All solvers of one loss on one data set at one C, or this library and the ``peers`` named."""
    say(f"{data.name}, {loss}, C={C:g}: the reference")
    objective = Objective(loss, data, C, reference_tol)
    kept = [target for target in targets if objective.relative_gap <= 0.1 * target]
    for target in sorted(set(targets) - set(kept)):
        say(f"  left out the target {target:g}: the reference has gap {objective.relative_gap:.1g}")
    solvers = {solver.name: solver for solver in solvers_for(loss, data, C)}
    timed: list[Timed] = []
    missed: list[Row] = []
    for name, solver in solvers.items():
        if peers is not None and name not in peers:
            continue
        search = search_for(solver, objective, patience)
        for target in sorted(kept, reverse=True):
            say(f"  {name}: searching the setting for {target:g}")
            place = search.weakest(target)
            if place is None:
                reached, seconds = search.best_effort()
                shown = f"gave up after {seconds:.0f} s"
                missed.append(Row(data.name, loss, C, target, name, shown, reached, (), None))
                continue
            value = solver.ladder[place]
            shown = f"{solver.setting} {_short(value)}"
            train = solver.train
            timed.append(Timed(name, target, shown, lambda t=train, v=value: quietly(t, v)))
    own = solvers[OWN].train
    for target in kept:
        timed.append(
            Timed(CERTIFIED, target, f"tol {target:.2g}", lambda v=target: quietly(own, v))
        )
    say("  timing")
    seconds: dict[tuple[str, float], list[float]] = {(t.solver, t.target): [] for t in timed}
    reached: dict[tuple[str, float], float] = {}
    for _ in range(repeat):
        for entry in timed:
            time.sleep(BLAS_GOES_TO_SLEEP)
            began = time.perf_counter()
            coef = entry.train()
            key = entry.solver, entry.target
            seconds[key].append(time.perf_counter() - began)
            reached[key] = max(objective.suboptimality(coef), reached.get(key, -np.inf))
    rows = missed
    for entry in timed:
        key = entry.solver, entry.target
        ratio = min(seconds[key]) / min(seconds[CERTIFIED, entry.target])
        rows.append(
            Row(
                data.name,
                loss,
                C,
                entry.target,
                entry.solver,
                entry.shown,
                reached[key],
                tuple(seconds[key]),
                ratio,
            )
        )
    return sorted(rows, key=lambda r: (-r.target, r.solver != CERTIFIED, r.ratio or np.inf))


def _short(setting: float) -> str:
    return str(setting) if isinstance(setting, int) else f"{setting:.2g}"


def table_of(rows: list[Row]) -> Table:
    """The rows of one contest for a terminal; a rule between targets."""
    first = rows[0]
    table = Table(
        title=f"{first.data}, {first.loss}, C={first.C:g}",
        title_justify="left",
        box=SIMPLE,
        pad_edge=False,
    )
    for column in ("target", "solver", "setting"):
        table.add_column(column, no_wrap=True)
    for column in ("reached", "seconds", "spread", "ratio"):
        table.add_column(column, justify="right")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(
            f"{row.target:g}",
            row.solver,
            row.setting,
            f"{row.suboptimality:.1e}",
            f"{row.best:.3f}" if row.seconds else "",
            f"{row.spread:.2f}" if row.seconds else "",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            end_section=following is not None and following.target != row.target,
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", nargs="+", default=[LETTER, EMBEDDINGS])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--C", nargs="+", type=float, default=[1.0])
    parser.add_argument("--targets", nargs="+", type=float, default=[1e-3, 1e-4])
    parser.add_argument("--dtype", choices=["float32", "float64"], help="the data's own otherwise")
    parser.add_argument("--samples", type=int, help="take at most so many examples")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--patience", type=float, default=120.0, help="seconds of a run that may miss the target"
    )
    parser.add_argument("--reference-tol", type=float, default=1e-6)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()

    out, console = output(), Console(stderr=True)
    machine = describe_machine()
    rows: list[Row] = []
    for source in options.data:
        data = load(source, dtype=options.dtype, most=options.samples)
        console.print(data.describe(), highlight=False)
        for loss in options.losses:
            for C in options.C:
                found = contest(
                    loss,
                    data,
                    C,
                    targets=options.targets,
                    repeat=options.repeat,
                    patience=options.patience,
                    reference_tol=options.reference_tol,
                    say=lambda text: console.print(text, highlight=False),
                )
                rows += found
                if found:
                    out.print(table_of(found))
                if options.json:
                    _write(options.json, machine, rows)
    machine["load at the end"] = machine_load()
    if options.json:
        _write(options.json, machine, rows)
    out.print(", ".join(f"{name} {fact}" for name, fact in machine.items()), highlight=False)


def _write(path: Path, machine: dict[str, str], rows: list[Row]) -> None:
    """Write what there is so far: a long run that is cut keeps its finished contests."""
    shown = [asdict(row) for row in rows]
    path.write_text(json.dumps({"machine": machine, "rows": shown}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
