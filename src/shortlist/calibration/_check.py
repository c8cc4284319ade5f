"""Whether every minimiser of a loss at p has a Bayes-optimal shortlist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.calibration._bayes import (
    bayes_topk_error,
    check_distribution,
    check_shortlist_size,
    optimal_shortlists,
    worst_topk_error,
)
from shortlist.calibration._closed_forms import likeliest_labels
from shortlist.calibration._minimise import Optimum, minimise
from shortlist.calibration._optimum import as_loss, is_truncated_entropy, require_full_support
from shortlist.calibration._pooling import logistic_infimum, truncated_infimum
from shortlist.losses import Loss

Vector = NDArray[np.float64]
Shortlist = NDArray[np.bool_]


@dataclass(frozen=True)
class CalibrationCheck:
    """The outcome of `is_topk_calibrated`; true or false as its ``calibrated``.

    Attributes
    ----------
    calibrated : whether every minimiser at `p` has a Bayes-optimal shortlist of `k` labels
    p, k : what was asked
    risk : the infimum of the expected loss
    wrong_risk : its infimum over scores that allow a shortlist which is not Bayes optimal;
        infinite if every shortlist is
    scores : a minimiser (entries may be infinite)
    witness : scores with a suboptimal shortlist and expected loss `wrong_risk`. If the loss is
        not calibrated at `p` they are a minimiser; None if every shortlist is optimal
    bayes_error : the smallest possible top-k error
    witness_error : the top-k error of the witness, ties broken in the worst way
    method : "linear program", "convex minimisation" or "closed form"
    """

    calibrated: bool
    p: Vector
    k: int
    risk: float
    wrong_risk: float
    scores: Vector
    witness: Vector | None
    bayes_error: float
    witness_error: float
    method: str

    def __bool__(self) -> bool:
        return self.calibrated

    @property
    def gap(self) -> float:
        """How much expected loss separates wrong shortlists from the minimum; 0 is a failure."""
        return self.wrong_risk - self.risk

    @property
    def excess_error(self) -> float:
        """What the witness's shortlist costs: its top-k error beyond the Bayes error."""
        return self.witness_error - self.bayes_error


def is_topk_calibrated(
    loss: Loss | str, p: ArrayLike, k: int | None = None, *, tol: float = 1e-10
) -> CalibrationCheck:
    """Whether every minimiser of the expected loss at p has a Bayes-optimal shortlist of k labels.

    Scores are wrong if some way of breaking their ties yields a suboptimal shortlist S, that is,
    if they lie in the cone "S on top". The check minimises the expected loss once over all
    scores and once over the wrong ones; the loss is calibrated at p if the second minimum is
    larger (by more than `tol`). That settles all minimisers at once, unique or not, and also
    minima at infinity, where it asks that no sequence of wrong scores approaches the infimum.

    One or two cones stand for all suboptimal shortlists: exchanging the scores of a likelier
    label left out and a less likely one listed never raises the expected loss (all losses here
    treat labels alike, and cost less for a label with a larger score), so the best wrong scores
    list the labels of an optimal shortlist but for one exchange across the cut.

    Parameters
    ----------
    loss : a loss of `shortlist.losses`, or its name
    p : array of shape (n_classes,), the probability of each label
    k : the length of the shortlist, the loss's own k by default
    tol : gaps up to this count as zero. Where the k-th and the next probability differ by d, a
        calibrated smooth loss has a gap of the order of d^2: p with d below 1e-4 or so are too
        close to a tie to be judged.

    Returns
    -------
    CalibrationCheck
        True or false in a condition, with the evidence.
    """
    loss = as_loss(loss)
    vector = check_distribution(p)
    loss.check_classes(len(vector))
    k = check_shortlist_size(loss.k if k is None else k, len(vector))
    best = _optimum(loss, vector, None)
    rivals = [_optimum(loss, vector, s) for s in nearest_wrong_shortlists(vector, k)]
    rival = min(rivals, key=lambda optimum: optimum.risk, default=None)
    bayes_error = float(bayes_topk_error(vector, k))
    return CalibrationCheck(
        calibrated=rival is None or rival.risk - best.risk > tol,
        p=vector,
        k=k,
        risk=best.risk,
        wrong_risk=np.inf if rival is None else rival.risk,
        scores=best.scores,
        witness=None if rival is None else rival.scores,
        bayes_error=bayes_error,
        witness_error=(bayes_error if rival is None else worst_topk_error(rival.scores, vector, k)),
        method=best.method,
    )


def _optimum(loss: Loss, p: Vector, shortlist: Shortlist | None) -> Optimum:
    at_infinity = bool((p == 0).any())
    if loss.name == "truncated_entropy" or (is_truncated_entropy(loss) and at_infinity):
        return truncated_infimum(p, loss.k, shortlist)
    if loss.name == "ova_logistic" and at_infinity:
        return logistic_infimum(p, shortlist)
    require_full_support(loss, p)
    return minimise(loss, p, shortlist)


def nearest_wrong_shortlists(p: Vector, k: int) -> list[Shortlist]:
    """Suboptimal shortlists one exchange away from an optimal one, the cheapest of each kind.

    Kinds: the least likely required label gives way to a tied one, or the last place goes to the
    likeliest label that is not allowed. Either may not exist.
    """
    optimal = optimal_shortlists(p, k)
    tied = np.flatnonzero(optimal.allowed & ~optimal.required)
    places = k - int(optimal.required.sum())
    wrong = []
    if optimal.required.any() and len(tied) > places:
        shortlist = optimal.required.copy()
        shortlist[np.argmin(np.where(optimal.required, p, np.inf))] = False
        shortlist[tied[: places + 1]] = True
        wrong.append(shortlist)
    if not optimal.allowed.all():
        shortlist = optimal.required.copy()
        shortlist[tied[: places - 1]] = True
        shortlist[likeliest_labels(np.where(optimal.allowed, -1.0, p), 1)] = True
        wrong.append(shortlist)
    return wrong
