"""The section of a data set of Table 3: tables with statistics, figures, remarks."""

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
    accuracy_rows,
    family_starts,
)
from shortlist.experiments.paired import compare, standard_error
from shortlist.experiments.protocol import MAX_K, PathResult
from shortlist.experiments.report import Remark, Section, Table, Value
from shortlist.experiments.report.model import Cell
from shortlist.experiments.table3_figures import SOFTMAX, along_c, along_descent, gains_by_k
from shortlist.experiments.table3_remarks import explain_far_cells, explain_left_out

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
        paragraphs=[_introduction(outcome)],
        headlines=_headlines(accuracy, outcome),
        tables=[accuracy, *on_grid, *details],
        figures=[*gains, *along_c(outcome), *along_descent(outcome, explain=explain)],
        remarks=_remarks(outcome) if explain else [],
        protocol=_protocol(outcome, tol),
        result=Table3Result.of(outcome),
    )


def _introduction(outcome: DatasetOutcome) -> str:
    dataset, parts = outcome.dataset, outcome.parts
    n_val = "" if parts.X_val is None else f", {parts.X_val.shape[0]} validation"
    return (
        f"{dataset.title} has {parts.n_classes} classes and "
        f"{parts.X_train.shape[1]} features; {parts.X_train.shape[0]} training{n_val} and "
        f"{parts.X_test.shape[0]} test examples. Every model is linear. A loss made for the top k "
        "gives up accuracy at smaller k to gain it at k: read each row from the column of its own "
        f"k. {dataset.about}"
    ).rstrip()


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
        caption=f"Table 3 of the paper, {'recomputed' if dataset.in_paper else 'on other data'}: "
        "each column by the model that the validation examples prefer for that k. Every model here "
        f"met its tolerance; {left_out} of {n_models} trained models did not and were left out.",
        notes=[
            "° Not distinguishable from the best of its column on these test examples: McNemar’s "
            f"exact test, p > {SIGNIFICANT}, each pair by itself."
        ],
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
            caption="Differences on the same test examples, with the p of McNemar’s exact test: "
            "how likely so large a difference is if both models are right equally often. Not "
            "corrected for the number of comparisons.",
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
    caption = (
        "Values of C a decade apart in the paper’s λ = 1/(C n), half as many as in the table "
        "above. Everything else is the same."
    )
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
        caption="The gap is the largest among the chosen models: the share of the objective by "
        "which it may exceed the optimum. Truncated losses are not convex and have none. "
        "Left out: models that did not meet their tolerance. Seconds of processor time for the "
        "whole path over C.",
        groups=family_starts(list(results)),
        fold=True,
    )


def _remarks(outcome: DatasetOutcome) -> list[Remark]:
    remarks = explain_far_cells(outcome, outcome.far_places) + explain_left_out(outcome)
    if outcome.dataset.in_paper and "svm-ova" in outcome.results:
        text = (
            "The paper trained them with LibLinear. Here all classes share one C, chosen for "
            "the top-k accuracy of the whole, as LibLinear’s own multiclass mode does; the "
            "paper does not say whether it chose one C for each class instead."
        )
        remarks.append(Remark("One-vs-all rows", text))
    return remarks


def _protocol(outcome: DatasetOutcome, tol: float) -> list[str]:
    models = [model for result in outcome.results.values() for model in result.models]
    left_out = sum(not model.converged for model in models)
    Cs = [model.C for model in models]
    selection = "trained on the training part and scored on the validation part"
    if outcome.parts.X_val is None:
        selection = (
            "trained on four fifths of the training part and scored on the rest; the chosen "
            "models are trained again on all of it"
        )
    return [
        "No intercept and no further scaling of the features; single precision.",
        "Two values of C a decade from 1e-5 to 1e3, extended where the best lies at the edge (here "
        f"{min(Cs):.1g} to {max(Cs):.1g} were tried), and cut short where five values in a row are "
        "worse than the best, at every k, or two in a row do not converge. Each value starts from "
        "the duals of the one before.",
        f"For each C the model is {selection}. Each k has a C of its own; of equally good values "
        "the smallest is taken.",
        f"Training stops at a relative duality gap of {tol:g}, as in the paper. {left_out} of "
        f"{len(models)} models, at large C, did not get there within the limit of passes over the "
        "data. They are not eligible.",
        "Truncated losses start at the softmax solution for the same C and descend by L-BFGS to a "
        "stationary point, in double where single precision sees no further decrease.",
    ]
