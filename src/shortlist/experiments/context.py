"""What an experiment gets: where results go, how much of the machine it may use, who is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shortlist.experiments.store import Record, Unit, UnitStore
from shortlist.experiments.workers import Reporter, Silent, compute

#: Finished units lie here, within the output folder.
UNITS = "units"


@dataclass(frozen=True)
class Context:
    """The surroundings of a run. ``quick`` asks for a smaller version that only shows it works."""

    output: Path
    jobs: int = 1
    seed: int = 0
    quick: bool = False
    reporter: Reporter = field(default_factory=Silent)

    def compute(self, title: str, units: Sequence[Unit], *, alone: bool = False) -> list[Record]:
        """The results of units, stored ones included; ``alone``: one at a time, to be timed."""
        store = UnitStore(self.output / UNITS)
        jobs = 1 if alone else self.jobs
        return compute(title, units, store, jobs=jobs, reporter=self.reporter)
