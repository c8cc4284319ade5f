"""Units that take their time, for tests that kill the process that computes them.

Run as a script: computes ten units in the folder given and prints their results.
"""

import json
import sys
import time
from pathlib import Path

from shortlist.experiments.store import Unit, UnitStore
from shortlist.experiments.workers import Silent, compute

N_UNITS = 10
SECONDS = 0.4


def work(parameters, payload, tick):
    for step in range(4):
        time.sleep(SECONDS / 4)
        tick((step + 1) / 4)
    # When it was computed tells a stored result from one computed again.
    return {"square": parameters["x"] ** 2, "computed": time.time_ns()}


def units():
    return [Unit(f"unit {x}", {"x": x}, work) for x in range(N_UNITS)]


def main(folder: str, jobs: str) -> None:
    results = compute("slow", units(), UnitStore(Path(folder)), jobs=int(jobs), reporter=Silent())
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
