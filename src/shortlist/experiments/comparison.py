"""Data sets of Table 3's kind, and rows of numbers beside the paper's.

Two classifiers are tested on the same examples: paired tests tell whether they differ by more than
chance.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

from shortlist.experiments import paper
from shortlist.experiments.parts import STAND_INS
from shortlist.experiments.report import Cell, Value

#: A cell of Table 3: a method and a k.
Place = tuple[str, int]
#: The data set that has every row and column of Table 3.
_COMPLETE = "letter"


@dataclass(frozen=True)
class Dataset:
    """A table's columns ``ks`` and rows ``methods``, and whether the paper has numbers for them."""

    key: str
    title: str
    ks: tuple[int, ...]
    methods: tuple[str, ...]
    in_paper: bool

    @classmethod
    def named(cls, key: str) -> Self:
        """A data set of the paper by its key; any other has all rows and columns of Table 3."""
        if key in paper.datasets():
            return cls(key, paper.TABLE_4[key].name, paper.ks(key), paper.methods(key), True)
        title = STAND_INS.get(key, key)
        return cls(key, title, paper.ks(_COMPLETE), paper.methods(_COMPLETE), False)

    def with_classes(self, n_classes: int) -> Self:
        """The rows and columns whose k is below the number of classes."""
        methods = tuple(m for m in self.methods if paper.split_method(m)[1] < n_classes)
        return replace(self, ks=tuple(k for k in self.ks if k < n_classes), methods=methods)

    @property
    def columns(self) -> list[str]:
        """The headings of a table with a row for each method and a column for each k."""
        return ["Method", *(f"Top-{k}" for k in self.ks)]

    def value(self, method: str, k: int, accuracy: float) -> Value:
        """A number of ours, beside the paper's if it has one."""
        if not self.in_paper:
            return Value(accuracy)
        best = method in paper.best_methods(self.key, k)
        return Value(accuracy, paper.accuracy(self.key, method, k), paper_best=best)


def accuracy_rows(
    dataset: Dataset,
    ours: Mapping[str, Sequence[float]],
    spreads: Mapping[str, Sequence[float]],
    notes: Mapping[Place, str],
) -> list[list[Cell]]:
    """A row for each method: its name, then our accuracy, beside the paper's if any, for each k."""

    rows: list[list[Cell]] = []
    for m in ours:
        values = [dataset.value(m, k, each) for k, each in zip(dataset.ks, ours[m], strict=True)]
        marks = zip(values, spreads[m], [notes.get((m, k), "") for k in dataset.ks], strict=True)
        rows.append([paper.display_name(m), *(replace(v, spread=s, note=n) for v, s, n in marks)])
    return rows


def mark_best(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """The rows with the largest number of each column, as printed, marked as in the paper."""
    columns = []
    for column in zip(*rows, strict=True):
        values = [c for c in column if isinstance(c, Value) and math.isfinite(c.ours)]
        best = max((value.printed for value in values), default=None)
        marked = (replace(c, best=c.printed == best) if isinstance(c, Value) else c for c in column)
        columns.append(list(marked))
    return [list(row) for row in zip(*columns, strict=True)]


def family_starts(methods: Iterable[str]) -> list[int]:
    """Numbers of the rows where another kind of loss begins."""
    groups = [paper.family_of(method).group for method in methods]
    return [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]


def standard_error(accuracy: float, n: int) -> float:
    """The standard error, in points, of an accuracy in per cent on ``n`` examples."""
    share = accuracy / 100
    return 100 * math.sqrt(max(share * (1 - share), 0.0) / n)


def compare(ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> Value:
    """Accuracy of one classifier above another's, in points, by which examples they have right.

    The spread is the standard error of the difference over paired examples. The p-value is that of
    McNemar's exact test: the chance that the examples on which only one is right split so unevenly,
    if both are equally good.
    """
    n = len(ours)
    only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    differing = only_ours + only_theirs
    difference = (only_ours - only_theirs) / n
    error = 100 * math.sqrt(max(differing / n - difference**2, 0.0) / n)
    p_value = float(binomtest(only_ours, differing).pvalue) if differing else 1.0
    return Value(100 * difference, spread=error, p_value=p_value, digits=2, signed=True)


def mean_ranks(accuracies: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean rank of each method over several data sets; 1 is best, equals share their ranks.

    ``accuracies`` holds a mapping from methods to accuracies for each data set. Methods that are
    missing in one of them are left out. Without data sets there are no ranks.
    """
    if not accuracies:
        return {}
    methods = [m for m in accuracies[0] if all(m in each for each in accuracies)]
    ranks = [rankdata([-each[m] for m in methods], nan_policy="omit") for each in accuracies]
    return dict(zip(methods, np.mean(ranks, axis=0).tolist(), strict=True))
