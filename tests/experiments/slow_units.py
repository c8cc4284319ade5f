"""Units that take their time, for tests that end the process that computes them.

Run as a script: computes ten units in the folder given and prints their results.
"""

import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shortlist._json import plain
from shortlist.experiments.units import Context, Task, Unit

N_UNITS = 10
SECONDS = 0.4


@dataclass(frozen=True)
class SlowResult:
    square: int
    #: When it was computed tells a stored result from one computed again.
    computed: int
    pid: int


@dataclass(frozen=True)
class SlowTask(Task):
    x: int
    seconds: float = SECONDS

    def run(self, payload) -> SlowResult:
        if payload is not None:
            # The number of a working process, for tests that watch whether it ends.
            (payload / f"{os.getpid()}.pid").touch()
        for _ in range(2):
            # As training along a path does: it returns what there is, and the next fit begins.
            with suppress(KeyboardInterrupt):
                time.sleep(self.seconds / 2)
        return SlowResult(self.x**2, time.time_ns(), os.getpid())


def units(folder=None, seconds=SECONDS):
    return [Unit(f"unit {x}", SlowTask(x, seconds), folder) for x in range(N_UNITS)]


def main(folder: str, jobs: str, seconds: str) -> None:
    path = Path(folder)
    results = Context(path, int(jobs)).compute("slow", units(path, float(seconds)))
    sys.stdout.write(json.dumps(plain(results)))


if __name__ == "__main__":
    main(*sys.argv[1:])
