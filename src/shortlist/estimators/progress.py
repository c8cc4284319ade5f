"""How far a fit is, as parts of a line of ``shortlist._progress``, and how long it may take yet.

Only computed gaps are shown, never estimates; between two of them the last one stands.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from shortlist._progress import StatusLine, duration, is_trusted
from shortlist.solvers.records.result import Evaluation
from shortlist.solvers.records.run import Callback, Progress


@contextmanager
def with_progress(verbose: int, title: str, callback: Callback | None) -> Iterator[Callback | None]:
    """A callback that shows progress and then calls ``callback``."""
    if not verbose:
        yield callback
        return
    from rich.console import Console

    pace = _Pace()
    with StatusLine(Console(stderr=True)) as line:

        def told(progress: Progress) -> object:
            line.show(title, _parts(progress, pace.seconds_left(progress)))
            return callback(progress) if callback is not None else None

        yield told


def _parts(progress: Progress, seconds_left: float | None) -> list[str]:
    """The parts of the line, the most important first."""
    parts = [f"epoch {round(progress.epoch, 1):g}"]
    last = progress.last
    goal = ""
    if last is not None and math.isfinite(last.gap):
        parts.append(f"relative gap {last.relative_gap:.1e}")
        goal = f"goal {progress.tol:.0e}"
    elif last is not None:
        parts.append(f"objective {last.primal:.6g}")
    parts.append(f"{progress.seconds:.1f} s")
    if seconds_left is not None:
        parts.append(f"about {duration(seconds_left)} left")
    return [*parts, goal] if goal else parts


class _Pace:
    """How fast the gap has fallen since it was first below 1."""

    def __init__(self) -> None:
        self.first: Evaluation | None = None
        self.latest: Evaluation | None = None
        self.n_evaluations = 0

    def seconds_left(self, progress: Progress) -> float | None:
        """The time left if the gap goes on falling at its rate; None with too little data."""
        last = progress.last
        if last is None or not progress.tol < last.relative_gap < 1:
            return None
        if self.first is None:
            self.first = last
        if last is not self.latest:
            self.latest = last
            self.n_evaluations += 1
        fallen = math.log(self.first.relative_gap / last.relative_gap)
        still_to_fall = math.log(last.relative_gap / progress.tol)
        share = fallen / (fallen + still_to_fall)
        if not is_trusted(share, self.n_evaluations, progress.seconds):
            return None
        seconds = (last.seconds - self.first.seconds) * still_to_fall / fallen
        return max(seconds - (progress.seconds - last.seconds), 0.0)
