"""The section of a data set of Table 3: tables with statistics, figures, remarks.

The remarks say why some numbers are far from the paper's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shortlist._progress import duration
from shortlist.experiments import paper
from shortlist.experiments.comparison import (
    MAX_POINTS_APART,
    Dataset,
    DatasetOutcome,
    Place,
    accuracy_rows,
    compare,
    family_starts,
    is_truncated,
    standard_error,
)
from shortlist.experiments.descents import DescentResult
from shortlist.experiments.protocol import MAX_K, Model, PathResult
from shortlist.experiments.report import Cell, Prose, Remark, Section, Table, Value
from shortlist.plots.charts import Chart, Series

Results = Mapping[str, PathResult]

#: Two numbers count as different if a paired test has a smaller p than this.
SIGNIFICANT_P = 0.05
SOFTMAX = "lr-multi"
#: The panels share one scale, in points; what losses give up far below it is cut off.
_GAIN_LIMITS = (-6.0, 3.0)
#: The numbers of the colours of losses and columns with this k.
_COLORS = {1: 6, 3: 0, 5: 1, 10: 2}
#: The methods whose accuracy is shown against C.
_ALONG_C = (
    *("svm-multi", "lr-multi", "smooth-topk-svm:1"),
    *("topk-svm:5", "smooth-topk-svm:5", "topk-ent:5", "trunc-ent:5"),
)
_PROSE = Prose("table3")


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
        results, ks = outcome.results, outcome.dataset.ks
        return cls(
            outcome.dataset.key,
            outcome.parts.X_test.shape[0],
            {m: {k: r.accuracy(k) for k in ks} for m, r in results.items()},
            {m: r.n_left_out for m, r in results.items()},
            {m: r.seconds for m, r in results.items()},
            {m: r.cpu_seconds for m, r in results.items()},
        )


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
        "gains": _gains_by_k(every_k if parts.X_val is not None else dataset.ks, results),
        "regularisation": _along_c(outcome),
        "descent": _along_descent(outcome),
    }
    on_grid = [_paper_grid_table(outcome)] if outcome.on_paper_grid else []
    details = [*paired_tables(dataset, results), _training_table(dataset, results)]
    return _PROSE.section(
        dataset.key,
        facts,
        tables=[accuracy, *on_grid, *details],
        figures=[_PROSE.figure(block, each, facts) for block, each in panels.items() if each],
        remarks=_remarks(outcome) if explain else [],
        result=Table3Result.of(outcome),
    )


# --- tables --------------------------------------------------------------------------------------


def accuracy_table(dataset: Dataset, results: Results) -> Table:
    """Our numbers, beside the paper's if any, with standard errors and what equals the best."""
    ks = dataset.ks
    chosen = {(m, k): each for m, r in results.items() for k, each in r.chosen.items() if k in ks}
    n_test = max((each.n_test for each in chosen.values()), default=1)
    ours = {method: [result.accuracy(k) for k in ks] for method, result in results.items()}
    errors = {
        method: [standard_error(each, n_test) for each in row] for method, row in ours.items()
    }
    best = _best_methods(results, ks)
    notes = {
        (method, k): "°"
        for (method, k), found in chosen.items()
        if method != best[k]
        if compare(found.hits(), chosen[best[k], k].hits()).p_value > SIGNIFICANT_P
    }
    facts = {"dataset": dataset, "results": results, "significant": SIGNIFICANT_P}
    rows = accuracy_rows(dataset, ours, errors, notes)
    groups = family_starts(list(results))
    return _PROSE.table(
        "accuracy", dataset.columns, rows, facts, groups=groups, tolerance=MAX_POINTS_APART
    )


def _best_methods(results: Results, ks: Sequence[int]) -> dict[int, str]:
    """The method with the largest accuracy at each k; a k that no model was chosen for has none."""
    having = {k: [method for method, result in results.items() if k in result.chosen] for k in ks}
    return {
        k: max(methods, key=lambda method: results[method].accuracy(k))
        for k, methods in having.items()
        if methods
    }


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
        facts, groups = {"name": name}, family_starts(list(results))
        if best:
            tables.append(
                _PROSE.table(
                    "paired", dataset.columns, rows, facts, name=name, groups=groups, fold=True
                )
            )
    return tables


def _compared(results: Results, method: str, reference: str | None, k: int) -> Cell:
    if reference is None or method == reference or k not in results[method].chosen:
        return "–"
    found = compare(results[method].chosen[k].hits(), results[reference].chosen[k].hits())
    return Value(found.difference, spread=found.error, p_value=found.p_value, digits=2, signed=True)


def _paper_grid_table(outcome: DatasetOutcome) -> Table:
    table = accuracy_table(outcome.dataset, outcome.on_paper_grid)
    # A few rows have no best among them.
    rows = [
        [replace(c, best=False, note="") if isinstance(c, Value) else c for c in row]
        for row in table.rows
    ]
    retold = _PROSE.table("paper_grid", table.columns, rows, {}, name="paper-grid")
    return replace(retold, groups=table.groups, tolerance=table.tolerance)


