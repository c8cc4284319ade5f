"""Figures past memory and past one machine: ``python -m benchmarks.scale COMMAND``.

    generate FOLDER [ROWS]               1,281,167 x 768 float32 features of 1000 classes, 3.9 GB
    fit FOLDER LOSS C [LIMIT] [CS...]    train on them, mapped; with CS the path over C
    rounds                               rounds and bytes to the gap for 1, 2, 4 and 8 workers
    speed [ROWS FEATURES CLASSES [FITS]] two workers against one process with two threads; fits are
                                         named as in softmax:0.1

``docs/scale.md`` has what they print. A fit also measures the two products with the data that an
epoch cannot avoid, in the same process on part of the rows, before training and after it.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier

N, D, M = 1_281_167, 768, 1000
# Standard deviation of an example around its class's mean, each of length about one.
NOISE = 1.5
ROWS_AT_ONCE = 1 << 16
# Fits of each kind in a comparison of speeds: with so many seeds, of which the mean counts, since
# some have luck with their epochs; and so many of each seed, in turns, of which the best counts.
SEEDS, TURNS = 3, 2
# What clusters are compared on.
FITS = [(loss, C) for loss in ("softmax", "smooth_hinge") for C in (0.1, 1.0, 10.0)]


def generate(folder: str, rows: str = str(N)) -> None:
    """Clusters of length about one, in random order, normalised as embeddings often are."""
    n = int(rows)
    random = np.random.default_rng(0)
    centres = random.standard_normal((M, D), np.float32) / np.float32(np.sqrt(D))
    y = random.integers(0, M, n)
    X = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, (n, D))
    for begin in range(0, n, ROWS_AT_ONCE):
        labels = y[begin : begin + ROWS_AT_ONCE]
        noise = random.standard_normal((len(labels), D), np.float32) * np.float32(NOISE / D**0.5)
        x = centres[labels] + noise
        X[begin : begin + ROWS_AT_ONCE] = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.save(Path(folder) / "y.npy", y)


def fit(folder: str, loss: str, C: str, limit: str = "none", *Cs: str) -> None:
    """Print a line of JSON: what training took, and what the products alone would take."""
    X = np.load(Path(folder) / "X.npy", mmap_mode="r")
    y = np.load(Path(folder) / "y.npy")
    k = 5 if loss == "smooth_hinge" else 1
    model = TopKClassifier(
        loss,
        k=k,
        C=float(C),
        random_state=0,
        memory_limit=None if limit == "none" else limit,
        verbose=1,
    )
    products = [_products(X)]
    began = time.perf_counter()
    if Cs:
        models = model.fit_path(X, y, [float(C) for C in Cs])
    else:
        models = [model.fit(X, y)]
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    products.append(_products(X))
    results = [model.result_ for model in models]
    trained = sum(result.seconds for result in results)
    epochs = sum(result.epochs for result in results)
    print(
        json.dumps(
            {
                "loss": loss,
                "C": [model.C for model in models],
                "plan": getattr(models[0], "memory_plan_", "everything in memory, rows mapped"),
                "seconds": seconds,
                "training_seconds": [result.seconds for result in results],
                "epochs": [result.epochs for result in results],
                "status": [result.status for result in results],
                "relative_gap": [result.relative_gap for result in results],
                "solver": [result.solver for result in results],
                "peak_gigabytes": peak / 1e9,
                "products_seconds": products,
                "times_products": trained / epochs / min(products),
            }
        )
    )


def _products(X: np.ndarray, rows: int = 1 << 15, repeats: int = 5) -> float:
    """Seconds for X W and X' G over all rows: the median of some parts of them."""
    x = np.array(X[:rows])
    W = np.ones((D, M), np.float32)
    x[:256] @ W  # threads are started
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        scores = x @ W
        x.T @ scores
        taken.append((time.perf_counter() - began) * len(X) / rows)
    return float(np.median(taken))


def rounds() -> None:
    """Rounds and bytes to the gap, by workers in this process, which take the same steps."""
    from benchmarks.one_process import OneProcess

    from shortlist.distributed.storage import RemoteRows

    X, y = clusters(20_000, 384, 50)
    print("| loss | C | workers | epochs | rounds | evaluations | MB sent | way |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for loss, C in FITS:
        for workers in (1, 2, 4, 8):
            parts = np.array_split(np.random.default_rng(0).permutation(len(y)), workers)
            group = OneProcess([X[part] for part in parts])
            model = TopKClassifier(loss, C=C, random_state=0)
            result = model.fit(RemoteRows(group, None), y[np.concatenate(parts)]).result_
            visits = group.calls["epoch"] + group.calls["polish"]
            print(
                f"| {loss} | {C:g} | {workers} | {result.epochs:.1f} | {visits} | "
                f"{group.calls['loss_gradient']} | {group.bytes_sent / 1e6:.0f} | "
                f"{result.solver} |",
                flush=True,
            )


def speed(rows: str = "60000", features: str = "768", classes: str = "200", *fits: str) -> None:
    """Two workers against one process with two threads; in these fits, or all."""
    from shortlist.distributed.cluster import Cluster, connected
    from shortlist.distributed.shards import shards_of_arrays
    from shortlist.distributed.storage import rows_with_workers

    X, y = clusters(int(rows), int(features), int(classes))
    print("| loss | C | workers | epochs | rounds | MB sent | seconds | speed | way |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    cluster = Cluster(2)
    with connected(cluster):
        shards, order = shards_of_arrays(X, 2)
        with rows_with_workers(shards, cluster, None) as there:
            for loss, C in FITS:
                if not fits or f"{loss}:{C:g}" in fits:
                    _race(loss, C, (X, y), (there, y[order]))


def _race(loss: str, C: float, here: tuple[Any, Any], there: tuple[Any, Any]) -> None:
    """Print a row for one process and one for two workers."""
    group = there[0].group
    for X, y in (here, there):  # kernels are loaded
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            TopKClassifier(loss, max_epochs=1).fit(X, y)
    means = []
    for name, (X, y) in (("one process", here), ("2", there)):
        best = np.full(SEEDS, np.inf)
        epochs = np.empty(SEEDS)
        group.sums = group.bytes_sent = 0
        for seed in np.tile(np.arange(SEEDS), TURNS).tolist():
            model = TopKClassifier(loss, C=C, random_state=seed)
            began = time.perf_counter()
            result = model.fit(X, y).result_
            best[seed] = min(best[seed], time.perf_counter() - began)
            epochs[seed] = result.epochs
        means.append(best.mean())
        fits = SEEDS * TURNS
        sent = f"{group.sums / fits:.0f} | {group.bytes_sent / fits / 1e6:.0f}"
        took = f"{means[-1]:.2f} | {means[0] / means[-1]:.2f}"
        row = f"{loss} | {C:g} | {name} | {epochs.mean():.1f} | {sent} | {took} | {result.solver}"
        print(f"| {row} |", flush=True)


def clusters(n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples of length one around a centre for each class, in random order."""
    random = np.random.default_rng(0)
    y = random.integers(0, m, n)
    X = random.standard_normal((m, d), np.float32)[y]
    X += 2 * random.standard_normal((n, d), np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"generate": generate, "fit": fit, "rounds": rounds, "speed": speed}
    commands[command](*arguments)
