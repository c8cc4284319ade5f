"""What was computed for a data set of Table 3, and its section: tables, figures, remarks.

The remarks say why some numbers are far from the paper's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shortlist._progress import duration
from shortlist.experiments import comparison, paper
from shortlist.experiments.comparison import Dataset, Place, family_starts, standard_error
from shortlist.experiments.descents import DescentResult
from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import MAX_K, Model, PathResult
from shortlist.experiments.report import Cell, Facts, Prose, Remark, Section, Table, Value
from shortlist.plots.charts import Chart, Series

Results = Mapping[str, PathResult]

#: Numbers further than this from the paper's, in points, are pointed out.
MAX_POINTS_APART = 0.7
#: Two numbers count as different if a paired test has a smaller p than this.
SIGNIFICANT_P = 0.05
SOFTMAX = "lr-multi"
#: The panels share one scale, in points; what losses give up far below it is cut off.
_GAIN_LIMITS = (-6.0, 3.0)
#: The numbers of the colours of losses and columns with this k.
_COLORS = {1: 6, 3: 0, 5: 1, 10: 2}
#: The methods whose accuracy is shown against C.
_BY_C = "svm-multi lr-multi smooth-topk-svm:1 topk-svm:5 smooth-topk-svm:5 topk-ent:5 trunc-ent:5"
_PROSE = Prose("table3")


class ComparedCell(NamedTuple):
    """A cell of Table 3 by its name: our accuracy beside the paper's, also on the paper's grid."""

    name: str
    value: Value
    on_paper_grid: Value | None


class ChoiceOfC(NamedTuple):
    """How far the choice of C alone moves a cell's number.

    ``tests`` are the test accuracies of all models whose validation accuracy is within ``error``,
    its standard error, of the best. ``spread`` is the standard error of a test accuracy.
    """

    cell: ComparedCell
    tests: list[float]
    error: float
    spread: float


@dataclass(frozen=True)
class DatasetOutcome:
    """What was computed for a data set."""

    dataset: Dataset
    parts: Parts
    results: Mapping[str, PathResult]
    descents: Sequence[DescentResult] = ()
    #: Some methods again, with C on the grid that the paper seems to have used.
    on_paper_grid: Mapping[str, PathResult] = field(default_factory=dict)

    def cell(self, method: str, k: int) -> ComparedCell:
        name, grid = f"{paper.display_name(method)} at top-{k}", self.on_paper_grid.get(method)
        value = self.dataset.value(method, k, self.results[method].accuracy(k))
        again = self.dataset.value(method, k, grid.accuracy(k)) if grid else None
        return ComparedCell(name, value, again)

    @property
    def far_places(self) -> list[Place]:
        """The cells whose number is further than the tolerance from the paper's."""
        places = [(method, k) for method in self.results for k in self.dataset.ks]
        return [(m, k) for m, k in places if self.cell(m, k).value.is_far(MAX_POINTS_APART)]

    @property
    def other_facts(self) -> dict[str, tuple[int, int]]:
        """What shows that the examples are not the paper's: our number, and the paper's.

        The paper's table rounds: 4096 is 4K in it.
        """
        if not self.dataset.in_paper:
            return {}
        key, train = self.dataset.key, self.parts.train
        theirs = paper.TABLE_4[key]
        facts = {
            "classes": (train.n_classes, theirs.n_classes),
            "training examples": (train.n_samples, theirs.n_train),
            "features": (train.n_features, paper.RAW_FEATURES.get(key, theirs.n_features)),
        }
        return {what: both for what, both in facts.items() if abs(both[0] / both[1] - 1) > 0.03}


@dataclass(frozen=True)
class Table3Result:
    """The numbers of one data set: by method, and accuracies by k."""

    dataset: str
    n_test: int
    accuracy: dict[str, dict[int, float]]
    left_out: dict[str, int]
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]

    @classmethod
    def of(cls, outcome: DatasetOutcome) -> "Table3Result":
        results, dataset = outcome.results.items(), outcome.dataset
        accuracy = {m: {k: r.accuracy(k) for k in dataset.ks} for m, r in results}
        names = ("n_left_out", "seconds", "cpu_seconds")
        others = [{m: getattr(r, name) for m, r in results} for name in names]
        return cls(dataset.key, outcome.parts.X_test.shape[0], accuracy, *others)


