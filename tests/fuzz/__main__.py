"""The long runs: ``python -m tests.fuzz readers --runs 20000``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.runner import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=("readers", "models"))
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.monotonic()
    report = run(options.target, options.runs, options.seed)
    seconds = time.monotonic() - begin
    sys.stdout.write(f"{report.table()}\n{options.runs} cases in {seconds:.0f} s\n")
    return 1 if report.total("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
