"""Table 1, the column "top-k calibrated", each cell recomputed by search for a counterexample."""

from dataclasses import dataclass
from typing import Self

from shortlist.calibration import CalibrationRow, calibration_table
from shortlist.experiments.report import Prose, Section
from shortlist.experiments.units import Context, Task, Unit

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

    @classmethod
    def of(cls, row: CalibrationRow) -> Self:
        p = None if row.counterexample is None else tuple(row.counterexample.p)
        return cls(row.method, row.paper, row.calibrated, row.verdict, row.n_checked, p)

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

    k: int
    n_classes: tuple[int, ...]
    trials: int
    seed: int

    def run(self, payload: None = None) -> Verdicts:
        rows = calibration_table(
            self.k, n_classes=self.n_classes, n_trials=self.trials, random_state=self.seed
        )
        return Verdicts(self.k, tuple(map(Verdict.of, rows)))


def run(
    context: Context,
    *,
    ks: tuple[int, ...] = (1, 2),
    n_classes: tuple[int, ...] = (3, 4, 5, 6),
    trials: int = 100,
) -> Section:
    """Search for counterexamples to the calibration of every loss.

    ks : sizes of the shortlist.
    n_classes : numbers of classes of the distributions, taken in turn.
    trials : how many distributions to try for each loss.
    """
    if context.quick:
        trials = min(trials, 6)
    tasks = [CalibrationTask(k, n_classes, trials, context.seed) for k in ks]
    units = [Unit(f"calibration, k = {task.k}", task, kind=str(task.k)) for task in tasks]
    results: tuple[Verdicts, ...] = tuple(context.compute("calibration", units))
    rows = [(verdicts.k, row) for verdicts in results for row in verdicts.rows]
    left_open = [row for _, row in rows if row.paper == "open"]
    facts = {
        "n_classes": n_classes,
        "checked": sum(row.n_checked for _, row in rows),
        "contradicted": [(k, row) for k, row in rows if not row.agrees],
        "calibrated": sorted({row.method for row in left_open if row.calibrated}),
        "not_calibrated": sorted({row.method for row in left_open if not row.calibrated}),
    }
    tables = [
        _PROSE.written_table("verdicts", {"verdicts": each}, name=f"k{each.k}", text_columns=4)
        for each in results
    ]
    return _PROSE.section("calibration", facts, tables=tables, result=results)
