"""Classes with alike scores, found by k-means (Ding, Angelopoulos, Bates, Jordan, Tibshirani 2023).

The share of the examples that the clustering takes and the number of clusters are the paper's
heuristics, applied to the classes that have enough examples for the level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shortlist.conformal._calibration import NO_GROUP, samples_needed

#: The quantiles of its scores that stand for a class, beside that of the confidence level.
_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9)
#: The paper's gamma is K / (75 + K) for K classes that are common enough.
_CLASSES_AT_HALF = 75


def plan_clusters(columns: NDArray[np.intp], n_classes: int, level: float) -> tuple[float, int]:
    """The share of the examples to find clusters with, and the number of clusters."""
    counts = np.bincount(columns, minlength=n_classes)
    common = counts[counts >= samples_needed(level)]
    if len(common) == 0:
        return 0.0, 1
    share = len(common) / (_CLASSES_AT_HALF + len(common))
    return share, max(1, int(share * common.min() / 2))


def cluster_classes(
    scores: NDArray[np.float64],
    columns: NDArray[np.intp],
    n_classes: int,
    level: float,
    n_clusters: int,
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """The cluster of each class; NO_GROUP for those with too few examples to tell."""
    from sklearn.cluster import KMeans

    counts = np.bincount(columns, minlength=n_classes)
    common = np.flatnonzero(counts >= samples_needed(level))
    clusters = np.full(n_classes, NO_GROUP, dtype=np.intp)
    if len(common) == 0:
        return clusters
    levels = (*_QUANTILES, level)
    profiles = np.array([np.quantile(scores[columns == c], levels) for c in common])
    n_clusters = min(n_clusters, len(np.unique(profiles, axis=0)))
    means = KMeans(n_clusters, n_init=10, random_state=random_state)
    clusters[common] = means.fit_predict(profiles, sample_weight=np.sqrt(counts[common]))
    return clusters
