"""Whether two classifiers differ by more than chance: both are tested on the same examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def standard_error(accuracy: float, n: int) -> float:
    """The standard error, in points, of an accuracy in per cent on ``n`` examples."""
    share = accuracy / 100
    return 100 * math.sqrt(max(share * (1 - share), 0.0) / n)


@dataclass(frozen=True)
class Comparison:
    """Accuracy of one classifier above another's, in points.

    ``error`` is the standard error of the difference over paired examples; ``p_value`` that of
    McNemar's exact test: how likely the examples on which only one is right split so unevenly if
    each were as likely to be right.
    """

    difference: float
    error: float
    p_value: float


def compare(ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> Comparison:
    """Compare which examples two classifiers have right."""
    from scipy.stats import binomtest

    n = len(ours)
    only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    differing = only_ours + only_theirs
    difference = (only_ours - only_theirs) / n
    variance = max(differing / n - difference**2, 0.0) / n
    p_value = float(binomtest(only_ours, differing).pvalue) if differing else 1.0
    return Comparison(100 * difference, 100 * math.sqrt(variance), p_value)


def mean_ranks(accuracies: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean rank of each method over several data sets; 1 is best, equals share their ranks.

    ``accuracies`` holds a mapping from methods to accuracies for each data set. Methods that are
    missing in one of them are left out. Without data sets there are no ranks.
    """
    from scipy.stats import rankdata

    if not accuracies:
        return {}
    methods = [m for m in accuracies[0] if all(m in each for each in accuracies)]
    ranks = [rankdata([-each[m] for m in methods], nan_policy="omit") for each in accuracies]
    return dict(zip(methods, np.mean(ranks, axis=0).tolist(), strict=True))
