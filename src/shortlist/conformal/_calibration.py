"""From calibration scores to thresholds, with finite-sample exactness."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shortlist._parameters import is_real

#: The threshold of a class without a group, or with too few calibration examples in it.
Fallback = Literal["include", "pool", "marginal"]
NO_GROUP = -1


def check_level(level: float | None, name: str = "confidence_level") -> float:
    """A level strictly between 0 and 1."""
    if not is_real(level) or not 0 < level < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, such as 0.9; got {level!r}")
    return float(level)


def rank_of_level(n_samples: int, level: float) -> int:
    """ceil((n + 1) level), exact for the decimal number that the level is written as."""
    return math.ceil((n_samples + 1) * _exact(level))


def samples_needed(level: float) -> int:
    """The least number of calibration examples that can promise this level."""
    exact = _exact(level)
    return math.ceil(exact / (1 - exact))


def upper_quantile(scores: NDArray[np.float64], level: float) -> float:
    """The ceil((n + 1) level)-th smallest score; infinity if there are too few."""
    rank = rank_of_level(len(scores), level)
    if rank > len(scores):
        return math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def threshold_for_size(chunks: Iterable[NDArray[np.float64]], n_samples: int, size: float) -> float:
    """The largest threshold at which at most ``size`` entries a row, on average, are below it.

    Keeps the ``size * n_samples`` smallest entries, never all of them. Minus infinity if ties
    leave no such threshold.
    """
    budget = math.floor(n_samples * _exact(size))
    smallest = np.empty(0)
    for values in chunks:
        smallest = np.concatenate([smallest, values.ravel()])
        if len(smallest) > budget + 1:
            smallest = np.partition(smallest, budget)[: budget + 1]
    if len(smallest) <= budget:
        return math.inf
    return float(smallest[smallest < smallest.max()].max(initial=-math.inf))


@dataclass(frozen=True)
class Calibration:
    """The scores of the calibration examples, and which classes share a threshold.

    ``columns`` is the class of each example, ``group_of_class`` the group of each class: all in
    one, one each, or clusters, with NO_GROUP for a class outside all of them.
    """

    scores: NDArray[np.float64]
    columns: NDArray[np.intp]
    group_of_class: NDArray[np.intp]
    fallback: Fallback

    def thresholds(self, level: float) -> NDArray[np.float64]:
        """The threshold of each class. ValueError if there are too few examples in all."""
        needed = samples_needed(level)
        if len(self.scores) < needed:
            raise ValueError(
                f"confidence_level={level:g} needs at least {needed} calibration examples; "
                f"got {len(self.scores)}"
            )
        groups = self.group_of_class[self.columns]
        large = self.large_enough(level)
        by_group = np.array(
            [
                upper_quantile(self.scores[groups == group], level) if large[group] else math.inf
                for group in range(len(large))
            ]
        )
        served = self._served(level)
        result = np.full(len(self.group_of_class), self._fallback_threshold(level, served))
        result[served] = by_group[self.group_of_class[served]]
        return result

    def large_enough(self, level: float) -> NDArray[np.bool_]:
        """Which groups have the examples that the level needs."""
        groups = self.group_of_class[self.columns]
        n_groups = self.group_of_class.max(initial=NO_GROUP) + 1
        counts = np.bincount(groups[groups != NO_GROUP], minlength=n_groups)
        return counts >= samples_needed(level)

    def _served(self, level: float) -> NDArray[np.bool_]:
        """Which classes have a group that is large enough."""
        in_group = self.group_of_class != NO_GROUP
        served = np.zeros(len(in_group), dtype=bool)
        served[in_group] = self.large_enough(level)[self.group_of_class[in_group]]
        return served

    def _fallback_threshold(self, level: float, served: NDArray[np.bool_]) -> float:
        if self.fallback == "include":
            return math.inf
        if self.fallback == "marginal":
            return upper_quantile(self.scores, level)
        return upper_quantile(self.scores[~served[self.columns]], level)


def _exact(number: float) -> Fraction:
    """The number as its shortest decimal: 0.1 is a tenth, not the nearest double."""
    return Fraction(repr(float(number)))
