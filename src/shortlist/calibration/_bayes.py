"""The smallest possible top-k error at a distribution of the label, and scores that attain it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._parameters import check_k

#: Probabilities closer than this count as equal: .1 + .2 and .3 are.
TIE_TOLERANCE = 1e-12
_SUM_TOLERANCE = 1e-6


def check_distribution(p: ArrayLike) -> NDArray[np.float64]:
    """p as a vector of at least two probabilities that sum to one."""
    vector = _probabilities(p)
    if vector.ndim != 1:
        raise ValueError(f"p must be a vector of class probabilities, got shape {vector.shape}")
    return vector


def _probabilities(p: ArrayLike) -> NDArray[np.float64]:
    try:
        array = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("p must be an array of probabilities") from error
    if array.ndim not in (1, 2) or array.shape[-1] < 2:
        raise ValueError(
            f"p must have shape (n_classes,) or (n, n_classes) with 2 classes or more, "
            f"got {array.shape}"
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("p must be finite and nonnegative")
    total = array.sum(axis=-1, keepdims=True)
    if (np.abs(total - 1) > _SUM_TOLERANCE).any():
        raise ValueError(f"p must sum to 1, got a sum of {total.ravel()[0]:.6g}")
    return array / total


def check_shortlist_size(k: int, n_classes: int) -> int:
    return check_k(k, n_classes, "the number of classes")


def bayes_topk_error(p: ArrayLike, k: int) -> float | NDArray[np.float64]:
    """One minus the sum of the k largest probabilities: no shortlist of k labels errs less.

    `p` is one distribution (n_classes,), which gives a number, or several (n, n_classes).
    """
    probabilities = _probabilities(p)
    k = check_shortlist_size(k, probabilities.shape[-1])
    # The smallest ones summed: exact zero at k = n_classes, and no cancellation near it.
    rest = np.sort(probabilities, axis=-1)[..., : probabilities.shape[-1] - k]
    error = rest.sum(axis=-1)
    return float(error) if probabilities.ndim == 1 else error


@dataclass(frozen=True)
class OptimalShortlists:
    """All Bayes-optimal shortlists: those with every required label and only allowed ones."""

    required: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


def optimal_shortlists(p: ArrayLike, k: int) -> OptimalShortlists:
    """The shortlists of k labels with the smallest error at p (the paper's Lemma 1).

    With c the k-th largest probability, labels above c are required and those of at least c
    allowed. Lemma 1 states the second half, which suffices when the (k+1)-th probability is
    smaller; where it equals c, a shortlist may not trade a likelier label for a tied one.
    """
    vector = check_distribution(p)
    cut = np.sort(vector)[::-1][check_shortlist_size(k, len(vector)) - 1]
    return OptimalShortlists(
        required=vector > cut + TIE_TOLERANCE, allowed=vector >= cut - TIE_TOLERANCE
    )


def worst_topk_error(scores: ArrayLike, p: ArrayLike, k: int, *, atol: float = 0.0) -> float:
    """The top-k error of scores at p when ties between scores are broken in the worst way.

    The shortlist is a set of exactly k labels; scores within `atol` of the k-th largest may or
    may not enter it. Infinite scores are allowed.
    """
    vector = check_distribution(p)
    k = check_shortlist_size(k, len(vector))
    g = _check_score_vector(scores, len(vector))
    cut = np.sort(g)[::-1][k - 1]
    if np.isfinite(cut):
        above = g > cut + atol
        tied = ~above & (g >= cut - atol)
    else:
        above, tied = g > cut, g == cut
    places = k - int(above.sum())
    listed = vector[above].sum() + np.sort(vector[tied])[:places].sum()
    return float(max(1.0 - listed, 0.0))


def is_bayes_optimal(scores: ArrayLike, p: ArrayLike, k: int, *, atol: float = 0.0) -> bool:
    """Whether every shortlist that the scores allow has the smallest possible top-k error.

    Ties count against the scores: constant scores are optimal only if p leaves no choice. (The
    top-k error as the paper defines it calls a tied label right, so constant scores would never
    err; its notion of calibration needs this stricter reading, and uses it.)
    """
    smallest = float(bayes_topk_error(check_distribution(p), k))
    return worst_topk_error(scores, p, k, atol=atol) <= smallest + TIE_TOLERANCE


def _check_score_vector(scores: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    g = np.asarray(scores, dtype=np.float64)
    if g.shape != (n_classes,):
        raise ValueError(f"scores must have shape ({n_classes},) like p, got {g.shape}")
    if np.isnan(g).any():
        raise ValueError("scores contains NaN")
    return g
