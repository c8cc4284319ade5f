"""Nonconformity scores: how strange a label is for an example, small for the likely ones.

A score gives two things. ``of_labels`` is the score of each calibration example's own label; its
quantile is the threshold. ``candidates`` is what is compared with the threshold for every label: a
label is in the set if its entry is at most the threshold. For most scores both are the same
function, and that is what makes coverage exact. Labels whose responses tie have the same score, so
that a set holds all or none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shortlist._responses import Kind

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
LastLabel = bool | Literal["randomized"]


class Score:
    """A score that uses no draws and is compared as it is.

    ``responses`` are of the ``kind`` it asks for; ``draws`` is a uniform number for each example.
    """

    kind: Kind = "scores"

    def candidates(self, responses: Matrix, draws: Vector) -> Matrix:
        raise NotImplementedError

    def of_labels(self, responses: Matrix, columns: NDArray[np.intp], draws: Vector) -> Vector:
        return own(self.candidates(responses, draws), columns)


class MarginScore(Score):
    """The best score of the other labels less the label's own. Negative for the first label."""

    def candidates(self, responses: Matrix, draws: Vector) -> Matrix:
        two_best = np.partition(responses, -2, axis=1)[:, -2:]
        is_best = responses == two_best[:, 1:]
        return np.where(is_best, two_best[:, :1], two_best[:, 1:]) - responses


class LacScore(Score):
    """One less the probability of the label (least ambiguous classifier)."""

    kind: Kind = "probabilities"

    def candidates(self, responses: Matrix, draws: Vector) -> Matrix:
        return 1.0 - responses


class TopKScore(Score):
    """The label's place: one more than the number of labels with a larger score."""

    def candidates(self, responses: Matrix, draws: Vector) -> Matrix:
        return places_and_mass(responses)[0]


@dataclass(frozen=True)
class AdaptiveScore(Score):
    """APS, and RAPS with a ``penalty`` for each place after the first ``free_places``.

    The score of a label is the probability of all labels before it, a part of its own, and the
    penalty. ``include_last_label`` says which part, as the class ConformalShortlist explains.
    """

    include_last_label: LastLabel = True
    penalty: float = 0.0
    free_places: int = 0
    kind: Kind = "probabilities"

    def candidates(self, responses: Matrix, draws: Vector) -> Matrix:
        places, above = places_and_mass(responses)
        if self.include_last_label is True:
            # Judged by the label before: if that is within the threshold, this one is included.
            return above + self._penalties(places - 1)
        return self._score(places, above, responses, draws[:, None])

    def of_labels(self, responses: Matrix, columns: NDArray[np.intp], draws: Vector) -> Vector:
        places, above = places_and_mass(responses)
        return self._score(
            own(places, columns), own(above, columns), own(responses, columns), draws
        )

    def _score(self, places: Matrix, above: Matrix, mass: Matrix, draws: Matrix) -> Matrix:
        part = 1.0 if self.include_last_label is False else 1.0 - draws
        return above + part * mass + self._penalties(places)

    def _penalties(self, places: Matrix) -> Matrix:
        return self.penalty * np.maximum(0.0, places - self.free_places)


def own(values: Matrix, columns: NDArray[np.intp]) -> Vector:
    """The entry of each row in the given column."""
    return values[np.arange(len(values)), columns]


def places_and_mass(responses: Matrix) -> tuple[Matrix, Matrix]:
    """The place of each label, from 1, and the sum of the responses before it.

    Labels that tie share the first of their places.
    """
    n_samples, n_classes = responses.shape
    order = np.argsort(-responses, axis=1)
    order += n_classes * np.arange(n_samples)[:, None]  # positions in the flat arrays
    ranked = np.take(responses, order)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    first = np.broadcast_to(np.arange(n_classes), ranked.shape)
    ties = ranked[:, 1:] == ranked[:, :-1]
    if ties.any():
        begins = np.where(ties, 0, first[:, 1:])
        first = np.maximum.accumulate(np.pad(begins, ((0, 0), (1, 0))), axis=1)
        before = np.take_along_axis(before, first, axis=1)
    places, above = np.empty_like(ranked), np.empty_like(ranked)
    np.put(places, order, first + 1.0)
    np.put(above, order, before)
    return places, above
