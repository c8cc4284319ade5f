"""Figures 1 and 2: duality gap and accuracy against time, ours and first-order baselines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from shortlist import losses
from shortlist.datasets import LabeledData
from shortlist.estimators import TopKClassifier
from shortlist.experiments.descents import BASELINES, Point, Primal, Trace
from shortlist.experiments.parts import Parts, letter_parts, read_parts
from shortlist.experiments.report import Figure, Prose, Section
from shortlist.experiments.units import Context, Task, Unit
from shortlist.metrics import topk_accuracy
from shortlist.plots.charts import Chart, numbered_series

LOSSES = {"entropy": "softmax", "hinge": "multiclass SVM", "smooth_hinge": "smooth multiclass SVM"}
SMOOTH = ("entropy", "smooth_hinge")
#: Our solver, beside the baselines.
OURS = "shortlist"
SOLVERS = {OURS: "Shortlist", "fista": "FISTA", "lbfgs": "L-BFGS"}
SETS = {"letter": "Letter", "synthetic": "synthetic clusters", "given": "the given data"}
#: Where times are compared: the tolerance that the paper and this library stop at, and beyond.
LEVELS = (1e-2, 1e-3, 1e-4, 1e-5)
#: What the table of times has to know.
WORDS = {"losses": LOSSES, "solvers": SOLVERS, "sets": SETS, "levels": LEVELS}
#: The smallest distance that a logarithmic axis shows.
_MIN_SUBOPTIMALITY = 1e-12
_TIME = "Time (seconds)"
_PROSE = Prose("convergence")


@dataclass(frozen=True)
class Training:
    """A training run: what was reached when, and the best dual that was certified."""

    points: tuple[Point, ...]
    dual: float | None

    def suboptimality(self, dual: float) -> list[float]:
        """How far the objective is above a dual, relative to the objective."""
        return [max((p.primal - dual) / p.primal, _MIN_SUBOPTIMALITY) for p in self.points]

    def gaps(self) -> list[float]:
        return [p.relative_gap for p in self.points]

    def seconds(self) -> list[float]:
        return [p.seconds for p in self.points]

    def seconds_to(self, values: Sequence[float], level: float) -> float | None:
        """When the values first were at the level or below."""
        reached = (p.seconds for p, v in zip(self.points, values, strict=True) if v <= level)
        return next(reached, None)


@dataclass(frozen=True)
class TrainingTask(Task):
    """Train a loss; accuracies are on validation or else test examples.

    The library's solver certifies a dual. A baseline is given such a dual. It stops when its
    objective is within the tolerance of it, or after so many seconds.
    """

    timed: ClassVar[bool] = True
    loss: str
    data: str
    C: float
    tol: float
    max_epochs: int
    limit: float
    seed: int
    solver: str = OURS
    dual: float = 0.0

    def run(self, payload: Parts) -> Training:
        train = self._ours if self.solver == OURS else self._baseline
        return train(*payload.train, *(payload.val or payload.part("test")))

    def _ours(self, X: Any, y: Any, X_val: Any, y_val: Any) -> Training:
        model = TopKClassifier(self.loss, C=self.C, fit_intercept=False, max_epochs=1)
        # The first call loads or compiles the kernels; that is not training time.
        model.fit(X, y)
        model.set_params(tol=self.tol, max_epochs=self.max_epochs, random_state=self.seed)
        history = model.fit(X, y, X_val=X_val, y_val=y_val).result_.history
        points = [Point(e.seconds, e.primal, 100 * e.accuracy, e.relative_gap) for e in history]
        return Training(tuple(points), max(e.dual for e in history))

    def _baseline(self, X: Any, y: Any, X_val: Any, y_val: Any) -> Training:
        classes, codes = np.unique(y, return_inverse=True)

        def accuracy(weights: Any) -> float:
            return 100 * topk_accuracy(y_val, X_val @ weights, labels=classes)

        primal = Primal(X, codes, len(classes), losses.get(self.loss), self.C)
        primal(primal.zero())  # compiles what the first call compiles
        trace = Trace(accuracy, self.limit, self.dual / (1.0 - self.tol))
        BASELINES[self.solver](primal, trace)
        return Training(tuple(trace.points), None)


def synthetic_parts(seed: int) -> Parts:
    """Gaussian clusters, two to a class, heavily overlapping: 8000 x 256, 100 classes."""
    random = np.random.default_rng(seed)
    n_classes, d, n_train, n_test = 100, 256, 6000, 2000
    centres = random.normal(size=(n_classes, 2, d)) / np.sqrt(d)
    y = random.integers(n_classes, size=n_train + n_test)
    which = random.integers(2, size=len(y))
    X = centres[y, which] + random.normal(size=(len(y), d)) * (1.6 / np.sqrt(d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    train, test = (LabeledData(X[rows], y[rows]) for rows in np.split(range(len(y)), [n_train]))
    return Parts("synthetic", train, test=test)


@dataclass(frozen=True)
class SetResult:
    """The runs on one data set, by loss and solver."""

    name: str
    runs: dict[str, dict[str, Training]]

    def dual(self, loss: str) -> float:
        """The best dual that a run has certified."""
        return self.runs[loss][OURS].dual or 0.0


def run(
    context: Context,
    *,
    data: Path | None = None,
    C: float = 1.0,
    tol: float = 1e-6,
    limit: float = 20.0,
    max_epochs: int = 3000,
) -> Section:
    """Train softmax, SVM and smooth SVM to a small gap, and the smooth ones by baselines as well.

    data : a file with training and test (or validation) examples, in place of a synthetic set.
    C : the regularisation parameter.
    tol : the relative duality gap to go to.
    limit : seconds after which a baseline is stopped.
    max_epochs : passes over the data after which our solver is stopped.
    """
    sets = {"letter": letter_parts()}
    if data is None:
        sets["synthetic"] = synthetic_parts(context.seed)
    else:
        sets["given"] = read_parts(data, seed=context.seed)
    if context.quick:
        sets = {name: parts.subsample(500, context.seed) for name, parts in sets.items()}
        tol, limit = max(tol, 1e-4), min(limit, 0.5)
    task = TrainingTask("", "", C, tol, max_epochs, limit, context.seed)
    results = [_runs(context, name, parts, task) for name, parts in sets.items()]
    softmax = {SETS[each.name]: each.runs["entropy"][OURS] for each in results}
    facts = {"C": C, "softmax": {name: t.seconds_to(t.gaps(), 1e-3) for name, t in softmax.items()}}
    return _PROSE.section(
        "convergence",
        facts,
        tables=[
            _PROSE.written_table("times", {**WORDS, "result": each}, name=f"times-{each.name}")
            for each in results
        ],
        figures_first=True,
        figures=[figure for result in results for figure in _figures(result)],
        result=tuple(results),
    )


def _runs(context: Context, name: str, parts: Parts, task: TrainingTask) -> SetResult:
    """Train every loss, then the smooth ones by the baselines as well."""
    title = f"convergence, {name}"
    result = SetResult(name, {loss: {} for loss in LOSSES})

    def train(what: str, tasks: Sequence[TrainingTask]) -> None:
        names = [f"{title}, {LOSSES[each.loss]}, {SOLVERS[each.solver]}" for each in tasks]
        units = [Unit(name, each, parts) for name, each in zip(names, tasks, strict=True)]
        computed = context.compute(what, units, alone=True)
        for each, training in zip(tasks, computed, strict=True):
            result.runs[each.loss][each.solver] = training

    task = replace(task, data=parts.fingerprint)
    train(title, [replace(task, loss=loss) for loss in LOSSES])
    pairs = product(SMOOTH, BASELINES)
    baselines = [replace(task, loss=loss, solver=s, dual=result.dual(loss)) for loss, s in pairs]
    train(f"{title}, baselines", baselines)
    return result


def _figures(result: SetResult) -> list[Figure]:
    ours = {words: result.runs[loss][OURS] for loss, words in LOSSES.items()}
    gaps = {words: (t.seconds(), t.gaps()) for words, t in ours.items()}
    accuracies = {w: (t.seconds(), [p.accuracy for p in t.points]) for w, t in ours.items()}
    gap = Chart(_TIME, "Relative duality gap", numbered_series(gaps), "Gap", "log", "log")
    gap = replace(gap, levels=[(1e-3, "1e-3, where we stop")])
    accuracy = Chart(_TIME, "Top-1 accuracy (%)", numbered_series(accuracies), "Accuracy", "log")
    baselines = []
    for loss in SMOOTH:
        runs, title = result.runs[loss], LOSSES[loss][0].upper() + LOSSES[loss][1:]
        above = {
            SOLVERS[s]: (t.seconds(), t.suboptimality(result.dual(loss))) for s, t in runs.items()
        }
        series = numbered_series(above)
        baselines.append(Chart(_TIME, "Relative suboptimality", series, title, "log", "log"))
    facts = {"title": SETS[result.name]}
    return [
        _PROSE.figure(block, charts, facts, name=f"{block}-{result.name}")
        for block, charts in {"gap": [gap, accuracy], "baselines": baselines}.items()
    ]
