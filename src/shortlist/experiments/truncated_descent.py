"""Gradient descent from the softmax solution, as the paper trains its truncated losses.

The paper gives no stopping rule. How long one descends decides what the truncated losses are
like at small k; the accuracies along the way show where the paper's own numbers lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shortlist.experiments.baselines import Primal
from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import MAX_K, classifier
from shortlist.experiments.units import Task

#: Numbers of steps at which the models are looked at.
CHECKPOINTS = (0, 1, 2, 4, 8, 16, 32, 64, 96, 128)
#: Armijo's rule: a step must bring this share of what the slope promises.
_SUFFICIENT_SHARE = 0.5


@dataclass(frozen=True)
class Checkpoint:
    """A model after so many steps; accuracies in per cent for k = 1, ..., 10."""

    steps: int
    objective: float
    val: tuple[float, ...]
    test: tuple[float, ...]


@dataclass(frozen=True)
class DescentResult:
    """The descents of one method, one for each C."""

    method: str
    Cs: tuple[float, ...]
    runs: tuple[tuple[Checkpoint, ...], ...]

    @property
    def steps(self) -> list[int]:
        return [point.steps for point in self.runs[0]]

    def accuracies(self, k: int) -> list[float]:
        """The top-k test accuracy at each checkpoint, by the C that validation prefers there."""
        best = [max(models, key=lambda m: m.val[k - 1]) for models in zip(*self.runs, strict=True)]
        return [model.test[k - 1] for model in best]


@dataclass(frozen=True)
class DescentTask(Task):
    """Descend for one truncated loss at several C."""

    result_type: ClassVar[type] = DescentResult

    method: str
    data: str
    Cs: tuple[float, ...]
    checkpoints: tuple[int, ...]
    tol: float
    max_epochs: int
    seed: int

    def run(self, payload: Parts) -> DescentResult:
        softmax = classifier(
            "lr-multi", tol=self.tol, max_epochs=self.max_epochs, random_state=self.seed
        ).fit_path(payload.X_train, payload.y_train, self.Cs)
        runs = (_descend(self.method, start, payload, self.checkpoints) for start in softmax)
        return DescentResult(self.method, self.Cs, tuple(runs))


def _descend(
    method: str, start: Any, parts: Parts, checkpoints: Sequence[int]
) -> tuple[Checkpoint, ...]:
    from shortlist import losses

    model = classifier(method)
    loss = losses.get(model.loss, k=model.k)
    y = np.searchsorted(start.classes_, parts.y_train)
    objective = Primal(parts.X_train, y, len(start.classes_), loss, start.C).mean
    weights = np.asarray(start.coef_.T, dtype=np.float64)
    value, gradient = objective(weights)
    step = 1.0
    points = []
    for steps in range(max(checkpoints) + 1):
        if steps in checkpoints:
            points.append(_look(weights, value, steps, start.classes_, parts))
        slope = float(np.vdot(gradient, gradient))
        while True:
            trial = weights - step * gradient
            trial_value, trial_gradient = objective(trial)
            if trial_value <= value - _SUFFICIENT_SHARE * step * slope or step < 1e-12:
                break
            step /= 2
        weights, value, gradient = trial, trial_value, trial_gradient
        step *= 2
    return tuple(points)


def _look(weights: Any, value: float, steps: int, classes: Any, parts: Parts) -> Checkpoint:
    from shortlist.metrics import topk_accuracy_curve

    def accuracies(X: Any, y: Any) -> tuple[float, ...]:
        curve = topk_accuracy_curve(y, X @ weights, min(MAX_K, len(classes)), labels=classes)
        return tuple((100 * curve).tolist())

    val, test = accuracies(parts.X_val, parts.y_val), accuracies(parts.X_test, parts.y_test)
    return Checkpoint(steps, value, val, test)
