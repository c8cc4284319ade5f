"""Progress for people: bars with the time left on a terminal, a line for each unit elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from shortlist.experiments.store import Unit
from shortlist.experiments.workers import Reporter, Silent


def reporter_for(console: Console | None) -> Reporter:
    """A reporter that suits the console; None tells nobody."""
    if console is None:
        return Silent()
    return Bars(console) if console.is_terminal else Lines(console)


class Bars:
    """One bar for the whole and one for each unit that runs."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, title: str, units: Sequence[Unit], n_stored: int) -> None:
        columns: list[Any] = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
        ]
        # Units differ in speed from one to the next: the estimate looks back two minutes.
        self.progress = Progress(
            *columns, console=self.console, transient=True, speed_estimate_period=120
        )
        self.title = title
        self.shares: dict[str, float] = {}
        self.tasks: dict[str, TaskID] = {}
        self.n_units, self.n_finished = len(units), 0
        self.stored = f", {n_stored} from before" if n_stored else ""
        self.whole = self.progress.add_task("", total=sum(unit.weight for unit in units))
        self._show_whole({})
        self.progress.start()
        self.weights = {unit.key: unit.weight for unit in units}

    def advance(self, unit: Unit, share: float) -> None:
        if share <= self.shares.get(unit.key, 0.0):
            return
        self.shares[unit.key] = share
        if unit.key not in self.tasks and share < 1.0:
            self.tasks[unit.key] = self.progress.add_task(f"  {unit.name}", total=1.0)
        if unit.key in self.tasks:
            self.progress.update(self.tasks[unit.key], completed=share)
        self._show_whole({"completed": sum(self.weights[k] * s for k, s in self.shares.items())})

    def finish(self, unit: Unit, seconds: float) -> None:
        self.advance(unit, 1.0)
        self.n_finished += 1
        if unit.key in self.tasks:
            self.progress.remove_task(self.tasks.pop(unit.key))
        self._show_whole({})

    def end(self) -> None:
        self.progress.stop()

    def _show_whole(self, update: dict[str, Any]) -> None:
        text = f"{self.title} [dim]({self.n_finished} of {self.n_units}{self.stored})"
        self.progress.update(self.whole, description=text, **update)


#: In a log, units shorter than this many seconds get a line only every so often.
_SHORT, _EVERY = 1.0, 2.0


class Lines:
    """A plain line for each finished unit, for logs; of many short units, for some."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, title: str, units: Sequence[Unit], n_stored: int) -> None:
        self.title = title
        self.start = self.last = time.monotonic()
        self.total = sum(unit.weight for unit in units)
        self.done, self.n_finished, self.n_units = 0.0, 0, len(units)
        if n_stored:
            self._print(f"{title}: {n_stored} units from before, {len(units)} to compute")

    def advance(self, unit: Unit, share: float) -> None:
        pass

    def finish(self, unit: Unit, seconds: float) -> None:
        self.done += unit.weight
        self.n_finished += 1
        now = time.monotonic()
        if seconds < _SHORT and now - self.last < _EVERY and self.n_finished < self.n_units:
            return
        self.last = now
        count = f"{self.n_finished} of {self.n_units}"
        if self.n_finished < self.n_units:
            left = (now - self.start) * (self.total - self.done) / self.done
            count += f", about {left:.0f} s left"
        self._print(f"{unit.name}: {seconds:.1f} s ({count})")

    def end(self) -> None:
        pass

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
