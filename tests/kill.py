"""Kill training with SIGKILL at random moments, resume it, and compare with an undisturbed run.

    python -m tests.kill --runs 20

Each case is trained in processes of its own: first undisturbed, which gives the optimum and the
time it takes, the writing of checkpoints included; then from its checkpoint again and again, each
process killed at a random moment, until one gets to the end; and anew, until there were so many
kills. The figures are in SECURITY.md.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TOL = 1e-5
# Seconds between two checkpoints.
EVERY = 0.2

# What a process does. It says "ready" when it begins to train, so that the time it takes to start
# and to compile does not count, and ends with one line of JSON.
WORKER = """
import json, sys, time, warnings
import numpy as np
from scipy import sparse
from shortlist import TopKClassifier

case, checkpoint = sys.argv[1:3]
every, size = float(sys.argv[3]), int(sys.argv[4])
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = rng.integers(0, 10, size)
X = rng.normal(size=(size, 30)) + 1.5 * rng.normal(size=(10, 30))[y]
if case == "csr":
    X[rng.random(X.shape) < 0.7] = 0.0
    X = sparse.csr_array(X)
losses = {"csr": "smooth_hinge", "hinge": "hinge", "truncated": "truncated_entropy"}
loss = losses.get(case, "entropy")
k = 2 if case == "truncated" else 1
options = dict(k=k, C=10.0, tol=TOL, max_epochs=100_000, random_state=0)
warm = TopKClassifier(loss, **{**options, "max_epochs": 1})
warm.fit(X[:50], y[:50])
print("ready", flush=True)
begin = time.perf_counter()
model = TopKClassifier(loss, checkpoint=checkpoint, checkpoint_every=every, **options)
if case == "path":
    results = [each.result_ for each in model.fit_path(X, y, [0.1, 1.0, 10.0, 30.0])]
else:
    results = [model.fit(X, y).result_]
print(json.dumps({
    "seconds": time.perf_counter() - begin,
    "primals": [r.primal for r in results],
    "gaps": [r.relative_gap for r in results],
    "status": [r.status for r in results],
}))
""".replace("TOL", repr(TOL))
CASES = ("softmax", "csr", "hinge", "truncated", "path")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: the kills, the runs they cut, and the work repeated for them."""

    case: str
    kills: int
    runs: int
    seconds_alone: float
    seconds_lost: float
    same: bool
    strays: int


def _start(case: str, checkpoint: str, size: int) -> subprocess.Popen:
    arguments = [case, checkpoint, str(EVERY), str(size)]
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _ended(process: subprocess.Popen) -> dict:
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return json.loads(output)


def run_case(case: str, kills: int, size: int, seed: int) -> Outcome:
    """Kill a case so many times, at moments spread over the time it takes, then let it end."""
    moments = random.Random(f"{case} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        alone = _ended(_start(case, str(Path(folder) / "alone"), size))
        worked, done, runs, same = 0.0, 0, 0, True
        while done < kills:
            checkpoint = str(Path(folder) / f"checkpoint {runs}")
            cut, seconds, last = _cut_run(case, checkpoint, size, kills - done, alone, moments)
            worked += seconds
            done += cut
            runs += 1
            same = same and _same(alone, last)
        strays = len(list(Path(folder).rglob("*.part")))
    lost = max(worked - runs * alone["seconds"], 0.0)
    return Outcome(case, done, runs, alone["seconds"], lost, same, strays)


def _cut_run(
    case: str, checkpoint: str, size: int, most: int, alone: dict, moments: random.Random
) -> tuple[int, float, dict]:
    """One run with kills: how many, the seconds of its processes, and what the last one gave."""
    worked = 0.0
    for done in range(most):
        process = _start(case, checkpoint, size)
        begin = time.perf_counter()
        try:
            process.wait(moments.uniform(0, alone["seconds"] / 2))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            worked += time.perf_counter() - begin
            continue
        last = _ended(process)
        return done, worked + last["seconds"], last
    last = _ended(_start(case, checkpoint, size))
    return most, worked + last["seconds"], last


def _same(alone: dict, last: dict) -> bool:
    """Whether both ended with certificates of the same optimum."""
    if alone["status"] != last["status"] or set(last["status"]) != {"converged"}:
        return False
    pairs = zip(alone["primals"], last["primals"], last["gaps"], strict=True)
    # A loss that is not convex has no gap: two runs need not find the same minimum.
    return all(gap != gap or (gap <= TOL and abs(a - b) <= 2 * TOL * a) for a, b, gap in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.kill")
    parser.add_argument("--runs", type=int, default=20, help="kills of each case")
    parser.add_argument("--size", type=int, default=4000, help="examples")
    parser.add_argument("--case", choices=CASES, action="append", help="these cases only")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for case in options.case or CASES:
        found = run_case(case, options.runs, options.size, options.seed)
        failed += not found.same
        lost = found.seconds_lost / max(found.kills, 1)
        sys.stdout.write(
            f"{case:10} {found.kills:3} kills in {found.runs} runs of {found.seconds_alone:.1f} s, "
            f"{lost:5.2f} s lost a kill, {'same optimum' if found.same else 'ANOTHER END'}, "
            f"{found.strays} stray files\n"
        )
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