def section(outcome: DatasetOutcome, tol: float, *, explain: bool = True) -> Section:
    """Everything about a data set; ``explain``: with remarks on differences from the paper."""
    dataset, parts, results = outcome.dataset, outcome.parts, outcome.results
    accuracy = accuracy_table(dataset, results)
    differences = [value.difference for value in accuracy.values if value.difference is not None]
    seconds = sum(result.cpu_seconds for result in results.values())
    facts = {
        "dataset": dataset,
        "parts": parts,
        "models": [model for result in results.values() for model in result.models],
        "tol": tol,
        "tolerance": MAX_POINTS_APART,
        "explain": explain,
        "time": duration(seconds),
        # Numbers on other examples cannot be compared with the paper's.
        "apart": []
        if outcome.other_facts
        else sorted(abs(each) for each in differences if math.isfinite(each)),
    }
    # Without a validation part only the models chosen for the table's ks are tested.
    every_k = tuple(range(1, min(MAX_K, parts.n_classes) + 1))
    panels = {
        "gains": _gains_by_k(every_k if parts.val is not None else dataset.ks, results),
        "regularisation": _along_c(outcome),
        "descent": _along_descent(outcome),
    }
    again = outcome.on_paper_grid
    on_grid = [_accuracies("paper_grid", dataset, again, {}, {})] if again else []
    details = [*paired_tables(dataset, results), _training_table(dataset, results)]
    remarks = []
    if explain:
        remarks = explain_far_cells(outcome, outcome.far_places) + explain_left_out(outcome)
        remarks += _PROSE.remarks("rows", {"dataset": dataset, "results": results})
    return _PROSE.section(
        dataset.key,
        facts,
        tables=[accuracy, *on_grid, *details],
        figures=[_PROSE.figure(block, each, facts) for block, each in panels.items() if each],
        remarks=remarks,
        result=Table3Result.of(outcome),
    )


def accuracy_table(dataset: Dataset, results: Results) -> Table:
    """Our numbers, beside the paper's if any, with standard errors and what equals the best."""
    best = _best_methods(results, dataset.ks)
    compared = {(m, k): _compared(results, m, best.get(k), k) for m in results for k in dataset.ks}
    notes = {
        place: "°"
        for place, cell in compared.items()
        if isinstance(cell, Value) and (cell.p_value or 0.0) > SIGNIFICANT_P
    }
    facts = {"dataset": dataset, "results": results, "significant": SIGNIFICANT_P}
    table = _accuracies("accuracy", dataset, results, notes, facts)
    return replace(table, rows=comparison.mark_best(table.rows))


def _accuracies(
    block: str, dataset: Dataset, results: Results, notes: Mapping[Place, str], facts: Facts
) -> Table:
    n_test = max((each.n_test for r in results.values() for each in r.chosen.values()), default=1)
    ours = {method: [r.accuracy(k) for k in dataset.ks] for method, r in results.items()}
    errors = {m: [standard_error(accuracy, n_test) for accuracy in row] for m, row in ours.items()}
    rows, name = comparison.accuracy_rows(dataset, ours, errors, notes), block.replace("_", "-")
    table = _PROSE.table(block, dataset.columns, rows, facts, name=name)
    return replace(table, groups=family_starts(results), tolerance=MAX_POINTS_APART)


def _best_methods(results: Results, ks: Sequence[int]) -> dict[int, str]:
    """The method with the largest accuracy at each k; a k that no model was chosen for has none."""
    having = {k: [method for method, result in results.items() if k in result.chosen] for k in ks}
    best = {k: max(m, key=lambda m: results[m].accuracy(k), default="") for k, m in having.items()}
    return {k: method for k, method in best.items() if method}


