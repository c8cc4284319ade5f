"""The process that runs cases and writes a line for each: number, kind, outcome."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.fuzz.runner import SECONDS_PER_CASE, limit_resources, time_limit


def main(target: str, first: int, stop: int, seed: int, folder: Path) -> None:
    if target == "readers":
        from tests.fuzz.readers import Readers as Cases
    else:
        from tests.fuzz.models import Models as Cases  # type: ignore[assignment]
    cases = Cases(seed, folder)
    limit_resources()
    for number in range(first, stop):
        with time_limit(SECONDS_PER_CASE):
            kind, outcome = cases.run(number)
        sys.stdout.write(json.dumps([number, kind, outcome]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    name, first, stop, seed, folder = sys.argv[1:]
    main(name, int(first), int(stop), int(seed), Path(folder))
