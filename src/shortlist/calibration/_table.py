"""The paper's Table 1, column "top-k calibrated", recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from shortlist import losses
from shortlist.calibration._bayes import TIE_TOLERANCE, check_shortlist_size
from shortlist.calibration._check import CalibrationCheck, is_topk_calibrated
from shortlist.calibration._optimum import as_loss
from shortlist.losses import Loss

Vector = NDArray[np.float64]

#: From peaked to nearly uniform: hinges fail at different places.
_CONCENTRATIONS = (0.5, 1.0, 5.0, 50.0)
#: Whole weights from zero to this make distributions with ties and with labels that never occur.
_MAX_WEIGHT = 4
#: The least difference across the cut, unless it is a tie, so that a gap is far above what is
#: numerically uncertain.
_MIN_CUT = 0.01


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
        """The verdict in words, with its evidence."""
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
    n_classes: int | Sequence[int] = (3, 4, 5, 6),
    n_trials: int = 100,
    random_state: int | np.random.RandomState | None = 0,
) -> CounterexampleSearch:
    """Look for a distribution at which the loss is not top-k calibrated.

    Draws `n_trials` distributions and stops at the first failure. Half are from Dirichlet laws
    between peaked and nearly uniform, half have whole weights from 0 to 4, hence ties and zeros.
    Those where the k-th and the next probability nearly tie are skipped, and so are those where
    no shortlist is wrong.

    `n_classes` is a number of classes or several, of which those above k are used in turn.
    """
    loss = as_loss(loss)
    k = loss.k if k is None else k
    sizes = [n_classes] if isinstance(n_classes, int) else list(n_classes)
    usable = [m for m in sizes if m > max(k, loss.k)] or sizes[-1:]
    check_shortlist_size(k, usable[0])
    random = check_random_state(random_state)
    smallest_gap = np.inf
    n_checked = 0
    for trial in range(n_trials):
        p = _draw(usable[trial % len(usable)], trial // len(usable), random)
        if _nearly_ties(p, k):
            continue
        check = is_topk_calibrated(loss, p, k)
        if check.witness is None:
            continue
        n_checked += 1
        smallest_gap = min(smallest_gap, check.gap)
        if not check:
            return CounterexampleSearch(check, n_checked, smallest_gap)
    return CounterexampleSearch(None, n_checked, smallest_gap)


def _draw(n_classes: int, trial: int, random: np.random.RandomState) -> Vector:
    if trial % 2:
        weights = random.randint(0, _MAX_WEIGHT + 1, n_classes)
        weights[random.randint(n_classes)] += 1  # not all of them zero
        return weights / weights.sum()
    concentration = _CONCENTRATIONS[trial // 2 % len(_CONCENTRATIONS)]
    return random.dirichlet(np.full(n_classes, concentration))


def _nearly_ties(p: Vector, k: int) -> bool:
    descending = np.sort(p)[::-1]
    cut = descending[k - 1] - descending[k] if k < len(p) else 1.0
    return bool(TIE_TOLERANCE < cut < _MIN_CUT)


def calibration_table(
    k: int = 2,
    *,
    n_classes: int | Sequence[int] = (3, 4, 5, 6),
    n_trials: int = 100,
    random_state: int = 0,
) -> list[CalibrationRow]:
    """Table 1's column "top-k calibrated" by searching counterexamples, one row per method.

    Every loss that depends on k takes this `k`; all are judged by the top-k error. Rows that the
    paper does not have follow its own. A "no" is backed by a distribution and a minimiser with a
    wrong shortlist, a "yes" by the absence of one among `n_trials` distributions over `n_classes`
    classes, or several numbers of them in turn (and, for each of these rows, by a proof: the
    paper's, or the argument in this package's documentation).
    """
    most = n_classes if isinstance(n_classes, int) else max(n_classes)
    if not 1 <= k <= most - 1:
        raise ValueError(f"k must lie between 1 and n_classes - 1 = {most - 1}, got {k}")
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
    """The rows of Table 1 (name, loss, the paper's answer), then losses that it does not have.

    The weights of ranks are k, k - 1, ..., 1 but for a factor; those of a mixture stand for shares
    of 1 to k that grow with them.
    """
    get = losses.get
    weights = np.arange(k, 0, -1.0)
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
        ("Top-k hinge (alpha as printed)", get("hinge", k=k, variant="printed"), hinge),
        ("Smooth top-k hinge (printed)", get("smooth_hinge", k=k, variant="printed"), "open"),
        *(
            (f"{title} ({variant})", get(name, variant=variant, rank_weights=weights), "–")
            for name, title in (
                ("hinge", "Hinge, weights of ranks"),
                ("smooth_hinge", "Smooth hinge, weights of ranks"),
            )
            for variant in ("alpha", "beta")
        ),
        *(
            (f"{title} (alpha)", get(name, rank_weights=weights), "–")
            for name, title in (
                ("mixed_smooth_hinge", "Mixture of smooth top-1 to top-k hinges"),
                ("mixed_entropy", "Mixture of top-1 to top-k entropies"),
            )
        ),
    ]
