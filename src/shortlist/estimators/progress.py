"""Progress for people: a live line on a terminal, plain lines elsewhere.

Only computed gaps are shown, never estimates; between two of them the last one stands.
"""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from shortlist.solvers.records.run import Callback, Progress


@contextmanager
def with_progress(verbose: int, title: str, callback: Callback | None) -> Iterator[Callback | None]:
    """A callback that shows progress and then calls ``callback``."""
    if not verbose:
        yield callback
        return
    line = _Line(title)

    def told(progress: Progress) -> object:
        line.show(progress)
        return callback(progress) if callback is not None else None

    try:
        yield told
    finally:
        line.close()


class _Line:
    def __init__(self, title: str) -> None:
        self.title = title
        self.live = sys.stderr.isatty()
        self.last_shown = -math.inf
        self.text = ""

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        # A person reads a few lines a second; a log wants one every few seconds.
        if now - self.last_shown < (0.1 if self.live else 2.0):
            self.text = self._text(progress)
            return
        self.last_shown = now
        self.text = ""
        self._write(self._text(progress))

    def close(self) -> None:
        if self.text:
            self._write(self.text)
        if self.live and self.last_shown > -math.inf:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}" if self.live else f"{text}\n")
        sys.stderr.flush()

    def _text(self, progress: Progress) -> str:
        parts = [f"{self.title}: epoch {progress.epoch:.1f}", f"{progress.seconds:.1f} s"]
        last = progress.last
        if last is not None and math.isfinite(last.gap):
            parts.append(f"relative gap {last.relative_gap:.2e} at epoch {last.epoch:.1f}")
            parts.append(f"target {progress.tol:.0e}")
            if (left := _seconds_left(progress)) is not None:
                parts.append(f"about {left:.0f} s left")
        elif last is not None:
            parts.append(f"objective {last.primal:.6g}")
        return ", ".join(parts)


def _seconds_left(progress: Progress) -> float | None:
    """Assuming the gap falls from 1 at a constant rate."""
    last = progress.last
    if last is None or not 0 < last.relative_gap < 1 or last.relative_gap <= progress.tol:
        return None
    share = math.log(progress.tol) / math.log(last.relative_gap)
    return max(last.seconds * share - progress.seconds, 0.0)
