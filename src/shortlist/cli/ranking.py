"""Where the true labels stand in the shortlists: all that ``evaluate`` reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shortlist.cli.models import model_for, score_blocks
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData


@dataclass(frozen=True)
class Ranking:
    """Best and worst rank of each example's label (they differ by ties), and the first guess."""

    labels: NDArray
    classes: NDArray
    best: NDArray
    worst: NDArray
    guessed: NDArray
    ties: str

    def hits(self, k: int) -> NDArray:
        """How far each example counts as right at k: 0, 1 or, if ties are split, between."""
        if self.ties == "optimistic":
            return (self.best <= k).astype(np.float64)
        if self.ties == "pessimistic":
            return (self.worst <= k).astype(np.float64)
        return np.clip((k + 1 - self.best) / (self.worst - self.best + 1), 0.0, 1.0)

    def accuracy(self, k: int) -> float:
        return float(self.hits(k).mean())

    @property
    def unknown(self) -> int:
        """Examples whose label the model does not know; they are wrong at every k."""
        return int((self.best > len(self.classes)).sum())

    def decided_by_ties(self, k: int) -> float:
        return float(((self.best <= k) & (self.worst > k)).mean())

    def per_class(self, k: int) -> list[ClassReport]:
        """One report for each label that occurs, in the order of the labels."""
        first, listed = self.hits(1), self.hits(k)
        reports = []
        for label in np.unique(self.labels).tolist():
            mine = self.labels == label
            wrong = Counter(self.guessed[mine & (self.guessed != label)].tolist())
            mistaken = wrong.most_common(1)[0] if wrong else (None, 0)
            reports.append(
                ClassReport(
                    label,
                    int(mine.sum()),
                    float(first[mine].mean()),
                    float(listed[mine].mean()),
                    *mistaken,
                )
            )
        return reports


@dataclass(frozen=True)
class ClassReport:
    """A class's examples, accuracies, and the label it is mistaken for most often."""

    label: Any
    n_samples: int
    top1: float
    topk: float
    mistaken_for: Any
    mistakes: int


def rank_labels(model: Any, data: LabeledData, ties: str = "optimistic") -> Ranking:
    """Rank the label of every example among the model's scores."""
    from shortlist.metrics import true_label_ranks

    classes, labels = model.classes_, np.asarray(data.y)
    _check_kind(labels, classes, data.source)
    n = data.n_samples
    best, worst = np.empty(n, np.intp), np.empty(n, np.intp)
    guessed = np.empty(n, classes.dtype)
    for rows, scores in score_blocks(model, data.X):
        best[rows], worst[rows] = true_label_ranks(labels[rows], scores, labels=classes)
        guessed[rows] = classes[scores.argmax(axis=1)]
    return Ranking(labels, classes, best, worst, guessed, ties)


def _check_kind(labels: NDArray, classes: NDArray, source: str) -> None:
    """Text never equals a number: every prediction would be wrong."""
    kinds = ["text" if a.dtype.kind in "UO" else "numbers" for a in (labels, classes)]
    if kinds[0] != kinds[1]:
        raise DataError(f"its labels are {kinds[0]}, but the model's are {kinds[1]}", path=source)


class Rankings:
    """A ranking for each k, where a file holds a model for each; else the same for all."""

    def __init__(self, model: Any, data: LabeledData, ties: str) -> None:
        self._model, self._data, self._ties = model, data, ties
        self._known: dict[int, Ranking] = {}

    def at(self, k: int) -> Ranking:
        """The ranking by the model that answers for shortlists of k."""
        model = model_for(self._model, k)
        if id(model) not in self._known:
            self._known[id(model)] = rank_labels(model, self._data, self._ties)
        return self._known[id(model)]
