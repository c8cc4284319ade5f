"""Ranks of the true labels in the shortlists, from which ``evaluate`` reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shortlist.cli.data import how_read
from shortlist.cli.models import check_kind_of_labels, score_blocks
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData


@dataclass(frozen=True)
class Ranking:
    """Best and worst rank of each right label (they differ by ties), and the first guess.

    There is an entry for each example, or, where examples have several labels, for each right
    label of each example. ``starts`` then tells where the entries of an example begin; examples
    without any label have none.
    """

    labels: NDArray
    n_classes: int
    best: NDArray
    worst: NDArray
    guessed: NDArray
    ties: str
    starts: NDArray | None = None

    @property
    def n_examples(self) -> int:
        return len(self.labels) if self.starts is None else len(self.starts)

    def hits(self, k: int) -> NDArray:
        """For each label 1 if the shortlist of k holds it, else 0; if ties are split, the chance of
        it."""
        if self.ties == "optimistic":
            return (self.best <= k).astype(np.float64)
        if self.ties == "pessimistic":
            return (self.worst <= k).astype(np.float64)
        return np.clip((k + 1 - self.best) / (self.worst - self.best + 1), 0.0, 1.0)

    def accuracy(self, k: int) -> float:
        """The share of examples whose shortlist holds a right label."""
        return float(self._of_best_labels(np.maximum, self.hits(k)).mean())

    @property
    def unknown(self) -> int:
        """Examples whose label the model does not know; they are wrong at every k."""
        return int((self.best > self.n_classes).sum())

    def decided_by_ties(self, k: int) -> float:
        best, worst = (self._of_best_labels(np.minimum, r) for r in (self.best, self.worst))
        return float(((best <= k) & (worst > k)).mean())

    def _of_best_labels(self, better: np.ufunc, entries: NDArray) -> NDArray:
        """The better of the entries of each example."""
        return entries if self.starts is None else better.reduceat(entries, self.starts)

    def per_class(self, k: int) -> list[ClassReport]:
        """One report for each label that occurs, in the order of the labels."""
        first, listed = self.hits(1), self.hits(k)
        reports = []
        for label in np.unique(self.labels).tolist():
            mine = self.labels == label
            wrong = Counter(self.guessed[mine & (self.guessed != label)].tolist())
            mistaken = wrong.most_common(1)[0] if wrong else (None, 0)
            top1, topk = (float(hits[mine].mean()) for hits in (first, listed))
            reports.append(ClassReport(label, int(mine.sum()), top1, topk, *mistaken))
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
    """Rank the labels of every example among the model's scores."""
    several = check_kind_of_labels(model, data, "the model")
    return (_rank_sets if several else _rank_single)(model, data, ties)


def _rank_single(model: Any, data: LabeledData, ties: str) -> Ranking:
    from shortlist.metrics import true_label_ranks

    classes, labels = model.classes_, np.asarray(data.y)
    _check_kind(labels, classes, data.source)
    n = data.n_samples
    best, worst = np.empty(n, np.intp), np.empty(n, np.intp)
    guessed = np.empty(n, classes.dtype)
    for rows, scores in score_blocks(model, data.X):
        best[rows], worst[rows] = true_label_ranks(labels[rows], scores, labels=classes)
        guessed[rows] = classes[scores.argmax(axis=1)]
    return Ranking(labels, len(classes), best, worst, guessed, ties)


def _rank_sets(model: Any, data: LabeledData, ties: str) -> Ranking:
    """Rank each right label; a first guess that is also right is no mistake."""
    from shortlist.metrics import true_label_ranks

    labels = np.array(how_read(data).classes)
    right = data.y.tocsr()
    if not right.nnz:
        raise DataError("has no labels", path=data.source)
    best, worst = np.empty(right.nnz, np.intp), np.empty(right.nnz, np.intp)
    guessed = np.empty(right.nnz, np.intp)
    for rows, scores in score_blocks(model, data.X):
        block = right[rows].toarray().astype(bool)
        of_row, columns = block.nonzero()
        entries = slice(right.indptr[rows.start], right.indptr[rows.stop])
        best[entries], worst[entries] = true_label_ranks(columns, scores[of_row])
        first = scores.argmax(axis=1)[of_row]
        guessed[entries] = np.where(block[of_row, first], columns, first)
    columns = right.indices  # sorted within each row, as nonzero() lists them
    starts = right.indptr[:-1][np.diff(right.indptr) > 0]
    return Ranking(labels[columns], len(model.classes_), best, worst, labels[guessed], ties, starts)


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
        model = self._model.model_for(k)
        if id(model) not in self._known:
            self._known[id(model)] = rank_labels(model, self._data, self._ties)
        return self._known[id(model)]
