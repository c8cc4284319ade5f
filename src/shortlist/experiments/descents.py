"""The primal of a smooth loss, and methods that minimise it as a whole.

P(W) = 1/2 |W|^2 + C sum_i L(y_i, W'x_i) with the library's own values and gradients of the loss L:
where the solver is measured against FISTA and L-BFGS, algorithms are compared, not implementations
of a loss. Gradient descent from the softmax solution is how the paper trains its truncated losses.
It gives no stopping rule. How long one descends decides what these losses are like at small k; the
accuracies along the way show where the paper's own numbers lie.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import accuracies, classifier, loss_of
from shortlist.experiments.units import Task
from shortlist.losses import Loss

#: Numbers of steps at which the models are looked at.
STEPS_SHOWN = (0, 1, 2, 4, 8, 16, 32, 64, 96, 128)
#: Armijo's rule: a step must bring this share of what the slope promises.
_SUFFICIENT_SHARE = 0.5
#: Steps shorter than this are taken whatever they bring: rounding decides.
_MIN_STEP = 1e-12


@dataclass(frozen=True)
class Primal:
    """The objective of a smooth loss over dense examples; labels are 0, ..., n_classes - 1."""

    X: NDArray
    y: NDArray
    n_classes: int
    loss: Loss
    C: float

    def zero(self) -> NDArray:
        return np.zeros((self.X.shape[1], self.n_classes), self.X.dtype)

    def losses(self, weights: NDArray) -> tuple[float, NDArray]:
        """C sum_i L and its gradient."""
        scores = self.X @ weights.astype(self.X.dtype, copy=False)
        values, gradient = self.loss.value_and_gradient(scores, self.y)
        return self.C * float(values.sum()), self.X.T @ (self.C * gradient)

    def __call__(self, weights: NDArray) -> tuple[float, NDArray]:
        """P and its gradient."""
        value, gradient = self.losses(weights)
        return 0.5 * float(np.vdot(weights, weights)) + value, weights + gradient

    def mean(self, weights: NDArray) -> tuple[float, NDArray]:
        """P / (C n), the paper's scaling, and its gradient."""
        value, gradient = self(weights)
        scale = self.C * len(self.y)
        return value / scale, gradient / scale

    def minimised(self, start: NDArray, *, mean: bool = False, **how: Any) -> Any:
        """SciPy's L-BFGS from weights; its result, in which weights are flat."""
        shape, function = start.shape, self.mean if mean else self

        def objective(flat: NDArray) -> tuple[float, NDArray]:
            value, gradient = function(flat.reshape(shape))
            return value, gradient.reshape(-1).astype(np.float64, copy=False)

        return minimize(objective, start.reshape(-1), jac=True, method="L-BFGS-B", **how)


@dataclass(frozen=True)
class Point:
    """The objective and accuracy after some seconds of training; the gap, where there is a dual."""

    seconds: float
    primal: float
    accuracy: float
    relative_gap: float = math.nan


@dataclass
class Trace:
    """The course of a training run. The clock stops while accuracy is measured."""

    accuracy: Callable[[NDArray], float]
    limit: float
    target: float
    points: list[Point] = field(default_factory=list)
    clock: float = field(default_factory=time.perf_counter)

    def note(self, primal: float, weights: NDArray) -> bool:
        """Note a point. Return whether the target or the time limit is reached."""
        seconds = time.perf_counter() - self.clock
        # Points a hundredth apart on the axis of time could not be told from each other.
        if not self.points or seconds > 1.01 * self.points[-1].seconds:
            self.points.append(Point(seconds, primal, self.accuracy(weights)))
            self.clock += time.perf_counter() - self.clock - seconds
        return primal <= self.target or seconds > self.limit


def fista(primal: Primal, trace: Trace) -> None:
    """FISTA with backtracking: a gradient step on the losses, then the prox of 1/2 |W|^2.

    Momentum starts anew whenever the objective rises, which only makes it faster.
    """
    weights = primal.zero()
    point, momentum, step = weights, 1.0, 1.0 / (primal.C * len(primal.y))
    last = np.inf
    while True:
        value, gradient = primal.losses(point)
        while True:
            trial = (point - step * gradient) / (1.0 + step)
            change = trial - point
            trial_value, _ = primal.losses(trial)
            bound = value + float(np.vdot(gradient, change))
            bound += float(np.vdot(change, change)) / (2.0 * step)
            # Rounding must not be taken for curvature.
            if trial_value <= bound + 1e-12 * abs(value):
                break
            step /= 2.0
        objective = 0.5 * float(np.vdot(trial, trial)) + trial_value
        if objective > last:
            if momentum == 1.0:
                return  # not even a plain step helps any more
            point, momentum = weights, 1.0
            continue
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        point = trial + (momentum - 1.0) / following * (trial - weights)
        weights, momentum, last = trial, following, objective
        step *= 1.1
        if trace.note(objective, weights):
            return


def lbfgs(primal: Primal, trace: Trace) -> None:
    """SciPy's L-BFGS from zero."""
    start = primal.zero().astype(np.float64)

    def look(intermediate_result: Any) -> None:
        weights = intermediate_result.x.reshape(start.shape)
        if trace.note(float(intermediate_result.fun), weights):
            raise StopIteration  # how SciPy is told that it is enough

    options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0}
    primal.minimised(start, callback=look, options=options)


BASELINES = {"fista": fista, "lbfgs": lbfgs}


@dataclass(frozen=True)
class DescentModel:
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
    runs: tuple[tuple[DescentModel, ...], ...]

    @property
    def steps(self) -> list[int]:
        return [point.steps for point in self.runs[0]]

    def accuracies(self, k: int) -> list[float]:
        """The top-k test accuracy after each number of steps, by the C preferred in validation."""
        best = [max(models, key=lambda m: m.val[k - 1]) for models in zip(*self.runs, strict=True)]
        return [model.test[k - 1] for model in best]


@dataclass(frozen=True)
class DescentTask(Task):
    """Descend for one truncated loss at several C."""

    method: str
    data: str
    Cs: tuple[float, ...]
    steps_shown: tuple[int, ...]
    tol: float
    max_epochs: int
    seed: int

    def run(self, payload: Parts) -> DescentResult:
        limits = {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": self.seed}
        X, y = payload.train
        softmax = classifier("lr-multi", **limits).fit_path(X, y, self.Cs)
        runs = tuple(self._descend(start, payload) for start in softmax)
        return DescentResult(self.method, self.Cs, runs)

    def _descend(self, start: Any, parts: Parts) -> tuple[DescentModel, ...]:
        classes = start.classes_
        y = np.unique(parts.y_train, return_inverse=True)[1]
        objective = Primal(parts.X_train, y, len(classes), loss_of(self.method), start.C).mean
        weights = np.asarray(start.coef_.T, dtype=np.float64)
        value, gradient = objective(weights)
        step = 1.0
        points = []
        for steps in range(max(self.steps_shown) + 1):
            if steps in self.steps_shown:
                val = accuracies(parts.y_val, parts.X_val @ weights, classes)
                test = accuracies(parts.y_test, parts.X_test @ weights, classes)
                points.append(DescentModel(steps, value, val, test))
            slope = float(np.vdot(gradient, gradient))
            while True:
                trial = weights - step * gradient
                trial_value, trial_gradient = objective(trial)
                if trial_value <= value - _SUFFICIENT_SHARE * step * slope or step < _MIN_STEP:
                    break
                step /= 2
            weights, value, gradient = trial, trial_value, trial_gradient
            step *= 2
        return tuple(points)
