"""Table 1, the column "top-k calibrated", each cell recomputed by search for a counterexample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shortlist.experiments.report import Remark, Section, Table
from shortlist.experiments.report.model import Cell
from shortlist.experiments.report.prose import Prose
from shortlist.experiments.units import Task, Unit
from shortlist.experiments.workers import Context

_PROSE = Prose("calibration")


@dataclass(frozen=True)
class Verdict:
    """A loss at one k: the paper's answer and what was found.

    The answer is "yes", "no", "open", or "–" for a loss that the paper does not have.
    """

    method: str
    paper: str
    calibrated: bool
    verdict: str
    n_checked: int
    #: The class probabilities of a counterexample, where there is one.
    p: tuple[float, ...] | None

    @property
    def agrees(self) -> bool:
        return self.paper not in ("yes", "no") or (self.paper == "yes") == self.calibrated


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all losses at one k."""

    k: int
    rows: tuple[Verdict, ...]


@dataclass(frozen=True)
class CalibrationTask(Task):
    """Look for distributions at which a loss's minimiser has a wrong shortlist."""

    result_type: ClassVar[type] = Verdicts

    k: int
    n_classes: tuple[int, ...]
    trials: int
    seed: int

    def run(self, payload: None = None) -> Verdicts:
        from shortlist.calibration import calibration_table

        found = calibration_table(
            self.k, n_classes=self.n_classes, n_trials=self.trials, random_state=self.seed
        )
        rows = []
        for row in found:
            p = None if row.counterexample is None else tuple(row.counterexample.p)
            facts = (row.method, row.paper, row.calibrated, row.verdict, row.n_checked)
            rows.append(Verdict(*facts, p))
        return Verdicts(self.k, tuple(rows))


def run(
    context: Context,
    *,
    ks: tuple[int, ...] = (1, 2),
    n_classes: tuple[int, ...] = (3, 4, 5, 6),
    trials: int = 100,
) -> Section:
    """Search for counterexamples to the calibration of every loss.

    Parameters
    ----------
    ks : sizes of the shortlist.
    n_classes : numbers of classes of the distributions, taken in turn.
    trials : how many distributions to try for each loss.
    """
    if context.quick:
        trials = min(trials, 6)
    tasks = [CalibrationTask(k, n_classes, trials, context.seed) for k in ks]
    units = [Unit(f"calibration, k = {task.k}", task, kind=str(task.k)) for task in tasks]
    results: list[Verdicts] = context.compute("calibration", units)
    rows = [(verdicts.k, row) for verdicts in results for row in verdicts.rows]
    disagreements = [(k, row) for k, row in rows if not row.agrees]
    return Section(
        name="calibration",
        title="Top-k calibration: which losses lead to the right shortlist",
        paragraphs=_PROSE.paragraphs("introduction"),
        headlines=[
            (f"{sum(row.n_checked for _, row in rows)}", "distributions checked"),
            (f"{len(disagreements)}", "answers of the paper contradicted"),
        ],
        tables=[_table(verdicts) for verdicts in results],
        remarks=_remarks(disagreements, [row for _, row in rows if row.paper == "open"]),
        protocol=_PROSE.paragraphs("protocol", n_classes=_listed([str(m) for m in n_classes])),
        result=tuple(results),
    )


def _remarks(disagreements: list[tuple[int, Verdict]], answered: list[Verdict]) -> list[Remark]:
    remarks = [
        Remark(f"{row.method} (k = {k})", f"The paper says {row.paper}, the search {row.verdict}.")
        for k, row in disagreements
    ]
    if not remarks:
        text = "No answer of the paper is contradicted by the search."
        remarks = [Remark("The paper’s answers", text)]
    if answered:
        yes = sorted({row.method for row in answered if row.calibrated})
        no = sorted({row.method for row in answered if not row.calibrated})
        text = _PROSE("open", no=_listed(no), yes=_listed(yes))
        remarks.append(Remark("What the paper leaves open", text))
    return remarks


def _table(verdicts: Verdicts) -> Table:
    rows: list[list[Cell]] = []
    for row in verdicts.rows:
        answer = "yes" if row.calibrated else "no"
        answer = f"**{answer}**" if row.paper == "open" else answer
        evidence = (
            f"no counterexample among {row.n_checked}"
            if row.p is None
            else "p = (" + ", ".join(f"{p:.3g}" for p in row.p) + ")"
        )
        rows.append([row.method, row.paper, answer if row.agrees else f"{answer} ≠", evidence])
    is_open = any(row.paper == "open" for row in verdicts.rows)
    notes = ["**Bold**: what the paper leaves open."] if is_open else []
    title = f"Is the loss top-{verdicts.k} calibrated?"
    columns = ["Loss", "Paper", "Found", "Evidence"]
    return Table(f"k{verdicts.k}", title, columns, rows, notes=notes, text_columns=len(columns))


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
