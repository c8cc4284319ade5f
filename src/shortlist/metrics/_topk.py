"""Top-k error and accuracy under three policies for tied scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._parameters import MAX_TIED_SHARE, TIE_POLICIES, check_k
from shortlist.metrics.checks import check_sample_weight, check_scores, columns_of_labels
from shortlist.metrics.ranks import Ranks, ranks_of_columns


class TieWarning(UserWarning):
    """Tied scores decide a noticeable share of a top-k accuracy."""


def topk_error(
    y_true: ArrayLike,
    scores: ArrayLike,
    k: int = 1,
    ties: str = "optimistic",
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The weighted share of samples whose true label is not among the k largest scores.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        The true labels. Without `labels`, integers are column numbers; labels of another kind
        name the columns in sorted order if every class occurs.
    scores : array of shape (n_samples, n_classes), or (n_samples,) for a binary decision function
        Any real scores, larger is better; infinities are allowed, NaN is not. One-dimensional
        scores favour the second class where positive.
    k : int
        The length of the shortlist, from 1 to n_classes.
    ties : {"optimistic", "pessimistic", "expected"}
        What happens when the true label ties with others at the cut. "optimistic", the paper's
        definition: wrong only if the k-th largest score is strictly greater than the true
        label's. "pessimistic": right only if the label is in the shortlist however ties are
        broken. "expected": the probability of error when ties are broken at random.
    labels : array of shape (n_classes,), optional
        The label of each column, such as an estimator's ``classes_``. A true label that is not
        listed counts as an error for every k: no shortlist can contain it.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights.

    Warns
    -----
    TieWarning
        Under the optimistic policy, when ties decide more than 1% of the (weighted) samples:
        a classifier that scores all classes alike would otherwise look perfect.
    """
    matrix = check_scores(scores)
    k = check_k(k, matrix.shape[1], "the number of classes")
    hits, total = _hits(y_true, matrix, np.array([k]), ties, labels, sample_weight)
    return float((total - hits[0]) / total)


def topk_accuracy(
    y_true: ArrayLike,
    scores: ArrayLike,
    k: int = 1,
    ties: str = "optimistic",
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """One minus `topk_error`, with the same parameters and the same warning."""
    matrix = check_scores(scores)
    k = check_k(k, matrix.shape[1], "the number of classes")
    hits, total = _hits(y_true, matrix, np.array([k]), ties, labels, sample_weight)
    return float(hits[0] / total)


def topk_accuracy_curve(
    y_true: ArrayLike,
    scores: ArrayLike,
    max_k: int | None = None,
    ties: str = "optimistic",
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Top-k accuracy for k = 1, ..., max_k in one pass over the scores.

    Entry ``k - 1`` of the result equals ``topk_accuracy(y_true, scores, k, ...)``. `max_k` is
    n_classes by default; the other parameters and the warning are those of `topk_error`.
    """
    matrix = check_scores(scores)
    most = matrix.shape[1]
    max_k = check_k(most if max_k is None else max_k, most, "the number of classes", "max_k")
    hits, total = _hits(y_true, matrix, np.arange(1, max_k + 1), ties, labels, sample_weight)
    return hits / total


def _hits(
    y_true: ArrayLike,
    scores: NDArray[Any],
    ks: NDArray[np.intp],
    ties: str,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[NDArray[np.float64], float]:
    """The weight of the samples that are right at each k, and the total weight.

    Sums, not shares: without weights they are whole numbers, and so every quotient is exact.
    """
    if ties not in TIE_POLICIES:
        allowed = ", ".join(map(repr, TIE_POLICIES))
        raise ValueError(f"ties must be one of {allowed}; got {ties!r}")
    n_samples, n_classes = scores.shape
    columns = columns_of_labels(y_true, labels, n_samples, n_classes)
    weights = check_sample_weight(sample_weight, n_samples)
    ranks = Ranks(*ranks_of_columns(scores, columns), weights, n_classes)
    if ties == "optimistic":
        _warn_if_ties_decide(ranks, ks)
    return getattr(ranks, ties)()[ks], ranks.total


def _warn_if_ties_decide(ranks: Ranks, ks: NDArray[np.intp]) -> None:
    if (ranks.best == ranks.worst).all():
        return
    decided = (ranks.optimistic() - ranks.pessimistic())[ks]
    at = int(np.argmax(decided))
    if decided[at] > MAX_TIED_SHARE * ranks.total:
        k = int(ks[at])
        right, wrong, chance = (getattr(ranks, ties)()[k] / ranks.total for ties in TIE_POLICIES)
        warnings.warn(
            f"ties decide {decided[at] / ranks.total:.1%} of the samples: top-{k} accuracy is "
            f"{right:.4f} with every tie counted as right, {chance:.4f} with ties broken at "
            f"random, {wrong:.4f} with every tie counted as wrong. "
            'Pass ties="expected" (or "pessimistic") for a figure that ties cannot inflate',
            TieWarning,
            stacklevel=4,
        )
