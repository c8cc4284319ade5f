"""All losses by name: how each is made and the table the documentation shows.

Adding a loss: its kernels in a file of this folder, an entry here, a row in tests/instances.py.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.losses.base import Loss
from shortlist.losses.entropy import Softmax, TopKEntropy
from shortlist.losses.entropy_multilabel import MultilabelSoftmax
from shortlist.losses.hinge import AlphaHinge, BetaHinge
from shortlist.losses.hinge_multilabel import MultilabelAlphaHinge, MultilabelBetaHinge
from shortlist.losses.margins import check_margins, with_margins
from shortlist.losses.ordered import OrderedHinge
from shortlist.losses.ova import OVAHinge, OVALogistic
from shortlist.losses.printed import PrintedHinge
from shortlist.losses.truncated import TruncatedEntropy
from shortlist.projections.checks import HINGE_VARIANTS, VARIANTS, check_variant, check_weights
from shortlist.projections.entropic import kind_of


class Parameters(NamedTuple):
    """What :func:`get` was given, checked."""

    k: int
    variant: str
    smoothing: float
    multilabel: bool = False
    margins: NDArray | None = None
    rank_weights: NDArray | None = None


@dataclass(frozen=True)
class Entry:
    """One line of the table of losses, and the function that makes the loss.

    ``words`` is what the loss is called in the legend of a plot, and ``title`` in a table.
    """

    name: str
    words: str
    title: str
    formula: str
    convex: bool
    smooth: bool
    calibrated: str
    sdca: bool
    torch: str
    make: Callable[[Parameters], Loss]
    uses: tuple[str, ...]
    variants: tuple[str, ...] = VARIANTS
    several: str = "no"


def _hinge(given: Parameters) -> Loss:
    smooth = given.smoothing > 0
    spec = _hinge_kernels(given)
    if given.margins is not None:
        spec = with_margins(spec, given.margins)
    return Loss(
        "smooth_hinge" if smooth else "hinge",
        given.k,
        given.variant,
        given.smoothing,
        spec,
        convex=True,
        smooth=smooth,
        multilabel=given.multilabel,
        labels_alike=given.margins is None,
        sparse_duals=True,
        fewest_classes=_fewest_classes(given),
        margins=given.margins,
        rank_weights=given.rank_weights,
        smoother=None if smooth else partial(_smoothed_hinge, given),
        with_margins=None if given.multilabel else partial(_hinge_with_margins, given),
    )


def _hinge_kernels(given: Parameters) -> Any:
    k, variant, gamma = given.k, given.variant, given.smoothing
    if given.rank_weights is not None:
        return OrderedHinge(given.rank_weights, variant == "alpha", gamma)
    if given.multilabel:
        family: Any = MultilabelBetaHinge if k == 1 or variant == "beta" else MultilabelAlphaHinge
    elif k == 1:
        family = BetaHinge
    else:
        family = {"alpha": AlphaHinge, "beta": BetaHinge, "printed": PrintedHinge}[variant]
    return family(k, gamma)


def _fewest_classes(given: Parameters) -> int:
    if given.rank_weights is not None:
        return 2 if given.variant == "beta" else len(given.rank_weights) + 1
    # The smooth beta hinge is defined on any wrong label; the others need k of them.
    return 2 if given.smoothing > 0 and given.variant == "beta" else given.k + 1


def _smoothed_hinge(given: Parameters, gamma: float) -> Loss:
    return _hinge(given._replace(smoothing=gamma))


def _hinge_with_margins(given: Parameters, margins: ArrayLike) -> Loss:
    return _hinge(given._replace(margins=check_margins(margins)))


def _plain_hinge(given: Parameters) -> Loss:
    return _smoothed_hinge(given, 0.0)


def _entropy(given: Parameters) -> Loss:
    k, variant = given.k, given.variant
    if given.multilabel and k > 1:
        raise WordedError(
            f"the entropy loss takes examples with several labels at k=1 only; got k={k}. Use "
            + Setting("loss", "smooth_hinge")
            + " or "
            + Setting("loss", "hinge")
            + "."
        )
    spec: Any = MultilabelSoftmax() if given.multilabel else Softmax()
    return Loss(
        "entropy",
        k,
        variant,
        0.0,
        spec if k == 1 else TopKEntropy(k, kind_of(k, variant)),
        convex=True,
        smooth=True,
        multilabel=given.multilabel,
        logits=_same if k == 1 else None,
    )


def _truncated(given: Parameters) -> Loss:
    softmax = given._replace(k=1)
    if given.k == 1:
        return replace(_entropy(softmax), name="truncated_entropy", variant=None)
    return Loss(
        "truncated_entropy",
        given.k,
        None,
        0.0,
        TruncatedEntropy(given.k),
        convex=False,
        smooth=False,
        start_from=partial(_entropy, softmax),
    )


def _ova_hinge(given: Parameters) -> Loss:
    smooth = given.smoothing > 0
    return Loss(
        "ova_smooth_hinge" if smooth else "ova_hinge",
        1,
        None,
        given.smoothing,
        OVAHinge(given.smoothing),
        convex=True,
        smooth=smooth,
        sparse_duals=True,
        separable=True,
        smoother=None if smooth else partial(_smoothed_ova_hinge, given),
    )


def _smoothed_ova_hinge(given: Parameters, gamma: float) -> Loss:
    return _ova_hinge(given._replace(smoothing=gamma))


def _plain_ova_hinge(given: Parameters) -> Loss:
    return _smoothed_ova_hinge(given, 0.0)


def _ova_logistic(given: Parameters) -> Loss:
    return Loss(
        "ova_logistic", 1, None, 0.0, OVALogistic(), True, True, separable=True, logits=log_expit
    )


def _same(scores: NDArray) -> NDArray:
    return scores


_HINGES = (
    "no for k <= m - 2 (counterexample; at k = 1 Prop. 3); "
    "at k = m - 1 alpha yes (theorem), beta and printed no for m >= 3 (counterexample)"
)
_TABLE = [
    Entry(
        "hinge",
        "hinge",
        "top-k hinge (multiclass SVM at k = 1)",
        "alpha: max(0, mean of the k largest 1+u_j); "
        "beta: mean over the k largest of max(0, 1+u_j)",
        convex=True,
        smooth=False,
        calibrated=_HINGES,
        sdca=True,
        torch="TopKHingeLoss",
        make=_plain_hinge,
        uses=("k", "variant", "margins", "rank_weights"),
        variants=HINGE_VARIANTS,
        several="yes",
    ),
    Entry(
        "smooth_hinge",
        "smooth hinge",
        "smooth top-k hinge",
        "max of <1+u, x> - (smoothing/2)|x|^2 over the top-k simplex",
        convex=True,
        smooth=True,
        calibrated="yes (theorem), if all margins are equal",
        sdca=True,
        torch="TopKHingeLoss",
        make=_hinge,
        uses=("k", "variant", "smoothing", "margins", "rank_weights"),
        variants=HINGE_VARIANTS,
        several="yes",
    ),
    Entry(
        "entropy",
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
    ),
    Entry(
        "truncated_entropy",
        "truncated entropy",
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
        "one-vs-all hinge",
        "one-vs-all hinge (SVM)",
        "sum over classes of max(0, 1 - t_j), t_j = +-f_j",
        convex=True,
        smooth=False,
        calibrated="no (Prop. 1)",
        sdca=True,
        torch="OVAHingeLoss",
        make=_plain_ova_hinge,
        uses=(),
    ),
    Entry(
        "ova_smooth_hinge",
        "one-vs-all smooth hinge",
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
        "one-vs-all logistic",
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


def in_words(loss: Loss) -> str:
    """What a loss is called: the words of its entry, or its own name if it has none."""
    return ENTRIES[loss.name].words if loss.name in ENTRIES else loss.name


def with_probabilities(k: int) -> list[str]:
    """The names of the losses that estimate probabilities at this k."""
    given = Parameters(k, "alpha", smoothing=1.0)
    return [entry.name for entry in _TABLE if entry.make(given).has_probabilities]


def taking(parameter: str) -> list[str]:
    """The names of the losses that depend on a parameter, such as "margins"."""
    return [entry.name for entry in _TABLE if parameter in entry.uses]


def get(
    name: str,
    *,
    k: int = 1,
    variant: str = "alpha",
    smoothing: float = 1.0,
    multilabel: bool = False,
    margins: ArrayLike | None = None,
    rank_weights: ArrayLike | None = None,
) -> Loss:
    """The loss of that name.

    Parameters
    ----------
    name : "hinge", "smooth_hinge", "entropy", "truncated_entropy", "ova_hinge",
        "ova_smooth_hinge" or "ova_logistic"; "softmax" is "entropy" at k = 1.
    k : size of the shortlist, from 1 to the number of classes less one. One-vs-all losses do
        not depend on it.
    variant : "alpha" bounds a wrong label's share by s/k, "beta" by 1/k; the same at k = 1.
        "printed", for the hinges, is alpha as the paper prints it: min(1/k, s/(k-1)).
    smoothing : gamma > 0 of the smoothed hinges (0 gives the hinge itself); others ignore it.
    multilabel : whether an example has a set of right labels instead of one; for the hinges, and
        for the entropy at k = 1.
    margins : for the hinges, by how much the label is to lead, in place of 1: a number for each
        class (n_classes,), or for each label and wrong label (n_classes, n_classes).
    rank_weights : for the hinges, weights of the largest, second largest, ... margin violation
        in place of 1/k for each of k; they do not increase, and are scaled to sum to 1.
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
    entry = ENTRIES[ALIASES.get(name, name)]
    check_variant(variant, entry.variants)
    if not isinstance(smoothing, Real) or not (0 <= smoothing < math.inf):
        problem = f"must be a finite number, zero or larger; got {smoothing!r}"
        raise ParameterError("smoothing", problem)
    if multilabel and entry.several == "no":
        able = [e.name for e in _TABLE if e.several != "no"]
        raise ValueError(
            f"the loss {name!r} takes one right label per example. Several are taken by "
            f"{', '.join(able[:-1])}, and {able[-1]} at k=1."
        )
    given = Parameters(int(k), variant, float(smoothing), multilabel)
    if margins is not None or rank_weights is not None or variant == "printed":
        _check_extras(entry, given, margins, rank_weights)
    if margins is not None:
        given = given._replace(margins=check_margins(margins))
    if rank_weights is not None:
        ranks = check_weights("rank_weights", rank_weights)
        positive = ranks[ranks > 0]
        given = given._replace(rank_weights=positive / positive.sum())
    return entry.make(given)


