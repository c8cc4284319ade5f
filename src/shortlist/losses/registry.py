"""All losses by name: how each is made and the table the documentation shows.

Adding a loss: its kernels in a file of this folder, an entry here, a row in tests/instances.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.losses.base import Loss
from shortlist.losses.entropy import Softmax, TopKEntropy
from shortlist.losses.entropy_multilabel import MultilabelSoftmax
from shortlist.losses.hinge import AlphaHinge, BetaHinge
from shortlist.losses.hinge_multilabel import MultilabelAlphaHinge, MultilabelBetaHinge
from shortlist.losses.ova import OVAHinge, OVALogistic
from shortlist.losses.truncated import TruncatedEntropy
from shortlist.projections.entropic import kind_of
from shortlist.projections.rows import check_variant


@dataclass(frozen=True)
class Entry:
    """One line of the table of losses, and the function that makes the loss."""

    name: str
    title: str
    formula: str
    convex: bool
    smooth: bool
    calibrated: str
    sdca: bool
    torch: str
    make: Callable[[int, str, float], Loss]
    uses: tuple[str, ...]
    several: str = "no"
    make_multilabel: Callable[[int, str, float], Loss] | None = None


def _hinge(k: int, variant: str, smoothing: float, multilabel: bool = False) -> Loss:
    alpha = variant == "alpha" and k > 1
    family: Callable[[int, float], Any]
    if multilabel:
        family = MultilabelAlphaHinge if alpha else MultilabelBetaHinge
    else:
        family = AlphaHinge if alpha else BetaHinge
    smooth = smoothing > 0
    return Loss(
        "smooth_hinge" if smooth else "hinge",
        k,
        variant,
        smoothing,
        family(k, smoothing),
        convex=True,
        smooth=smooth,
        multilabel=multilabel,
        sparse_duals=True,
        # The smooth beta hinge is defined on any wrong label; the others need k of them.
        fewest_classes=2 if smooth and variant == "beta" else k + 1,
        smoother=None if smooth else partial(_hinge, k, variant, multilabel=multilabel),
    )


def _entropy(k: int, variant: str, smoothing: float) -> Loss:
    spec = Softmax() if k == 1 else TopKEntropy(k, kind_of(k, variant))
    return Loss(
        "entropy", k, variant, 0.0, spec, True, True, probabilities=_softmax if k == 1 else None
    )


def _multilabel_entropy(k: int, variant: str, smoothing: float) -> Loss:
    if k > 1:
        raise WordedError(
            f"the entropy loss takes examples with several labels at k=1 only; got k={k}. Use "
            + Setting("loss", "smooth_hinge")
            + " or "
            + Setting("loss", "hinge")
            + "."
        )
    return replace(_entropy(k, variant, smoothing), spec=MultilabelSoftmax(), multilabel=True)


def _truncated(k: int, variant: str, smoothing: float) -> Loss:
    if k == 1:
        return replace(_entropy(1, variant, 0.0), name="truncated_entropy", variant=None)
    return Loss(
        "truncated_entropy",
        k,
        None,
        0.0,
        TruncatedEntropy(k),
        convex=False,
        smooth=False,
        start_from=partial(_entropy, 1, variant, 0.0),
    )


def _ova_hinge(k: int, variant: str, smoothing: float) -> Loss:
    smooth = smoothing > 0
    return Loss(
        "ova_smooth_hinge" if smooth else "ova_hinge",
        1,
        None,
        smoothing,
        OVAHinge(smoothing),
        convex=True,
        smooth=smooth,
        sparse_duals=True,
        smoother=None if smooth else partial(_ova_hinge, k, variant),
    )


def _ova_logistic(k: int, variant: str, smoothing: float) -> Loss:
    return Loss(
        "ova_logistic", 1, None, 0.0, OVALogistic(), True, True, probabilities=_normalised_sigmoids
    )


def _softmax(scores: NDArray) -> NDArray:
    return softmax(scores, axis=1)


def _normalised_sigmoids(scores: NDArray) -> NDArray:
    shares = expit(scores)
    totals = shares.sum(axis=1, keepdims=True)
    # All sigmoids at zero: every class is as unlikely as any other.
    return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), 1 / scores.shape[1])


_HINGES = (
    "no for k <= m - 2 (counterexample; at k = 1 Prop. 3); "
    "at k = m - 1 alpha yes (theorem), beta no (counterexample)"
)
_TABLE = [
    Entry(
        "hinge",
        "top-k hinge (multiclass SVM at k = 1)",
        "alpha: max(0, mean of the k largest 1+u_j); "
        "beta: mean over the k largest of max(0, 1+u_j)",
        convex=True,
        smooth=False,
        calibrated=_HINGES,
        sdca=True,
        torch="TopKHingeLoss",
        make=lambda k, variant, smoothing: _hinge(k, variant, 0.0),
        uses=("k", "variant"),
        several="yes",
        make_multilabel=lambda k, variant, smoothing: _hinge(k, variant, 0.0, True),
    ),
    Entry(
        "smooth_hinge",
        "smooth top-k hinge",
        "max of <1+u, x> - (smoothing/2)|x|^2 over the top-k simplex",
        convex=True,
        smooth=True,
        calibrated="yes (theorem)",
        sdca=True,
        torch="TopKHingeLoss",
        make=_hinge,
        uses=("k", "variant", "smoothing"),
        several="yes",
        make_multilabel=lambda k, variant, smoothing: _hinge(k, variant, smoothing, True),
    ),
    Entry(
        "entropy",
        "top-k entropy (softmax at k = 1)",
        "max of <u, x> - <x, log x> - (1-s) log(1-s) over the top-k simplex; "
        "k = 1: log(1 + sum_j exp u_j)",
        convex=True,
        smooth=True,
        calibrated="yes (theorem; at k = 1 Prop. 4)",
        sdca=True,
        torch="TopKEntropyLoss",
        make=_entropy,
        uses=("k", "variant"),
        several="at k = 1",
        make_multilabel=_multilabel_entropy,
    ),
    Entry(
        "truncated_entropy",
        "truncated top-k entropy",
        "log(1 + sum of exp u_j over the m-k smallest)",
        convex=False,
        smooth=False,
        calibrated="yes (Prop. 10)",
        sdca=False,
        torch="TruncatedTopKEntropyLoss",
        make=_truncated,
        uses=("k",),
    ),
    Entry(
        "ova_hinge",
        "one-vs-all hinge (SVM)",
        "sum over classes of max(0, 1 - t_j), t_j = +-f_j",
        convex=True,
        smooth=False,
        calibrated="no (Prop. 1)",
        sdca=True,
        torch="OVAHingeLoss",
        make=lambda k, variant, smoothing: _ova_hinge(k, variant, 0.0),
        uses=(),
    ),
    Entry(
        "ova_smooth_hinge",
        "one-vs-all smoothed hinge",
        "sum over classes of max over p in [0,1] of p (1 - t_j) - (smoothing/2) p^2",
        convex=True,
        smooth=True,
        calibrated="yes (Prop. 5)",
        sdca=True,
        torch="OVAHingeLoss",
        make=_ova_hinge,
        uses=("smoothing",),
    ),
    Entry(
        "ova_logistic",
        "one-vs-all logistic regression",
        "sum over classes of log(1 + exp(-t_j))",
        convex=True,
        smooth=True,
        calibrated="yes (Prop. 2)",
        sdca=True,
        torch="OVALogisticLoss",
        make=_ova_logistic,
        uses=(),
    ),
]
ENTRIES = {entry.name: entry for entry in _TABLE}
ALIASES = {"softmax": "entropy"}


def names() -> list[str]:
    """The names :func:`get` knows, aliases included."""
    return sorted([*ENTRIES, *ALIASES])


def get(
    name: str,
    *,
    k: int = 1,
    variant: str = "alpha",
    smoothing: float = 1.0,
    multilabel: bool = False,
) -> Loss:
    """The loss of that name.

    Parameters
    ----------
    name : "hinge", "smooth_hinge", "entropy", "truncated_entropy", "ova_hinge",
        "ova_smooth_hinge" or "ova_logistic"; "softmax" is "entropy" at k = 1.
    k : size of the shortlist, from 1 to the number of classes less one. One-vs-all losses do
        not depend on it.
    variant : "alpha" bounds a wrong label's share by s/k, "beta" by 1/k; the same at k = 1.
    smoothing : gamma > 0 of the smoothed hinges (0 gives the hinge itself); others ignore it.
    multilabel : whether an example has a set of right labels instead of one; for the hinges, and
        for the entropy at k = 1.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"the loss must be given by name, one of {', '.join(names())}; got {name!r}"
        )
    if name not in ENTRIES and name not in ALIASES:
        raise ValueError(f"unknown loss {name!r}; choose one of {', '.join(names())}")
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise TypeError(f"k must be an integer; got {k!r}")
    if k < 1:
        raise ParameterError("k", f"must be 1 or larger; got {k}")
    if name == "softmax" and k != 1:
        entropy = Setting("loss", "entropy")
        raise WordedError(f"softmax is the entropy loss at k=1; got k={k}. Use " + entropy + ".")
    check_variant(variant)
    if not isinstance(smoothing, Real) or not (0 <= smoothing < math.inf):
        problem = f"must be a finite number, zero or larger; got {smoothing!r}"
        raise ParameterError("smoothing", problem)
    entry = ENTRIES[ALIASES.get(name, name)]
    make = entry.make_multilabel if multilabel else entry.make
    if make is None:
        able = [e.name for e in _TABLE if e.make_multilabel is not None]
        raise ValueError(
            f"the loss {name!r} takes one right label per example. Several are taken by "
            f"{', '.join(able[:-1])}, and {able[-1]} at k=1."
        )
    return make(int(k), variant, float(smoothing))


def table() -> list[dict[str, str]]:
    """The table of losses, one mapping a row, for documentation and terminals."""

    def yes(flag: bool) -> str:
        return "yes" if flag else "no"

    return [
        {
            "loss": entry.name,
            "what": entry.title,
            "formula": entry.formula,
            "convex": yes(entry.convex),
            "smooth": yes(entry.smooth),
            "top-k calibrated": entry.calibrated,
            "SDCA": yes(entry.sdca),
            "several labels": entry.several,
            "torch": entry.torch,
        }
        for entry in _TABLE
    ]
