"""Runs cases in a process of their own, which is started again after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# What a case may take: more is counted as a failure, not waited for.
SECONDS_PER_CASE = 20
ADDRESS_SPACE_BYTES = 6 * 2**30
_SHOWN_FAILURES = 20


@dataclass
class Report:
    """How many cases of each kind ended how, and those that ended wrongly."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, number: int, kind: str, outcome: str) -> None:
        word = {"": "accepted", "refused": "refused"}.get(outcome, "wrong")
        self.outcomes.setdefault(kind, Counter())[word] += 1
        if word == "wrong":
            self.failures.append(f"case {number} ({kind}) {outcome}")

    def total(self, word: str) -> int:
        return sum(counts[word] for counts in self.outcomes.values())

    def table(self) -> str:
        words = ("refused", "accepted", "wrong")
        lines = [f"{'':24}" + "".join(f"{word:>10}" for word in words)]
        for kind, counts in sorted(self.outcomes.items()):
            lines.append(f"{kind:24}" + "".join(f"{counts[word]:>10}" for word in words))
        lines.append(f"{'all':24}" + "".join(f"{self.total(word):>10}" for word in words))
        return "\n".join(lines + self.failures[:_SHOWN_FAILURES])


def run(target: str, runs: int, seed: int) -> Report:
    """Run ``runs`` cases of "readers" or "models"."""
    report = Report()
    first = 0
    with tempfile.TemporaryDirectory() as folder:
        while first < runs:
            first = _run_from(target, first, runs, seed, Path(folder), report)
    return report


def _run_from(target: str, first: int, runs: int, seed: int, folder: Path, report: Report) -> int:
    """Run cases until all are done or one ends the process; returns the next case's number."""
    command = [sys.executable, "-m", "tests.fuzz.worker", target]
    command += [str(first), str(runs), str(seed), str(folder)]
    worker = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONFAULTHANDLER": "1"},
    )
    assert worker.stdout is not None
    for line in worker.stdout:
        number, kind, outcome = json.loads(line)
        report.add(number, kind, outcome)
        first = number + 1
    errors = worker.communicate()[1]
    if worker.returncode == 0:
        return runs
    last_words = [line for line in errors.splitlines() if not line.startswith("Extension")][-12:]
    report.add(first, "crash", f"ended the process ({worker.returncode}): {last_words}")
    return first + 1


def limit_resources() -> None:
    """Make a case that asks for very much memory fail instead of succeeding slowly."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the middle of a case that computes for so long.

    Processor time counts: a process that waits for its turn is not at fault.
    """

    def expired(*_: object) -> None:
        raise TimeoutError(f"computed for more than {seconds} seconds")

    signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
