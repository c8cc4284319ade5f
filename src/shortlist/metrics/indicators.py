"""Top-k accuracy where examples have several right labels, given as an indicator matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from shortlist.metrics._topk import topk_accuracy


def as_indicator(y: Any, n: int, m: int) -> NDArray:
    """What to score by, as a boolean matrix, checked to be of shape (n, m) and not empty."""
    from shortlist.losses.labels import check_indicator  # loads kernels

    given: Any = y if sparse.issparse(y) else np.asarray(y)
    if given.shape != (n, m):
        raise ValueError(
            f"for several right labels y must be an indicator matrix of shape ({n}, {m}); "
            f"got shape {given.shape}"
        )
    check_indicator(given)
    indicator = (given.toarray() if sparse.issparse(given) else given).astype(bool)
    if not indicator.any():
        raise ValueError("y marks no right label: there is nothing to score")
    return indicator


def best_right(indicator: NDArray, scores: NDArray) -> NDArray[np.intp]:
    """The column of each example's right label with the highest score; 0 if it has none."""
    return np.where(indicator, scores, -np.inf).argmax(axis=1)


def hit_rate(
    indicator: NDArray,
    scores: NDArray,
    k: int,
    sample_weight: ArrayLike | None = None,
    ties: str = "optimistic",
) -> float:
    """The share of examples of whose right labels at least one is among the k best.

    That is top-k accuracy for the right label with the highest score. Examples without a right
    label are left out.
    """
    labelled = indicator.any(axis=1)
    best = best_right(indicator, scores)
    weights = None if sample_weight is None else np.asarray(sample_weight)[labelled]
    return topk_accuracy(best[labelled], scores[labelled], k, ties, sample_weight=weights)
