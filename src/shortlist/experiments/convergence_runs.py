"""Training runs whose progress is recorded: ours, and the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shortlist.experiments.baselines import Primal, Trace, fista, lbfgs
from shortlist.experiments.protocol import Parts
from shortlist.experiments.store import Record, Tick

BASELINES = {"fista": fista, "lbfgs": lbfgs}


def train_ours(parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> Record:
    """Train with the library's solver; the history of gaps and accuracies."""
    from shortlist.estimators import TopKClassifier

    X, y, X_val, y_val = _examples(parts)
    options = {"loss": parameters["loss"], "C": parameters["C"], "fit_intercept": False}
    # The first call loads or compiles the kernels; that is not training time.
    TopKClassifier(**options, max_epochs=1).fit(*_a_few(X, y))
    tick(0.05)

    def told(progress: Any) -> None:
        if progress.last is not None and 0 < progress.last.relative_gap < 1:
            tick(min(np.log(progress.last.relative_gap) / np.log(parameters["tol"]), 0.99))

    model = TopKClassifier(
        **options,
        tol=parameters["tol"],
        max_epochs=parameters["max_epochs"],
        random_state=parameters["seed"],
    ).fit(X, y, X_val=X_val, y_val=y_val, callback=told)
    result = model.result_
    history = [
        {
            "seconds": e.seconds,
            "epoch": e.epoch,
            "primal": e.primal,
            "relative_gap": e.relative_gap,
            "accuracy": None if e.accuracy is None else 100 * e.accuracy,
        }
        for e in result.history
    ]
    tick(1.0)
    return {
        "history": history,
        "dual": max(e.dual for e in result.history),
        "primal": result.primal,
        "status": result.status,
        "solver": result.solver,
        "epochs": result.epochs,
    }


def train_baseline(parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> Record:
    """Train with a baseline until its objective is within the tolerance of the certified dual."""
    from shortlist import losses
    from shortlist.metrics import topk_accuracy

    X, y, X_val, y_val = _examples(parts)
    classes, codes = np.unique(y, return_inverse=True)

    def accuracy(weights: Any) -> float:
        return 100 * topk_accuracy(y_val, X_val @ weights, labels=classes)

    loss = losses.get(parameters["loss"])
    primal = Primal(X, codes, len(classes), loss, parameters["C"])
    primal(primal.zero())  # compiles what the first call compiles
    target = parameters["dual"] / (1.0 - parameters["tol"])
    trace = Trace(accuracy, parameters["limit"], target)
    BASELINES[parameters["solver"]](primal, trace)
    tick(1.0)
    return {"history": trace.points, "primal": min(p["primal"] for p in trace.points)}


def _examples(parts: Parts) -> tuple[Any, Any, Any, Any]:
    """Training examples, and examples to measure accuracy on: validation, or else test."""
    if parts.X_val is not None:
        return parts.X_train, parts.y_train, parts.X_val, parts.y_val
    return parts.X_train, parts.y_train, parts.X_test, parts.y_test


def _a_few(X: Any, y: Any) -> tuple[Any, Any]:
    """A small sample with every class, of the same types."""
    first = np.unique(y, return_index=True)[1]
    rows = np.unique(np.concatenate([first, np.arange(min(300, len(y)))]))
    return X[rows], np.asarray(y)[rows]
