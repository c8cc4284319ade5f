"""Table 2 and Figure 3: losses for the top 2 on three overlapping classes around a circle."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from shortlist import losses
from shortlist.datasets import make_circle
from shortlist.experiments import paper
from shortlist.experiments.comparison import Dataset, accuracy_rows, mark_best
from shortlist.experiments.descents import Primal
from shortlist.experiments.protocol import accuracies, classifier, code_kind
from shortlist.experiments.report import Prose, Section, Value
from shortlist.experiments.units import Context, Task, Unit
from shortlist.plots.charts import Chart, Picture, numbered_series

KS = (1, 2)
PARTS = ("train", "val", "test")
#: C = 2^-18, ..., 2^18, the paper's range.
EXPONENTS = tuple(range(-18, 19))
TRUNCATED = "trunc-ent:2"
#: The row of the truncated loss from several starts, beside the paper's way from softmax alone.
SEVERAL = "several"
#: The models of the paper's Figure 3, each chosen for this k.
_FIGURE_3 = {"smooth-topk-svm:1": 1, TRUNCATED: 2}
#: Methods that are also trained to their optimum, to see whether two classes have the same weights
#: there. The notes say on how many draws.
_CHECKED_AT_OPTIMUM = ("svm-multi", "lr-multi")
#: The relative gap at which a model's weights count as the optimum's own.
_OPTIMUM_GAP = 1e-7
#: Weights of two classes that are nearer than this share of the longest count as the same.
_MAX_TIED_DISTANCE = 1e-3
_SPREAD = "standard deviation over the draws"
_PROSE = Prose("circle")


@dataclass(frozen=True)
class DrawModel:
    """The model chosen for a k on one draw; accuracies in per cent at the top 1 and 2."""

    C: float
    val: tuple[float, ...]
    test: tuple[float, ...]
    #: One row for each feature and one for the constant feature, one column for each class.
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class DrawResult:
    """One method on one draw."""

    chosen: dict[int, DrawModel]
    seconds: float
    #: The distance of the two most similar classes' weights at the optimum, as a share of the
    #: longest weight, where it was asked for.
    nearest_at_optimum: float | None


@dataclass(frozen=True)
class CircleResult:
    """Test accuracies (%) by row, draw and k, and seconds by row."""

    accuracy: dict[str, tuple[tuple[float, ...], ...]]
    seconds: dict[str, float]


@dataclass(frozen=True)
class DrawTask(Task):
    """Train one method on one draw for every C; choose a model for each k."""

    method: str
    draw: int
    seed: int
    n_train: int
    n_test: int
    exponents: tuple[int, ...] = EXPONENTS
    tol: float = 1e-3
    max_epochs: int = 300
    intercept: bool = False
    #: From how many starts a truncated loss is minimised.
    starts: int = 1
    #: A C at which the optimum itself is wanted.
    exact_C: float | None = None

    def run(self, payload: None = None) -> DrawResult:
        clock = time.perf_counter()
        (X, y), (X_val, y_val), (X_test, y_test) = map(self.part, PARTS)
        limits = {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": self.seed}
        model = classifier(self.method, fit_intercept=self.intercept, **limits)
        random = np.random.default_rng([self.seed, self.draw])
        classes = np.unique(y)

        def tested(X: Any, y: Any, weights: Any) -> tuple[float, ...]:
            # A tie counts by its chance of being broken well.
            return accuracies(y, scores(X, weights), classes, max(KS), "expected")

        eligible = []
        for fitted in model.fit_path(X, y, [2.0**exponent for exponent in self.exponents]):
            weights, converged = _weights(fitted), fitted.result_.status == "converged"
            if self.starts > 1:
                found = best_of_starts(model.k, X, y, fitted.C, weights, self.starts, random)
                weights, converged = found
            if converged:
                eligible.append((tested(X_val, y_val, weights), fitted.C, weights))
        if not eligible:
            raise ValueError(
                f"no model of {paper.display_name(self.method)} on draw {self.draw + 1} met its "
                f"tolerance of {self.tol:g} in {self.max_epochs} epochs; allow more of either"
            )
        chosen = {}
        for k in KS:
            on_val, C, weights = max(eligible, key=lambda each: each[0][k - 1])
            rows = tuple(tuple(row) for row in weights.tolist())
            chosen[k] = DrawModel(C, on_val, tested(X_test, y_test, weights), rows)
        seconds = time.perf_counter() - clock
        nearest = None
        if self.exact_C is not None:
            model.set_params(C=self.exact_C, tol=_OPTIMUM_GAP, max_epochs=20_000)
            weights = _weights(model.fit(X, y))
            longest = max(np.linalg.norm(weights, axis=0).max(), np.finfo(float).tiny)
            nearest = float(pdist(weights.T).min() / longest)
        return DrawResult(chosen, seconds, nearest)

    def unit(self) -> Unit:
        way = f", {self.starts} starts" if self.starts > 1 else ""
        name = f"circle, {paper.display_name(self.method)}{way}, draw {self.draw + 1}"
        weight = 3.0 if self.starts > 1 else 1.0
        return Unit(name, self, weight=weight, kind=code_kind(self.method))

    def part(self, part: str) -> tuple[Any, Any]:
        """One part of the draw's examples; all draws share the test examples."""
        entropy = [self.seed, 0 if part == "test" else 1 + self.draw, PARTS.index(part)]
        state = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        return make_circle(self.n_test if part == "test" else self.n_train, random_state=state)


