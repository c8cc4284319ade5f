"""Kill training with SIGKILL at random moments, resume it, and compare with an undisturbed run.

    python -m tests.kill --runs 20

Each case is trained in processes of its own: first undisturbed, which gives the optimum and the
time it takes, the writing of checkpoints included; then from its checkpoint again and again, each
process killed at a random moment, until one gets to the end; and anew, until there were so many
kills. Processes are forked from one that has the data and the kernels, so that all they do is to
train. What is lost is measured in processor time, which other processes hardly change. The figures
are in SECURITY.md.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from shortlist import TopKClassifier

TOL = 1e-5
# Seconds between two checkpoints.
EVERY = 0.1
PATH = (0.1, 1.0, 10.0, 30.0)
N_FEATURES, N_CLASSES = 60, 30


class Case(NamedTuple):
    """A loss, how the examples are kept, whether there is a path over C, and how many examples.

    They are so many that training takes some seconds.
    """

    loss: str
    n_examples: int
    k: int = 1
    is_sparse: bool = False
    is_path: bool = False


CASES = {
    "softmax": Case("entropy", 40_000),
    "csr": Case("smooth_hinge", 10_000, is_sparse=True),
    "hinge": Case("hinge", 60_000),
    "truncated": Case("truncated_entropy", 40_000, k=2),
    "path": Case("entropy", 20_000, is_path=True),
}


@dataclass
class Tally:
    """What processes did together. ``resumed`` counts those that went on from a checkpoint."""

    runs: int = 0
    kills: int = 0
    resumed: int = 0
    seconds: float = 0.0


class Training:
    """A case with its data. :meth:`process` trains in a process of its own."""

    def __init__(self, case: Case, every: float, late: bool) -> None:
        self.case, self.every, self.late = case, every, late
        rng = np.random.default_rng(0)
        shape = (case.n_examples, N_FEATURES)
        self.y = rng.integers(0, N_CLASSES, case.n_examples)
        self.X: Any = rng.normal(size=shape) + rng.normal(size=(N_CLASSES, N_FEATURES))[self.y]
        if case.is_sparse:
            self.X[rng.random(shape) < 0.7] = 0.0
            self.X = sparse.csr_array(self.X)
        self._fit(None, n_examples=300)  # loads the kernels

    def _fit(self, checkpoint: str | None, n_examples: int | None = None) -> list[Any]:
        model = TopKClassifier(
            self.case.loss,
            k=self.case.k,
            C=10.0,
            tol=TOL,
            max_epochs=100_000,
            random_state=0,
            checkpoint=checkpoint,
            checkpoint_every=self.every,
        )
        X, y = self.X[:n_examples], self.y[:n_examples]
        models = model.fit_path(X, y, PATH) if self.case.is_path else [model.fit(X, y)]
        return [each.result_ for each in models]

    def process(self, checkpoint: str, tally: Tally, killed_after: float | None) -> dict | None:
        """Train, or go on, and return what came of it; None if the process was killed."""
        tally.resumed += os.path.exists(checkpoint)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._train_and_exit(checkpoint, writing)
        os.close(writing)
        if killed_after is not None:
            while self.late and not os.path.exists(checkpoint) and _runs(child):
                time.sleep(0.001)
            time.sleep(killed_after)
            os.kill(child, signal.SIGKILL)
        with open(reading) as answer:
            text = answer.read()
        _, status, used = os.wait4(child, 0)
        tally.seconds += used.ru_utime + used.ru_stime
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            tally.kills += 1
            return None
        assert status == 0
        return json.loads(text)

    def _train_and_exit(self, checkpoint: str, writing: int) -> None:
        try:
            begin = time.perf_counter()
            results = self._fit(checkpoint)
            outcome = {
                "seconds": time.perf_counter() - begin,
                "primals": [result.primal for result in results],
                "gaps": [result.relative_gap for result in results],
                "status": [result.status for result in results],
            }
            with open(writing, "w") as answer:
                json.dump(outcome, answer)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def _runs(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def run_case(name: str, training: Training, kills: int, seed: int) -> bool:
    """Kill a case so many times, at moments spread over the time it takes, and tell of it."""
    moments = random.Random(f"{name} {seed}")
    undisturbed, tally, same = Tally(), Tally(), True
    with tempfile.TemporaryDirectory() as folder:
        alone = training.process(str(Path(folder) / "alone"), undisturbed, None)
        assert alone is not None
        while tally.kills < kills:
            checkpoint = str(Path(folder) / f"checkpoint {tally.runs}")
            last = None
            while last is None:
                moment = moments.uniform(0, alone["seconds"] / 2)
                last = training.process(checkpoint, tally, moment if tally.kills < kills else None)
            tally.runs += 1
            same = same and _same(alone, last)
        strays = len(list(Path(folder).rglob("*.part")))
    lost = max(tally.seconds - tally.runs * undisturbed.seconds, 0.0) / tally.kills
    sys.stdout.write(
        f"{name:9} {tally.kills:3} kills in {tally.runs} runs of {undisturbed.seconds:.1f} s, "
        f"{tally.resumed} resumed, {lost:5.2f} s lost a kill, "
        f"{'same optimum' if same else 'ANOTHER END'}, {strays} stray files\n"
    )
    sys.stdout.flush()
    return same


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
    parser.add_argument("--case", choices=CASES, action="append", help="these cases only")
    parser.add_argument("--examples", type=int, help="so many instead of each case's own number")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds between checkpoints")
    parser.add_argument("--late", action="store_true", help="kill none without a checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    same = True
    for name in options.case or CASES:
        n_examples = options.examples or CASES[name].n_examples
        case = CASES[name]._replace(n_examples=n_examples)
        training = Training(case, options.every, options.late)
        same = run_case(name, training, options.runs, options.seed) and same
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