def paired_tables(dataset: Dataset, results: Results) -> list[Table]:
    """Every method against softmax, and against the best of each column."""
    softmax = results[SOFTMAX].chosen if SOFTMAX in results else {}
    references = {
        "against-softmax": dict.fromkeys(softmax, SOFTMAX),
        "against-best": _best_methods(results, dataset.ks),
    }
    tables = []
    for name, best in references.items():
        rows = [
            [paper.display_name(m), *(_compared(results, m, best.get(k), k) for k in dataset.ks)]
            for m in results
        ]
        table = _PROSE.table("paired", dataset.columns, rows, {"name": name}, name=name, fold=True)
        tables += [replace(table, groups=family_starts(results))] if best else []
    return tables


def _compared(results: Results, method: str, reference: str | None, k: int) -> Cell:
    if reference is None or method == reference or k not in results[method].chosen:
        return "–"
    ours, theirs = results[method].chosen[k], results[reference].chosen[k]
    return comparison.compare(ours.hits(), theirs.hits())


def _training_table(dataset: Dataset, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for method, result in results.items():
        models = [result.chosen[k].model for k in dataset.ks if k in result.chosen]
        gap = max((m.relative_gap for m in models if math.isfinite(m.relative_gap)), default=None)
        Cs = [f"{result.chosen[k].model.C:.3g}" if k in result.chosen else "–" for k in dataset.ks]
        shown = [*Cs, "–" if gap is None else f"{gap:.1e}"]
        shown += [str(len(result.models)), str(result.n_left_out)]
        rows.append([paper.display_name(method), *shown, Value(result.cpu_seconds)])
    chosen = [f"C for top-{k}" for k in dataset.ks]
    columns = ["Method", *chosen, "Relative gap", "Models", "Left out", "Seconds"]
    groups = family_starts(results)
    return _PROSE.table("training", columns, rows, {}, groups=groups, fold=True)


def explain_far_cells(outcome: DatasetOutcome, far: Sequence[Place]) -> list[Remark]:
    """Remarks on the cells that lie further from the paper's numbers than the tolerance."""
    if not outcome.dataset.in_paper:
        return []
    if not far or outcome.other_facts:
        facts = {"far": far, "tolerance": MAX_POINTS_APART, "facts": outcome.other_facts}
        return _PROSE.remarks("differences", facts)
    below = [(m, k) for m, k in far if paper.is_truncated(m) and k < paper.split_method(m)[1]]
    rest = [place for place in far if place not in below]
    # These have a remark of their own, whether or not they are far.
    rest = [(m, k) for m, k in rest if not _better_left_out(outcome.results[m], k)]
    again = {place: outcome.cell(*place).on_paper_grid for place in rest}
    still_far = [
        place
        for place, value in again.items()
        if outcome.parts.val is not None and (value is None or value.is_far(MAX_POINTS_APART))
    ]
    facts = {
        "key": outcome.dataset.key,
        "parts": outcome.parts,
        "truncated": [outcome.cell(*place) for place in below],
        "stops": [_nearest(outcome, descent) for descent in outcome.descents],
        "cells": [outcome.cell(*place) for place in rest],
        "selections": [_choice_of_C(outcome, *place) for place in still_far],
    }
    return _PROSE.remarks("far", facts)


def _nearest(outcome: DatasetOutcome, descent: DescentResult) -> tuple[str, int, float]:
    """Where a descent is nearest to the paper's row: its name, steps, the largest difference."""
    largest = [
        max(map(abs, above)) for above in zip(*_above_paper(outcome, descent).values(), strict=True)
    ]
    place = min(range(len(largest)), key=largest.__getitem__)
    return paper.display_name(descent.method), descent.steps[place], largest[place]


def _above_paper(outcome: DatasetOutcome, descent: DescentResult) -> dict[int, list[float]]:
    """By k, the points above the paper's number after each number of steps."""
    theirs = {k: paper.accuracy(outcome.dataset.key, descent.method, k) for k in outcome.dataset.ks}
    return {k: [ours - theirs[k] for ours in descent.accuracies(k)] for k in theirs}


def _better_left_out(result: PathResult, k: int) -> Model | None:
    """The model with the best validation accuracy, if it did not meet its tolerance."""
    best = max(result.models, key=lambda model: (model.val[k - 1], model.converged))
    return None if best.converged else best


def explain_left_out(outcome: DatasetOutcome) -> list[Remark]:
    """A remark on the cells for which the validation examples prefer a model that was left out."""
    left_out = [
        (outcome.cell(method, k), model)
        for method, result in outcome.results.items()
        for k in outcome.dataset.ks
        if (model := _better_left_out(result, k)) is not None
    ]
    return _PROSE.remarks("left_out", {"left_out": left_out})


def _choice_of_C(outcome: DatasetOutcome, method: str, k: int) -> ChoiceOfC:
    cell = outcome.cell(method, k)
    models = [model for model in outcome.results[method].models if model.converged]
    best = max(model.val[k - 1] for model in models)
    error = standard_error(best, outcome.parts.X_val.shape[0])
    tests = [model.test[k - 1] for model in models if model.val[k - 1] >= best - error]
    spread = standard_error(cell.value.ours, outcome.parts.X_test.shape[0])
    return ChoiceOfC(cell, tests, error, spread)


def _gains_by_k(ks: Sequence[int], results: Results) -> list[Chart]:
    """What each loss gains over softmax, in points, against k; one panel for each family."""
    if SOFTMAX not in results:
        return []
    base = _curve(results[SOFTMAX], ks)
    curves: dict[str, list[Series]] = {f.panel: [] for f in paper.FAMILIES.values() if f.panel}
    for method, result in results.items():
        panel, own_k = paper.family_of(method).panel, paper.split_method(method)[1]
        if panel and method != SOFTMAX:
            gain = [a - b for a, b in zip(_curve(result, ks), base, strict=True)]
            name = "multiclass SVM" if method == "svm-multi" else f"k = {own_k}"
            curves[panel].append(Series(name, ks, gain, color=_COLORS.get(own_k, 3), markers=True))
    chart = Chart("k", "Points above softmax", [], y_limits=_GAIN_LIMITS, x_whole=True)
    chart = replace(chart, levels=[(0.0, "")])
    return [replace(chart, title=t, series=series) for t, series in curves.items() if series]


def _curve(result: PathResult, ks: Sequence[int]) -> list[float]:
    """Test accuracy at each k by the model that validation prefers for it."""
    models = [model for model in result.models if model.converged]
    if not models or not all(model.test for model in models):
        return [result.accuracy(k) for k in ks]
    best = [max(models, key=lambda model: model.val[k - 1]) for k in ks]
    return [model.test[k - 1] for k, model in zip(ks, best, strict=True)]


def _along_c(outcome: DatasetOutcome) -> list[Chart]:
    """Validation accuracy against C for the losses of one label and of the top five."""
    shown = [outcome.results[method] for method in _BY_C.split() if method in outcome.results]
    panels = []
    for k in (1, 5):
        if k not in outcome.dataset.ks or not shown:
            continue
        series = []
        for number, result in enumerate(shown):
            Cs, accuracies = zip(*((m.C, m.val[k - 1]) for m in result.models), strict=True)
            # This curve covers that of the plain hinge, which shows between the dashes.
            name, dash = paper.display_name(result.method), result.method == "smooth-topk-svm:5"
            series.append(Series(name, Cs, accuracies, number, int(dash), markers=True))
        peaks = [max(s.y) for s in series]
        # What happens at small C may be cut off; no curve may be missing as a whole.
        limits = (min(max(peaks) - 25.0, min(peaks) - 3.0), max(peaks) + 2.0)
        title = f"Top-{k} on the validation examples"
        panels.append(Chart("C", "Accuracy (%)", series, title, "log", y_limits=limits))
    return panels


def _along_descent(outcome: DatasetOutcome) -> list[Chart]:
    """How far from the paper's numbers gradient descent is after so many steps."""
    x_label, y_label = "Steps of gradient descent from softmax", "Points above the paper’s"
    panels = []
    for descent in outcome.descents:
        series = [
            Series(f"top-{k}", descent.steps, above, _COLORS.get(k, 3), markers=True)
            for k, above in _above_paper(outcome, descent).items()
        ]
        title = paper.display_name(descent.method)
        panels.append(Chart(x_label, y_label, series, title, "symlog", levels=[(0.0, "")]))
    return panels
