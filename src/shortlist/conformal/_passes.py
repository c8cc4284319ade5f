"""Passes over the examples: each holds the scores of one chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from shortlist._responses import Responses
from shortlist.conformal._scores import Score, own


@dataclass(frozen=True)
class Chunk:
    """Some rows: what the model says of them, and what is compared with the thresholds."""

    rows: slice
    responses: NDArray[np.float64]
    candidates: NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Examples with a uniform draw each, which only randomised scores use."""

    X: Any
    draws: NDArray[np.float64]

    @classmethod
    def drawn(cls, X: Any, random_state: np.random.RandomState) -> Examples:
        return cls(X, random_state.uniform(size=_num_samples(X)))

    def __len__(self) -> int:
        return len(self.draws)

    def take(self, rows: NDArray[np.intp]) -> Examples:
        X = self.X.tocsr() if hasattr(self.X, "tocsr") else self.X
        return Examples(_safe_indexing(X, rows), self.draws[rows])


def chunks_of(responses: Responses, score: Score, examples: Examples) -> Iterator[Chunk]:
    """The candidates of all labels, a chunk of rows at a time."""
    for rows, values in responses.chunks(examples.X):
        yield Chunk(rows, values, score.candidates(values, examples.draws[rows]))


def label_scores(
    responses: Responses, score: Score, examples: Examples, columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The score of each example's own label."""
    result = np.empty(len(examples))
    for rows, values in responses.chunks(examples.X):
        result[rows] = score.of_labels(values, columns[rows], examples.draws[rows])
    return result


def sizes_and_hits(
    chunks: Iterator[Chunk], columns: NDArray[np.intp], thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The size of each example's set, and whether it holds the label.

    ``thresholds`` has a row, with one for each class, for each kind of set wanted; the results
    have shape (kinds of sets, n_samples).
    """
    sizes = np.empty((len(thresholds), len(columns)), dtype=np.intp)
    hits = np.empty(sizes.shape, dtype=bool)
    for chunk in chunks:
        mine = columns[chunk.rows]
        values = own(chunk.candidates, mine)
        for number, row in enumerate(thresholds):
            sizes[number, chunk.rows] = np.count_nonzero(chunk.candidates <= row, axis=1)
            hits[number, chunk.rows] = values <= row[mine]
    return sizes, hits