def _training_table(dataset: Dataset, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for method, result in results.items():
        models = {k: each.model for k, each in result.chosen.items() if k in dataset.ks}
        gaps = [m.relative_gap for m in models.values() if math.isfinite(m.relative_gap)]
        Cs = [f"{models[k].C:.3g}" if k in models else "–" for k in dataset.ks]
        counts = [str(len(result.models)), str(result.n_left_out)]
        gap = f"{max(gaps):.1e}" if gaps else "–"
        rows.append([paper.display_name(method), *Cs, gap, *counts, Value(result.cpu_seconds)])
    chosen = [f"C for top-{k}" for k in dataset.ks]
    columns = ["Method", *chosen, "Relative gap", "Models", "Left out", "Seconds"]
    groups = family_starts(list(results))
    return _PROSE.table("training", columns, rows, {}, groups=groups, fold=True)


# --- remarks -------------------------------------------------------------------------------------


def _remarks(outcome: DatasetOutcome) -> list[Remark]:
    remarks = explain_far_cells(outcome, outcome.far_places) + explain_left_out(outcome)
    if outcome.dataset.in_paper and "svm-ova" in outcome.results:
        remarks.append(_PROSE.remark("one_vs_all", {}))
    return remarks


def explain_far_cells(outcome: DatasetOutcome, far: Sequence[Place]) -> list[Remark]:
    """Remarks on the cells that lie further from the paper's numbers than the tolerance."""

    def remark(block: str, places: Sequence[Place], **more: object) -> list[Remark]:
        cells = [outcome.cell(m, k) for m, k in places]
        facts = {"cells": cells, "key": outcome.dataset.key, **more}
        return [_PROSE.remark(block, facts)] if places else []

    if not outcome.dataset.in_paper:
        return []
    if not far:
        return [_PROSE.remark("all_near", {"tolerance": MAX_POINTS_APART})]
    if outcome.other_facts:
        return [_PROSE.remark("other_data", {"facts": outcome.other_facts})]
    below = [(m, k) for m, k in far if is_truncated(m) and k < paper.split_method(m)[1]]
    remarks = remark("truncated", below, stops=[_nearest(outcome, d) for d in outcome.descents])
    rest = [place for place in far if place not in below]
    # These have a remark of their own, whether or not they are far.
    rest = [(m, k) for m, k in rest if not _better_left_out(outcome.results[m], k)]
    if outcome.parts.X_val is None:
        return remarks + remark("own_selection", rest)
    on_grid = [(m, k) for m, k in rest if m in outcome.on_paper_grid]
    remarks += remark("grid", on_grid)
    for m, k in rest:
        again = outcome.cell(m, k).on_paper_grid
        if again is None or outcome.dataset.is_far(m, k, again):
            remarks.append(_on_selection(outcome, m, k))
    return remarks


def _nearest(outcome: DatasetOutcome, descent: DescentResult) -> tuple[str, int, float]:
    """Where a descent is nearest to the paper's row: its name, steps, the largest difference."""
    apart = [
        [abs(a - outcome.paper_accuracy(descent.method, k)) for a in descent.accuracies(k)]
        for k in outcome.dataset.ks
    ]
    largest = [max(column) for column in zip(*apart, strict=True)]
    place = min(range(len(largest)), key=largest.__getitem__)
    return paper.display_name(descent.method), descent.steps[place], largest[place]


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
    return [_PROSE.remark("left_out", {"left_out": left_out})] if left_out else []


def _on_selection(outcome: DatasetOutcome, method: str, k: int) -> Remark:
    """How much the choice of C alone moves the number."""
    cell = outcome.cell(method, k)
    models = [model for model in outcome.results[method].models if model.converged]
    best = max(model.val[k - 1] for model in models)
    error = standard_error(best, outcome.parts.X_val.shape[0])
    tests = [model.test[k - 1] for model in models if model.val[k - 1] >= best - error]
    spread = standard_error(cell.ours, outcome.parts.X_test.shape[0])
    facts = {"cell": cell, "tests": tests, "error": error, "spread": spread}
    return _PROSE.remark("selection", facts)


# --- figures -------------------------------------------------------------------------------------


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
    charts = [
        Chart("k", "Points above softmax", series, title, y_limits=_GAIN_LIMITS, x_whole=True)
        for title, series in curves.items()
        if series
    ]
    return [replace(chart, levels=[(0.0, "")]) for chart in charts]


def _curve(result: PathResult, ks: Sequence[int]) -> list[float]:
    """Test accuracy at each k by the model that validation prefers for it."""
    models = [model for model in result.models if model.converged]
    if not models or not all(model.test for model in models):
        return [result.accuracy(k) for k in ks]
    best = [max(models, key=lambda model: model.val[k - 1]) for k in ks]
    return [model.test[k - 1] for k, model in zip(ks, best, strict=True)]


def _along_c(outcome: DatasetOutcome) -> list[Chart]:
    """Validation accuracy against C for the losses of one label and of the top five."""
    shown = [outcome.results[method] for method in _ALONG_C if method in outcome.results]
    panels = []
    for k in (1, 5):
        if k not in outcome.dataset.ks or not shown:
            continue
        series = []
        for number, result in enumerate(shown):
            Cs = [model.C for model in result.models]
            accuracies = [model.val[k - 1] for model in result.models]
            # This curve covers that of the plain hinge, which shows between the dashes.
            dash = int(result.method == "smooth-topk-svm:5")
            name = paper.display_name(result.method)
            series.append(Series(name, Cs, accuracies, number, dash, markers=True))
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
        series = []
        for k in outcome.dataset.ks:
            theirs = outcome.paper_accuracy(descent.method, k)
            above = [accuracy - theirs for accuracy in descent.accuracies(k)]
            color = _COLORS.get(k, 3)
            series.append(Series(f"top-{k}", descent.steps, above, color, markers=True))
        title = paper.display_name(descent.method)
        panels.append(Chart(x_label, y_label, series, title, "symlog", levels=[(0.0, "")]))
    return panels