def scores(X: Any, weights: Any) -> Any:
    """Scores of all classes; the last row of the weights belongs to the constant feature."""
    return X @ weights[:-1] + weights[-1]


def _weights(model: Any) -> Any:
    return np.vstack([model.coef_.T, model.intercept_[None, :]]).astype(np.float64)


def best_of_starts(
    k: int, X: Any, y: Any, C: float, first: Any, n_starts: int, random: np.random.Generator
) -> tuple[Any, bool]:
    """The lowest of several local minima of the truncated loss, without an intercept.

    One start is the model that came from softmax; the others have weights of the same length. The
    second answer is whether the descent to it converged.
    """
    classes, codes = np.unique(y, return_inverse=True)
    primal = Primal(X, codes, len(classes), losses.get("truncated_entropy", k=k), C)
    length = max(float(np.linalg.norm(first)), 1.0)
    others = random.normal(size=(n_starts - 1, *first[:-1].shape))
    starts = [first[:-1], *(length * each / np.linalg.norm(each) for each in others)]
    found = [primal.minimised(start, mean=True) for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    weights = best.x.reshape(starts[0].shape)
    return np.vstack([weights, np.zeros_like(weights[:1])]), bool(best.success)


def run(
    context: Context,
    *,
    draws: int = 20,
    n_train: int = 200,
    n_test: int = 200_000,
    starts: int = 9,
    tol: float = 1e-3,
    max_epochs: int = 300,
    intercept: bool = False,
) -> Section:
    """Train the nine methods on several draws of 200 points and average.

    draws : number of draws of training and validation points.
    n_train, n_test : points for training (and as many for validation), and for testing.
    starts : from how many starts the truncated loss is also minimised.
    intercept : whether the classifiers have one; the paper's have not.
    """
    if draws < 1 or n_train < 10 or n_test < 10 or starts < 2:
        raise ValueError("circle needs draws >= 1, n_train and n_test >= 10, starts >= 2")
    exponents = EXPONENTS
    if context.quick:
        draws, n_test, starts, exponents = min(draws, 2), min(n_test, 2000), 2, (-2, 1, 4)
    rows = {method: (method, 1) for method in paper.methods("circle")}
    if not intercept:
        rows[SEVERAL] = (TRUNCATED, starts)
    tasks = [
        DrawTask(
            *(method, draw, context.seed, n_train, n_test),
            *(exponents, tol, max_epochs, intercept, n),
            exact_C=1.0 if method in _CHECKED_AT_OPTIMUM else None,
        )
        for draw in range(draws)
        for method, n in rows.values()
    ]
    results = context.compute("circle", [task.unit() for task in tasks])
    by_row = {row: results[place :: len(rows)] for place, row in enumerate(rows)}
    return _section(by_row, starts, tasks[:: len(rows)])


def _section(by_row: Mapping[str, list[DrawResult]], starts: int, tasks: list[DrawTask]) -> Section:
    tested = {
        row: np.array([[result.chosen[k].test[k - 1] for k in KS] for result in results])
        for row, results in by_row.items()
    }
    means = {row: values.mean(axis=0).tolist() for row, values in tested.items()}
    spreads = {row: values.std(axis=0).tolist() for row, values in tested.items()}
    circle = Dataset.named("circle")
    ours = {row: mean for row, mean in means.items() if row != SEVERAL}
    rows = accuracy_rows(circle, ours, spreads, {("svm-multi", k): "†" for k in KS})
    if SEVERAL in by_row:
        name = f"{paper.display_name(TRUNCATED)}, {starts} starts"
        several = zip(means[SEVERAL], spreads[SEVERAL], strict=True)
        rows.append([name, *(Value(mean, spread=s) for mean, s in several)])
    # The draw whose two models are nearest to the paper's figure.
    found = [[r.chosen[k].test for r in by_row[m]] for m, k in _FIGURE_3.items()]
    theirs = [[paper.FIGURE_3[m]] for m in _FIGURE_3]
    draw = int(np.abs(np.subtract(found, theirs)).sum(axis=(0, 2)).argmin())
    shown = {
        paper.display_name(m): (by_row[m][draw].chosen[k], paper.FIGURE_3[m])
        for m, k in _FIGURE_3.items()
    }
    facts = {
        "task": tasks[0],
        "draws": len(tasks),
        "starts": starts,
        "best": means[SEVERAL if SEVERAL in by_row else TRUNCATED][1],
        "softmax": means["lr-multi"][1],
        "spread": np.mean(list(spreads.values()), axis=0),
        "truncated": tested[TRUNCATED][:, 1],
        "several": tested[SEVERAL][:, 1] if SEVERAL in by_row else None,
        # On how many draws two classes have the same weights at the optimum.
        "tied": {
            m: sum((r.nearest_at_optimum or 0.0) < _MAX_TIED_DISTANCE for r in by_row[m])
            for m in _CHECKED_AT_OPTIMUM
        },
        "cells": len(KS) * len(ours),
        "outside": _outside_our_range(tested),
        "draw": draw,
        "shown": shown,
    }
    rings = [_ring(tasks[draw], name, model) for name, (model, _) in shown.items()]
    return _PROSE.section(
        "circle",
        facts,
        tables=[_PROSE.table("accuracy", circle.columns, mark_best(rows), facts, spread=_SPREAD)],
        figures=[
            _PROSE.figure("rings", rings, facts),
            _PROSE.figure("draws", [_quantiles(tested, k, starts) for k in KS], facts),
        ],
        result=CircleResult(
            {row: tuple(map(tuple, values.tolist())) for row, values in tested.items()},
            {row: sum(r.seconds for r in results) for row, results in by_row.items()},
        ),
    )


def _outside_our_range(tested: Mapping[str, Any]) -> list[tuple[str, int, float, float, float]]:
    """Numbers that could not have come from one of our draws: whose, theirs, our range."""
    outside = []
    for method, k in product(paper.methods("circle"), KS):
        theirs, ours = paper.accuracy("circle", method, k), tested[method][:, k - 1]
        if not ours.min() <= theirs <= ours.max():
            outside.append((paper.display_name(method), k, theirs, ours.min(), ours.max()))
    return outside


def _ring(task: DrawTask, name: str, model: DrawModel) -> Picture:
    """The training points, and in each direction the labels that a model predicts."""
    title = "{}\ntop-1 {:.1f}%, top-2 {:.1f}%".format(name, *model.test)

    def paint(ax: Any) -> None:
        from shortlist.plots import CirclePredictionsDisplay

        X, y = task.part("train")
        angles = np.linspace(0.0, 2 * np.pi, 1440, endpoint=False)
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        predicted = scores(directions, np.array(model.weights))
        CirclePredictionsDisplay.from_predictions(
            X, y + 1, angles, predicted, classes=np.arange(1, 4), ax=ax, title=title
        )

    alternative = f"Points on a circle with two rings of predicted classes: {title}"
    return Picture(paint, alternative.replace("\n", ", "), (4.4, 5.0))


def _quantiles(tested: Mapping[str, Any], k: int, starts: int) -> Chart:
    """The accuracies of some rows on every draw, sorted."""
    names = {
        "lr-multi": "softmax",
        "smooth-topk-svm:1": "smooth top-1 SVM",
        "topk-svm:2": "top-2 SVM",
        "topk-ent:2": "top-2 Ent",
        TRUNCATED: "truncated, from softmax",
        SEVERAL: f"truncated, {starts} starts",
    }
    curves = {
        name: (range(1, len(tested[row]) + 1), np.sort(tested[row][:, k - 1]).tolist())
        for row, name in names.items()
        if row in tested
    }
    series = numbered_series(curves)
    return Chart("Draw, by accuracy", "Accuracy (%)", series, f"Top-{k}", x_whole=True)
