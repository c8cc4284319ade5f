"""Whether the infimum of a loss at p is out of reach of scores with a wrong shortlist."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.calibration._bayes import (
    bayes_topk_error,
    check_shortlist_size,
    optimal_shortlists,
    worst_topk_error,
)
from shortlist.calibration._closed_forms import likeliest_labels
from shortlist.calibration._families import infimum
from shortlist.calibration._optimum import checked
from shortlist.losses import Loss

Vector = NDArray[np.float64]
Shortlist = NDArray[np.bool_]


@dataclass(frozen=True)
class CalibrationCheck:
    """The outcome of `is_topk_calibrated`; true or false as its ``calibrated``.

    Attributes
    ----------
    calibrated : whether wrong scores stay away from the infimum of the expected loss
    p, k : what was asked
    risk : the infimum of the expected loss
    wrong_risk : its infimum over wrong scores, those that allow a shortlist which is not Bayes
        optimal; infinite if there are none
    accuracy : an estimate of how much of the difference of the two is numerical error
    scores : where the infimum is attained, or approached (entries may be infinite)
    witness : the same for the infimum over wrong scores; None if there are none
    bayes_error : the smallest possible top-k error
    witness_error : the top-k error of the witness, ties broken in the worst way
    method : "linear program", "convex minimisation" or "closed form"
    """

    calibrated: bool
    p: Vector
    k: int
    risk: float
    wrong_risk: float
    accuracy: float
    scores: Vector
    witness: Vector | None
    bayes_error: float
    witness_error: float
    method: str

    def __bool__(self) -> bool:
        return self.calibrated

    @property
    def gap(self) -> float:
        """How much expected loss separates wrong scores from the infimum; 0 is a failure."""
        return self.wrong_risk - self.risk

    @property
    def excess_error(self) -> float:
        """What the witness's shortlist costs: its top-k error beyond the Bayes error."""
        return self.witness_error - self.bayes_error


def is_topk_calibrated(
    loss: Loss | str, p: ArrayLike, k: int | None = None, *, tol: float | None = None
) -> CalibrationCheck:
    """Whether no wrong scores come close to the infimum of the expected loss at p.

    Scores are wrong if some way of breaking their ties yields a shortlist of k labels that is
    not Bayes optimal. The loss is top-k calibrated at p if the infimum of its expectation over
    the wrong scores is larger than that over all scores. So a minimiser with a wrong shortlist
    is a failure, and so are wrong scores that run off to infinity while their expected loss
    approaches the infimum.

    Scores are wrong if they lie in the cone "S on top" of a suboptimal shortlist S. One or two
    cones stand for all: exchanging the scores of a likelier label left out and a less likely
    one listed never raises the expected loss (the losses treat labels alike, and cost less for a
    label with a larger score), so the best wrong scores list the labels of an optimal shortlist
    but for one exchange across the cut. Margins of classes tell labels apart: with them every
    suboptimal shortlist is tried.

    Parameters
    ----------
    loss : a loss of `shortlist.losses`, or its name
    p : array of shape (n_classes,), the probability of each label; ties and zeros are allowed
    k : the length of the shortlist, the loss's own k by default
    tol : gaps up to this count as zero. By default what the two minimisations leave uncertain:
        some 1e-14 times the size of the risk for smooth losses, 1e-8 for the linear programs.
        Where the k-th and the next probability differ by d, a calibrated smooth loss has a gap
        of the order of d^2 (times the smoothing, if that is small): a failure at p with d below
        1e-6 or so is no counterexample but a tie that double precision cannot tell.

    Returns
    -------
    CalibrationCheck
        True or false in a condition, with the evidence.
    """
    loss, vector = checked(loss, p)
    k = check_shortlist_size(loss.k if k is None else k, len(vector))
    best = infimum(loss, vector)
    wrong = nearest_wrong_shortlists if loss.labels_alike else all_wrong_shortlists
    rivals = [infimum(loss, vector, s) for s in wrong(vector, k)]
    rival = min(rivals, key=lambda optimum: optimum.risk, default=None)
    bayes_error = float(bayes_topk_error(vector, k))
    accuracy = best.accuracy + (0.0 if rival is None else rival.accuracy)
    threshold = accuracy if tol is None else tol
    return CalibrationCheck(
        calibrated=rival is None or rival.risk - best.risk > threshold,
        p=vector,
        k=k,
        risk=best.risk,
        wrong_risk=np.inf if rival is None else rival.risk,
        accuracy=accuracy,
        scores=best.scores,
        witness=None if rival is None else rival.scores,
        bayes_error=bayes_error,
        witness_error=(bayes_error if rival is None else worst_topk_error(rival.scores, vector, k)),
        method=best.method,
    )


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


def all_wrong_shortlists(p: Vector, k: int) -> list[Shortlist]:
    """Every suboptimal shortlist."""
    optimal = optimal_shortlists(p, k)
    wrong = []
    for labels in combinations(range(len(p)), k):
        shortlist = np.isin(np.arange(len(p)), labels)
        if not (optimal.required <= shortlist).all() or not (shortlist <= optimal.allowed).all():
            wrong.append(shortlist)
    return wrong
