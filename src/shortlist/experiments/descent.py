"""Gradient descent from the softmax solution, as the paper trains its truncated losses.

The paper gives no stopping rule. How long one descends decides what the truncated losses are
like at small k; the accuracies along the way show where the paper's own numbers lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.experiments.methods import classifier
from shortlist.experiments.protocol import MAX_K, Parts
from shortlist.experiments.store import Record, Tick

#: Numbers of steps at which the models are looked at.
CHECKPOINTS = (0, 1, 2, 4, 8, 16, 32, 64, 96, 128)
#: Armijo's rule: a step must bring this share of what the slope promises.
_SUFFICIENT = 0.5


def descend_path(parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> Record:
    """Descend for one truncated loss at several C; accuracies at each checkpoint, C by C."""
    checkpoints: Sequence[int] = parameters["checkpoints"]
    Cs: Sequence[float] = parameters["Cs"]
    softmax = classifier(
        "lr-multi",
        tol=parameters["tol"],
        max_epochs=parameters["max_epochs"],
        random_state=parameters["seed"],
    ).fit_path(parts.X_train, parts.y_train, Cs)
    runs = []
    for number, start in enumerate(softmax):
        runs.append(_descend(parameters["method"], start, parts, checkpoints))
        tick((number + 1) / len(Cs))
    return {"method": parameters["method"], "Cs": list(Cs), "runs": runs}


def _descend(method: str, start: Any, parts: Parts, checkpoints: Sequence[int]) -> list[Record]:
    from shortlist import losses

    model = classifier(method)
    loss = losses.get(model.loss, k=model.k)
    X, y = parts.X_train, np.searchsorted(start.classes_, parts.y_train)
    n, C = len(y), start.C

    def objective(weights: Any) -> tuple[float, Any]:
        """The primal over C n, and its gradient: the paper's own scaling."""
        values, gradient = loss.value_and_gradient(X @ weights.astype(X.dtype), y)
        size = 0.5 * float(np.vdot(weights, weights)) / (C * n)
        return size + float(values.mean()), weights / (C * n) + X.T @ gradient / n

    weights = np.asarray(start.coef_.T, dtype=np.float64)
    value, gradient = objective(weights)
    step = 1.0
    points = []
    for iteration in range(max(checkpoints) + 1):
        if iteration in checkpoints:
            points.append(_look(weights, value, iteration, start.classes_, parts))
        slope = float(np.vdot(gradient, gradient))
        while True:
            trial = weights - step * gradient
            trial_value, trial_gradient = objective(trial)
            if trial_value <= value - _SUFFICIENT * step * slope or step < 1e-12:
                break
            step /= 2
        weights, value, gradient = trial, trial_value, trial_gradient
        step *= 2
    return points


def _look(weights: Any, value: float, iteration: int, classes: Any, parts: Parts) -> Record:
    from shortlist.metrics import topk_accuracy_curve

    def accuracies(X: Any, y: Any) -> list[float]:
        curve = topk_accuracy_curve(y, X @ weights, min(MAX_K, len(classes)), labels=classes)
        return (100 * curve).tolist()

    return {
        "iteration": iteration,
        "objective": value,
        "val": accuracies(parts.X_val, parts.y_val),
        "test": accuracies(parts.X_test, parts.y_test),
    }


def accuracies_along(record: Record, ks: Sequence[int]) -> dict[int, list[float]]:
    """For each k the test accuracy at each checkpoint, by the C that validation prefers there."""
    n_points = len(record["runs"][0])
    chosen: dict[int, list[float]] = {k: [] for k in ks}
    for place in range(n_points):
        models = [run[place] for run in record["runs"]]
        for k in ks:
            best = max(models, key=lambda model: model["val"][k - 1])
            chosen[k].append(best["test"][k - 1])
    return chosen
