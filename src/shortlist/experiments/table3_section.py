"""The section of a data set of Table 3: tables with statistics, figures, remarks.

The remarks say why some numbers are far from the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shortlist._progress import duration
from shortlist.experiments import paper
from shortlist.experiments.comparison import (
    TOLERANCE,
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
from shortlist.experiments.report import Remark, Section, Table, Value
from shortlist.experiments.report.model import Cell
from shortlist.experiments.table3_figures import PROSE, SOFTMAX, along_c, along_descent, gains_by_k

#: Two numbers count as different if a paired test has a smaller p than this.
SIGNIFICANT = 0.05


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
    def of(cls, outcome: DatasetOutcome) -> Table3Result:
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
    on_grid = [_paper_grid_table(outcome)] if outcome.on_paper_grid else []
    details = [*paired_tables(dataset, results), _training_table(results, dataset.ks)]
    # Without a validation part only the models chosen for the table's ks are tested.
    every_k = tuple(range(1, min(MAX_K, parts.n_classes) + 1))
    gains = gains_by_k(every_k if parts.X_val is not None else dataset.ks, results)
    return Section(
        name=dataset.key,
        title=f"{dataset.title}: top-k accuracy of every loss",
        paragraphs=PROSE.paragraphs("introduction", dataset=dataset, parts=parts),
        headlines=_headlines(accuracy, outcome),
        tables=[accuracy, *on_grid, *details],
        figures=[*gains, *along_c(outcome), *along_descent(outcome, explain=explain)],
        remarks=_remarks(outcome) if explain else [],
        protocol=_protocol(outcome, tol),
        result=Table3Result.of(outcome),
    )


def _headlines(accuracy: Table, outcome: DatasetOutcome) -> list[tuple[str, str]]:
    results = outcome.results.values()
    seconds = sum(result.cpu_seconds for result in results)
    n_models = sum(len(result.models) for result in results)
    time = (duration(seconds), f"of processor time for training {n_models} models")
    differences = [value.difference for value in accuracy.values if value.difference is not None]
    apart = sorted(abs(each) for each in differences if math.isfinite(each))
    if not apart or outcome.other_facts:
        return [time]
    within = sum(round(each, 1) <= TOLERANCE for each in apart)
    return [
        (f"{within} of {len(apart)}", f"numbers within {TOLERANCE} points of the paper’s"),
        (f"{apart[len(apart) // 2]:.2f}", "points of difference in the median"),
        time,
    ]


def accuracy_table(dataset: Dataset, results: Mapping[str, PathResult]) -> Table:
    """Our numbers, beside the paper's if any, with standard errors and what equals the best."""
    ks = dataset.ks
    chosen = {(m, k): result.chosen.get(k) for m, result in results.items() for k in ks}
    ours = {method: [result.accuracy(k) for k in ks] for method, result in results.items()}
    errors = {
        method: [
            standard_error(result.accuracy(k), found.n_test)
            if (found := chosen[method, k])
            else math.nan
            for k in ks
        ]
        for method, result in results.items()
    }
    best = _best_methods(results, ks)
    notes = {
        (method, k): "°"
        for (method, k), found in chosen.items()
        if found and method != best[k]
        if compare(found.hits(), results[best[k]].chosen[k].hits()).p_value > SIGNIFICANT
    }
    left_out = sum(result.n_left_out for result in results.values())
    n_models = sum(len(result.models) for result in results.values())
    return Table(
        "accuracy",
        f"Top-k accuracy (%) on {dataset.title}",
        dataset.columns,
        accuracy_rows(dataset, ours, errors, notes),
        caption=PROSE("accuracy", dataset=dataset, left_out=left_out, models=n_models),
        notes=[PROSE("as_good", significant=SIGNIFICANT)],
        groups=family_starts(list(results)),
        tolerance=TOLERANCE,
    )


def _best_methods(results: Mapping[str, PathResult], ks: Sequence[int]) -> dict[int, str]:
    """The method with the largest accuracy at each k; a k that no model was chosen for has none."""
    having = {k: [method for method, result in results.items() if k in result.chosen] for k in ks}
    return {
        k: max(methods, key=lambda method: results[method].accuracy(k))
        for k, methods in having.items()
        if methods
    }