def _check_extras(
    entry: Entry, given: Parameters, margins: ArrayLike | None, rank_weights: ArrayLike | None
) -> None:
    """Raise where a loss, or another parameter, leaves no room for these."""
    for name, value in (("margins", margins), ("rank_weights", rank_weights)):
        if value is not None and name not in entry.uses:
            able = " and ".join(taking(name))
            raise ValueError(f"{name} are for the losses {able}; got {entry.name!r}")
    if given.multilabel:
        raise ValueError(
            "margins, rank_weights and variant='printed' are for one right label per example"
        )
    if rank_weights is not None and given.variant == "printed":
        raise ValueError("rank_weights go with variant 'alpha' or 'beta'; got 'printed'")


def mixture_weights(shares: Mapping[int, float]) -> NDArray:
    """``rank_weights`` of a mixture of top-k hinges beta, from each k's share.

    sum_k mu_k beta_k has the weights w_r = sum over k >= r of mu_k / k. For every nonincreasing w
    there is such a mixture. With variant="alpha" they make max(0, sum_k mu_k alpha_k), the
    alphas without their positive parts.
    """
    for k, share in shares.items():
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"every k of a mixture must be an integer, 1 or larger; got {k!r}")
        if not isinstance(share, Real) or not 0 <= share < math.inf:
            raise ValueError(f"the share of k={k} must be zero or larger; got {share!r}")
    weights = np.zeros(max(shares, default=0))
    for k, share in shares.items():
        weights[:k] += share / k
    return check_weights("the shares of a mixture", weights)


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
