"""Tables with the paper's accuracies beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shortlist.experiments import paper
from shortlist.experiments.report.model import Cell, Column, Value

#: Numbers further than this from the paper's, in points, are pointed out.
TOLERANCE = 0.7


def accuracy_rows(
    dataset: str,
    ours: Mapping[str, Sequence[float]],
    *,
    deviations: Mapping[str, Sequence[float]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> list[list[Cell]]:
    """A row for each method: its name, then our accuracy beside the paper's for each k.

    Best cells are marked as in the paper: the largest of a column, as printed.
    """
    ks = paper.ks(dataset)
    rows: list[list[Cell]] = []
    for method, accuracies in ours.items():
        row: list[Cell] = [paper.display_name(method)]
        for place, k in enumerate(ks):
            row.append(
                Value(
                    accuracies[place],
                    paper.accuracy(dataset, method, k),
                    deviation=None if deviations is None else deviations[method][place],
                    paper_best=method in paper.best_methods(dataset, k),
                    note=(notes or {}).get(method, ""),
                )
            )
        rows.append(row)
    return mark_best(rows)


def mark_best(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """The rows with the largest number of each column, as printed, marked as the best."""
    best = [
        max(
            (_printed(c) for c in column if isinstance(c, Value) and math.isfinite(c.ours)),
            default=None,
        )
        for column in zip(*rows, strict=True)
    ]
    return [
        [
            replace(cell, best=_printed(cell) == best[place]) if isinstance(cell, Value) else cell
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]


def _printed(value: Value) -> float:
    return round(value.ours, value.digits)


def accuracy_columns(dataset: str) -> list[Column]:
    return [
        Column("Method", numeric=False),
        *(Column(f"Top-{k}") for k in paper.ks(dataset)),
    ]


def family_starts(methods: Sequence[str]) -> list[int]:
    """Numbers of the rows where another kind of loss begins."""
    kinds = [_kind(method) for method in methods]
    return [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]


def far_cells(rows: Sequence[Sequence[Cell]]) -> list[tuple[int, int]]:
    """Row and column of the numbers further than the tolerance from the paper's."""
    return [
        (i, j)
        for i, row in enumerate(rows)
        for j, cell in enumerate(row)
        if isinstance(cell, Value)
        and cell.difference is not None
        and round(abs(cell.difference), 1) > TOLERANCE
    ]


def differences(rows: Sequence[Sequence[Cell]]) -> list[float]:
    return [
        cell.difference
        for row in rows
        for cell in row
        if isinstance(cell, Value)
        and cell.difference is not None
        and math.isfinite(cell.difference)
    ]


def _kind(method: str) -> str:
    family, _ = paper.split_method(method)
    return {"svm-ova": "ova", "lr-ova": "ova", "svm-multi": "multi", "lr-multi": "multi"}.get(
        family, family
    )