def paired_tables(dataset: Dataset, results: Mapping[str, PathResult]) -> list[Table]:
    """Every method against softmax, and against the best of each column."""
    ks = dataset.ks
    softmax = {k: SOFTMAX for k in ks if SOFTMAX in results and k in results[SOFTMAX].chosen}
    references = {
        "against-softmax": (softmax, "Points above softmax"),
        "against-best": (_best_methods(results, ks), "Points below the best of each column"),
    }
    return [
        Table(
            name,
            title,
            dataset.columns,
            [
                [paper.display_name(m), *(_compared(results, m, reference.get(k), k) for k in ks)]
                for m in results
            ],
            caption=PROSE("paired"),
            groups=family_starts(list(results)),
            fold=True,
        )
        for name, (reference, title) in references.items()
        if reference
    ]


def _compared(
    results: Mapping[str, PathResult], method: str, reference: str | None, k: int
) -> Cell:
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
    title = "The rows with a far number again, on the paper’s likely grid"
    caption = PROSE("paper_grid")
    return replace(table, rows=rows, name="paper-grid", title=title, caption=caption, notes=[])


def _training_table(results: Mapping[str, PathResult], ks: Sequence[int]) -> Table:
    rows: list[list[Cell]] = []
    for method, result in results.items():
        models = {k: result.chosen[k].model for k in ks if k in result.chosen}
        gaps = [m.relative_gap for m in models.values() if math.isfinite(m.relative_gap)]
        Cs = [f"{models[k].C:.3g}" if k in models else "–" for k in ks]
        counts = [str(len(result.models)), str(result.n_left_out)]
        gap = f"{max(gaps):.1e}" if gaps else "–"
        rows.append([paper.display_name(method), *Cs, gap, *counts, Value(result.cpu_seconds)])
    chosen = [f"C for top-{k}" for k in ks]
    return Table(
        "training",
        "Chosen C, certificates and time",
        ["Method", *chosen, "Relative gap", "Models", "Left out", "Seconds"],
        rows,
        caption=PROSE("training"),
        groups=family_starts(list(results)),
        fold=True,
    )


def _remarks(outcome: DatasetOutcome) -> list[Remark]:
    remarks = explain_far_cells(outcome, outcome.far_places) + explain_left_out(outcome)
    if outcome.dataset.in_paper and "svm-ova" in outcome.results:
        remarks.append(Remark("One-vs-all rows", PROSE("one_vs_all")))
    return remarks


def _protocol(outcome: DatasetOutcome, tol: float) -> list[str]:
    models = [model for result in outcome.results.values() for model in result.models]
    left_out = sum(not model.converged for model in models)
    Cs = [model.C for model in models]
    return PROSE.paragraphs("protocol", Cs=Cs, left_out=left_out, tol=tol, parts=outcome.parts)


def explain_far_cells(outcome: DatasetOutcome, far: Sequence[Place]) -> list[Remark]:
    """Remarks on the cells that lie further from the paper's numbers than the tolerance."""
    if not outcome.dataset.in_paper:
        return []
    if not far:
        return [Remark("Differences", PROSE("all_near", tolerance=TOLERANCE))]
    if outcome.other_facts:
        return [Remark("Other data", PROSE("other_data", facts=outcome.other_facts))]
    remarks = []
    below = [(m, k) for m, k in far if is_truncated(m) and k < paper.split_method(m)[1]]
    if below:
        remarks.append(_on_truncated(outcome, below))
    rest = [place for place in far if place not in below]
    # These have a remark of their own, whether or not they are far.
    rest = [(m, k) for m, k in rest if not _better_left_out(outcome.results[m], k)]
    if outcome.parts.X_val is None:
        text = PROSE("own_selection", listed=_listed(outcome, rest))
        return [*remarks, Remark("The choice of C", text)] if rest else remarks
    on_grid = [(m, k) for m, k in rest if m in outcome.on_paper_grid]
    if on_grid:
        listed = "; ".join(_on_grid(outcome, m, k) for m, k in on_grid)
        text = PROSE("grid", listed=listed, key=outcome.dataset.key)
        remarks.append(Remark("The grid of C", text))
    unexplained = [
        (m, k)
        for m, k in rest
        if (m, k) not in on_grid
        or outcome.dataset.is_far(m, k, outcome.on_paper_grid[m].accuracy(k))
    ]
    return remarks + [_on_selection(outcome, m, k) for m, k in unexplained]


