"""The paper's Table 1, column "top-k calibrated", recomputed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from shortlist import losses
from shortlist.calibration._bayes import check_shortlist_size
from shortlist.calibration._check import CalibrationCheck, is_topk_calibrated
from shortlist.losses import Loss

#: From peaked to nearly uniform: hinges fail at different places.
_CONCENTRATIONS = (0.5, 1.0, 5.0, 50.0)
#: The least difference across the cut, so that a gap is far above the tolerance of the check.
_LEAST_CUT = 0.01


@dataclass(frozen=True)
class CalibrationRow:
    """One line of the table: what the paper says and what the search finds."""

    method: str
    loss: Loss
    k: int
    paper: str
    n_checked: int
    counterexample: CalibrationCheck | None
    smallest_gap: float

    @property
    def calibrated(self) -> bool:
        return self.counterexample is None

    @property
    def verdict(self) -> str:
        """In words, with the evidence."""
        if self.counterexample is None:
            return f"yes: no counterexample among {self.n_checked}"
        p = ", ".join(f"{probability:.3g}" for probability in self.counterexample.p)
        return f"no: p = ({p})"


@dataclass(frozen=True)
class CounterexampleSearch:
    """How a search for a counterexample went.

    A counterexample is a failed check and as such false: ask ``found``, not the check itself.
    """

    counterexample: CalibrationCheck | None
    n_checked: int
    smallest_gap: float

    @property
    def found(self) -> bool:
        return self.counterexample is not None


def find_counterexample(
    loss: Loss | str,
    k: int | None = None,
    *,
    n_classes: int = 4,
    n_trials: int = 100,
    random_state: int | np.random.RandomState | None = 0,
) -> CounterexampleSearch:
    """Look for a distribution at which the loss is not top-k calibrated.

    Draws `n_trials` distributions from peaked to nearly uniform, skipping those where the k-th
    and the next probability nearly tie, and stops at the first failure.
    """
    loss = losses.get(loss) if isinstance(loss, str) else loss
    k = check_shortlist_size(loss.k if k is None else k, n_classes)
    random = check_random_state(random_state)
    smallest_gap = np.inf
    n_checked = 0
    for trial in range(n_trials):
        concentration = _CONCENTRATIONS[trial % len(_CONCENTRATIONS)]
        p = random.dirichlet(np.full(n_classes, concentration))
        descending = np.sort(p)[::-1]
        if k < n_classes and descending[k - 1] - descending[k] < _LEAST_CUT:
            continue
        check = is_topk_calibrated(loss, p, k)
        n_checked += 1
        smallest_gap = min(smallest_gap, check.gap)
        if not check:
            return CounterexampleSearch(check, n_checked, smallest_gap)
    return CounterexampleSearch(None, n_checked, smallest_gap)


def calibration_table(
    k: int = 2,
    *,
    n_classes: int = 4,
    n_trials: int = 100,
    random_state: int = 0,
) -> list[CalibrationRow]:
    """Table 1's column "top-k calibrated" by searching counterexamples, one row per method.

    Every loss that depends on k takes this `k`; all are judged by the top-k error. A "no" is
    backed by a distribution and a minimiser with a wrong shortlist, a "yes" by the absence of
    one among `n_trials` distributions (and, for each of these rows, by a proof: the paper's, or
    the argument in this package's documentation).
    """
    if not 1 <= k <= n_classes - 1:
        raise ValueError(f"k must lie between 1 and n_classes - 1 = {n_classes - 1}, got {k}")
    rows = []
    for method, loss, paper in _methods(k):
        search = find_counterexample(
            loss, k, n_classes=n_classes, n_trials=n_trials, random_state=random_state
        )
        rows.append(
            CalibrationRow(
                method,
                loss,
                k,
                paper,
                search.n_checked,
                search.counterexample,
                search.smallest_gap,
            )
        )
    return rows


def _methods(k: int) -> list[tuple[str, Loss, str]]:
    """The rows of Table 1 (name, loss, the paper's answer), the beta entropy added."""
    get = losses.get
    hinge = "no" if k == 1 else "open"
    entropy = "yes" if k == 1 else "open"
    return [
        ("OVA SVM", get("ova_hinge"), "no"),
        ("OVA smooth SVM", get("ova_smooth_hinge"), "yes"),
        ("OVA logistic regression", get("ova_logistic"), "yes"),
        ("Multiclass SVM", get("hinge"), "no"),
        ("Softmax", get("entropy"), "yes"),
        ("Top-k hinge (alpha)", get("hinge", k=k, variant="alpha"), hinge),
        ("Top-k hinge (beta)", get("hinge", k=k, variant="beta"), hinge),
        ("Smooth top-k hinge (alpha)", get("smooth_hinge", k=k, variant="alpha"), "open"),
        ("Smooth top-k hinge (beta)", get("smooth_hinge", k=k, variant="beta"), "open"),
        ("Top-k entropy (alpha)", get("entropy", k=k, variant="alpha"), entropy),
        ("Top-k entropy (beta)", get("entropy", k=k, variant="beta"), entropy),
        ("Truncated top-k entropy", get("truncated_entropy", k=k), "yes"),
    ]
