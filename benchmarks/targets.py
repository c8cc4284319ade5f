"""The speed this library promises, as ratios measured in one run: pass or fail.

    python -m benchmarks targets [--clinc FILE.npz] [--news FILE.npz] [--only TEXT] [--json FILE]

Lines are ratios of seconds, ours against the fastest peer's or against matrix products; the last is
CPU seconds. Peers run to the same primal, as in ``python -m benchmarks peers``; ours runs until
certified. Without files, made-up embeddings stand in for CLINC150, and the text targets are left
out. ``python -m benchmarks --narrow targets`` measures as on a machine without AVX-512.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmarks.data import EMBEDDINGS, LETTER, Examples, load, make_embeddings
from benchmarks.epoch import LOSSES, measure
from benchmarks.machine import describe_machine, output
from benchmarks.peers import BLAS_GOES_TO_SLEEP, CERTIFIED, contest
from benchmarks.solvers import CYANURE, OWN, own_model, quietly, solvers_for
from rich.console import Console
from rich.table import Table

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV

TOLERANCE = 1e-3
# A peer that takes this many times as long as ours is cut short.
SLOWEST_PEER = 20.0
# The values of C that DINOv2's probes sweep.
SWEPT = np.logspace(-6, 5, 45)


@dataclass(frozen=True)
class Outcome:
    """A target and what was measured; ``at_least`` tells which side of it is good."""

    what: str
    wanted: float
    at_least: bool
    measured: float
    detail: str

    @property
    def met(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted


@dataclass(frozen=True)
class Target:
    """What is measured, the ratio wanted, and how to measure it."""

    what: str
    wanted: float
    at_least: bool
    measure: Callable[[], tuple[float, str]]

    def run(self) -> Outcome:
        measured, detail = self.measure()
        return Outcome(self.what, self.wanted, self.at_least, measured, detail)


def against_peers(data: Examples, loss: str, C: float, peer: str = "") -> tuple[float, str]:
    """The seconds of the fastest peer, or of the one named, over ours in the same process.

    Once Cyanure has run, torch uses one core for matrix products: 33 milliseconds instead of 17 for
    those of CLINC150. So Cyanure and ours get a process of their own.
    """
    model = own_model(loss, C, TOLERANCE)
    model.fit(data.X, data.y)  # compiles
    began = time.perf_counter()
    model.fit(data.X, data.y)
    # A peer this many times slower than Shortlist is not the fastest; its run is cut short.
    patience = SLOWEST_PEER * (time.perf_counter() - began) + 1.0
    names = [solver.name for solver in solvers_for(loss, data, C) if peer in solver.name]
    together = [name for name in names if name not in (OWN, CYANURE)]
    given = (loss, data, C, patience)
    groups = [_raced(*given, together)] if together else []
    if CYANURE in names:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            groups.append(process.submit(_raced, *given, [CYANURE]).result())
    ratios, told = [], []
    for ours, times in groups:
        ratios += [seconds / ours for seconds in times.values()]
        told += [f"{ours:.3f} s"] + [f"{name} {seconds:.3f} s" for name, seconds in times.items()]
    # A peer that was cut short took at least as long as the patience.
    return min(ratios, default=SLOWEST_PEER), ", ".join(told)


def _raced(
    loss: str, data: Examples, C: float, patience: float, peers: list[str]
) -> tuple[float, dict[str, float]]:
    """Our seconds, and those of the peers that get there."""
    given = {"targets": [TOLERANCE], "patience": patience, "reference_tol": 0.1 * TOLERANCE}
    rows = contest(loss, data, C, peers=peers, **given)
    times = {row.solver: row.best for row in rows if row.seconds}
    return times.pop(CERTIFIED), times


def against_products(data: Examples, loss: str, k: int, C: float) -> tuple[float, str]:
    """A whole certified fit over the two products of each of its epochs."""
    model = own_model(loss, C, TOLERANCE).set_params(k=k)
    quietly(lambda _: model.fit(data.X[:2000], data.y[:2000]), 0.0)  # compiles
    began = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    weights = np.zeros((data.X.shape[1], data.n_classes), data.X.dtype)
    began = time.perf_counter()
    scores = data.X @ weights
    data.X.T @ scores
    products = time.perf_counter() - began
    epochs = model.result_.epochs
    return seconds / (
        products * epochs
    ), f"{seconds:.1f} s, {epochs:.1f} epochs of {products:.2f} s"


@lru_cache(maxsize=1)
def sweep_of_scikit_learn(data: Examples) -> float:
    """Seconds of lbfgs for all C, one after another, with the accuracy on every fifth row."""
    from sklearn.linear_model import LogisticRegression

    X_val, y_val = data.X[::5], data.y[::5]
    began = time.perf_counter()
    for C in SWEPT:
        peer = LogisticRegression(C=C, max_iter=1000, fit_intercept=False)
        quietly(lambda _, peer=peer: peer.fit(data.X, data.y), 0.0)
        peer.score(X_val, y_val)
    return time.perf_counter() - began


def against_sweep(data: Examples, sweep: Callable[[], np.ndarray]) -> tuple[float, str]:
    """45 values of C, as DINO's probes sweep them: scikit-learn's seconds over ours."""
    sweep()  # compiles
    time.sleep(BLAS_GOES_TO_SLEEP)
    began = time.perf_counter()
    gaps = sweep()
    ours = time.perf_counter() - began
    certified = np.count_nonzero(gaps <= TOLERANCE)
    theirs = sweep_of_scikit_learn(data)
    return theirs / ours, f"{ours:.1f} s, {certified} of 45 certified; lbfgs {theirs:.1f} s"


def path_over(data: Examples) -> np.ndarray:
    """Gaps of ``fit_path``, which takes the accuracy on every fifth row too."""
    found = own_model("softmax", 1.0, TOLERANCE).fit_path(data.X, data.y, SWEPT)
    for model in found:
        model.score(data.X[::5], data.y[::5])
    return np.array([model.result_.relative_gap for model in found])


def search_over(data: Examples) -> np.ndarray:
    """Gaps of ``TopKClassifierCV`` on the same data, which chooses C for two lengths of lists."""
    search = TopKClassifierCV(
        "softmax",
        Cs=SWEPT,
        ks=(1, 5),
        tol=TOLERANCE,
        max_extensions=0,
        fit_intercept=False,
        random_state=0,
    )
    search.fit(data.X, data.y, X_val=data.X[::5], y_val=data.y[::5])
    return search.cv_results_["relative_gap"]


def against_small_fits() -> tuple[float, str]:
    """Iris, 150 x 4: our fit over LogisticRegression's, medians of 30 in turn."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    X, y = load_iris(return_X_y=True)
    models = {"ours": TopKClassifier("softmax", random_state=0), "peer": LogisticRegression()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(31):
        for name, model in models.items():
            began = time.perf_counter()
            quietly(lambda _, model=model: model.fit(X, y), 0.0)
            seconds[name].append(time.perf_counter() - began)
    ours, peer = (1e3 * float(np.median(seconds[name][1:])) for name in ("ours", "peer"))
    return ours / peer, f"{ours:.1f} ms, LogisticRegression {peer:.1f} ms"


def against_svc(C: float) -> tuple[float, str]:
    """Digits with the rbf kernel: our multiclass hinge over SVC's fit, the best of 9 in turn."""
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    models = {"ours": KernelTopKClassifier("hinge", C=C, random_state=0), "peer": SVC(C=C)}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(10):
        for name, model in models.items():
            began = time.perf_counter()
            model.fit(X / 16, y)
            seconds[name].append(time.perf_counter() - began)
    ours, peer = (min(seconds[name][1:]) for name in ("ours", "peer"))
    return ours / peer, f"{1e3 * ours:.0f} ms, SVC {1e3 * peer:.0f} ms"


FIRST_FIT = """
import resource, time
from sklearn.datasets import load_iris
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
before = resource.getrusage(resource.RUSAGE_SELF)
TopKClassifier().fit(*load_iris(return_X_y=True))
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
"""


def first_use() -> tuple[float, str]:
    """CPU seconds of the first fit where no kernel has been compiled."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    seconds = float(done.stdout)
    return seconds, f"{seconds:.1f} s of CPU to compile and fit the default classifier"


def targets(options: argparse.Namespace) -> list[Target]:
    """All targets, in the order they are run."""
    found = []
    for shape, wanted in (((10_000, 2048, 1000), 1.35), ((15_000, 384, 150), 2.2)):
        for name, k in LOSSES:
            found.append(
                Target(
                    f"epoch / products, {name} k={k}, {' x '.join(map(str, shape))}",
                    wanted,
                    False,
                    lambda shape=shape, name=name, k=k: _epoch(shape, name, k),
                )
            )
    clinc = load(options.clinc) if options.clinc else load(EMBEDDINGS)
    letter = load(LETTER)
    for data, loss, wanted_at in (
        (clinc, "softmax", {1: 5, 10: 5, 100: 3, 1000: 3}),
        (clinc, "hinge", {1: 10, 10: 10, 100: 10, 1000: 10}),
        (letter, "softmax", {1: 2, 10: 2, 100: 2, 1000: 2}),
        (letter, "hinge", {1: 3, 10: 3}),
    ):
        found += [_peers(data, loss, C, wanted) for C, wanted in wanted_at.items()]
    if options.news:
        news = load(options.news)
        found += [_peers(news, "softmax", C, 8, "scikit-learn lbfgs") for C in (1, 10)]
        found += [_peers(news, "hinge", C, wanted) for C, wanted in ((1, 3), (10, 2))]
    found.append(_made_up((10_000, 2048, 1000), "softmax", 10, 8, "scikit-learn lbfgs"))
    found.append(_made_up((54_000, 128, 1000), "softmax", 10, 5))
    for loss, k in (("entropy", 1), ("smooth_hinge", 5)):
        found.append(
            Target(
                f"fit / products of its epochs, {loss} k={k} C=1, 100000 x 768 x 1000",
                3.2,
                False,
                lambda loss=loss, k=k: against_products(
                    _examples((100_000, 768, 1000)), loss, k, 1.0
                ),
            )
        )
    found += [
        Target(
            f"lbfgs / {name}, {clinc.name} softmax, 45 values of C",
            10,
            True,
            lambda sweep=sweep: against_sweep(clinc, lambda: sweep(clinc)),
        )
        for name, sweep in (("fit_path", path_over), ("TopKClassifierCV", search_over))
    ]
    found += [
        Target("ours / LogisticRegression, a fit of 150 x 4", 2, False, against_small_fits),
        *(
            Target(f"ours / SVC, digits rbf hinge C={C:g}", 2, False, lambda C=C: against_svc(C))
            for C in (0.1, 1.0, 10.0)
        ),
        Target("CPU seconds of the first fit of all", 6, False, first_use),
    ]
    return [target for target in found if options.only in target.what]


def _epoch(shape: tuple[int, int, int], name: str, k: int) -> tuple[float, str]:
    X, y = make_embeddings(*shape)
    found = measure(X, y.astype(np.int64), name, k)
    return found.ratio, f"{found.epoch:.3f} s, products {found.products:.3f} s"


def _peers(data: Examples, loss: str, C: float, wanted: float, peer: str = "") -> Target:
    what = f"{peer or 'fastest peer'} / ours, {data.name} {loss} C={C:g}"
    return Target(what, wanted, True, lambda: against_peers(data, loss, C, peer))


def _examples(shape: tuple[int, int, int]) -> Examples:
    X, y = make_embeddings(*shape)
    return Examples(" x ".join(map(str, shape)), X, y.astype(np.int64))


def _made_up(
    shape: tuple[int, int, int], loss: str, C: float, wanted: float, peer: str = ""
) -> Target:
    what = f"{peer or 'fastest peer'} / ours, {' x '.join(map(str, shape))} {loss} C={C:g}"
    return Target(what, wanted, True, lambda: against_peers(_examples(shape), loss, C, peer))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clinc", metavar="FILE", help="CLINC150 embeddings")
    parser.add_argument("--news", metavar="FILE", help="20 newsgroups, tf-idf")
    parser.add_argument("--only", default="", metavar="TEXT", help="targets whose name has this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    err, out = Console(stderr=True), output()
    outcomes = []
    for target in targets(options):
        err.print(target.what, highlight=False)
        outcome = target.run()
        outcomes.append(outcome)
        sign = ">=" if outcome.at_least else "<="
        verdict = "pass" if outcome.met else "FAIL"
        err.print(
            f"  {outcome.measured:.2f} ({sign} {outcome.wanted:g}) {verdict}: {outcome.detail}",
            highlight=False,
        )
    table = Table("target", "wanted", "measured", "", "detail")
    for outcome in outcomes:
        sign = ">=" if outcome.at_least else "<="
        table.add_row(
            outcome.what,
            f"{sign} {outcome.wanted:g}",
            f"{outcome.measured:.2f}",
            "pass" if outcome.met else "FAIL",
            outcome.detail,
        )
    out.print(table)
    machine = describe_machine()
    out.print(", ".join(f"{name} {fact}" for name, fact in machine.items()))
    if options.json:
        rows = [{**asdict(outcome), "met": outcome.met} for outcome in outcomes]
        text = json.dumps({"machine": machine, "targets": rows}, indent=1)
        options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