def _name(method: str, k: int) -> str:
    return f"{paper.display_name(method)} at top-{k}"


def _listed(outcome: DatasetOutcome, places: Sequence[Place]) -> str:
    """Cells with our number and the paper's."""
    return "; ".join(
        f"{_name(m, k)}: {outcome.accuracy(m, k):.1f} against {outcome.paper_accuracy(m, k):.1f}"
        for m, k in places
    )


def _on_truncated(outcome: DatasetOutcome, places: Sequence[Place]) -> Remark:
    stops = []
    for descent in outcome.descents:
        steps, far = _nearest_steps(outcome, descent)
        name = paper.display_name(descent.method)
        stops.append(f"{steps} steps for {name} (then within {far:.1f} points in all columns)")
    listed, key = _listed(outcome, places), outcome.dataset.key
    text = PROSE("truncated", listed=listed, stops=stops, key=key)
    return Remark("Truncated losses at small k", text)


def _nearest_steps(outcome: DatasetOutcome, descent: DescentResult) -> tuple[int, float]:
    """Where a descent is nearest to the paper's row: steps, and the largest difference."""
    apart = [
        [abs(a - outcome.paper_accuracy(descent.method, k)) for a in descent.accuracies(k)]
        for k in outcome.dataset.ks
    ]
    largest = [max(column) for column in zip(*apart, strict=True)]
    place = min(range(len(largest)), key=largest.__getitem__)
    return descent.steps[place], largest[place]


def _better_left_out(result: PathResult, k: int) -> Model | None:
    """The model with the best validation accuracy, if it did not meet its tolerance."""
    best = max(result.models, key=lambda model: (model.val[k - 1], model.converged))
    return None if best.converged else best


def explain_left_out(outcome: DatasetOutcome) -> list[Remark]:
    """A remark on the cells for which the validation examples prefer a model that was left out."""
    listed = []
    for method, k in [(method, k) for method in outcome.results for k in outcome.dataset.ks]:
        model = _better_left_out(outcome.results[method], k)
        if model is None:
            continue
        against = f"{outcome.accuracy(method, k):.1f}"
        if outcome.dataset.in_paper:
            against += f" against {outcome.paper_accuracy(method, k):.1f}"
        gap = model.relative_gap
        how = f"a relative gap of {gap:.1g}" if math.isfinite(gap) else f"status “{model.status}”"
        listed.append(
            f"{_name(method, k)}: {against}, best on the validation examples is C = "
            f"{model.C:.3g}, with {how}"
        )
    if not listed:
        return []
    return [Remark("Models that did not converge", PROSE("left_out", listed="; ".join(listed)))]


def _on_grid(outcome: DatasetOutcome, method: str, k: int) -> str:
    """A number, with C on our grid and on the one that the paper seems to have used."""
    ours, theirs = outcome.accuracy(method, k), outcome.paper_accuracy(method, k)
    again = outcome.on_paper_grid[method].accuracy(k)
    both = f"{ours:.1f}, the paper {theirs:.1f}, on its likely grid {again:.1f}"
    return f"{_name(method, k)}: {both}"


def _on_selection(outcome: DatasetOutcome, method: str, k: int) -> Remark:
    """How much the choice of C alone moves the number."""
    ours, theirs = outcome.accuracy(method, k), outcome.paper_accuracy(method, k)
    models = [model for model in outcome.results[method].models if model.converged]
    best = max(model.val[k - 1] for model in models)
    error = standard_error(best, outcome.parts.X_val.shape[0])
    tests = [model.test[k - 1] for model in models if model.val[k - 1] >= best - error]
    spread = standard_error(ours, outcome.parts.X_test.shape[0])
    facts = {"ours": ours, "theirs": theirs, "tests": tests, "error": error, "spread": spread}
    return Remark(_name(method, k), PROSE("selection", **facts))
