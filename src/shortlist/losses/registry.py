"""Losses by name, and the table the documentation shows; ``entries`` lists them."""

import math
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._parameters import HINGE_VARIANTS, VARIANTS, Parameters, check_k
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.losses.base import Loss
from shortlist.losses.entries import ALIASES, ENTRIES, Entry, entry_of, names
from shortlist.losses.margins import check_margins
from shortlist.projections.checks import check_rank_weights, check_variant

__all__ = [
    "ENTRIES",
    "entry_of",
    "get",
    "in_words",
    "mixture_weights",
    "names",
    "table",
    "taking",
    "with_probabilities",
]


def in_words(loss: Loss) -> str:
    """What a loss is called: the words of its entry, or its own name if it has none."""
    return ENTRIES[loss.name].words if loss.name in ENTRIES else loss.name


def with_probabilities(k: int) -> list[str]:
    """The names of the losses that estimate probabilities at this k."""
    given = Parameters(k, "alpha", smoothing=1.0)
    return [name for name, entry in ENTRIES.items() if entry.make(given).has_probabilities]


def taking(parameter: str) -> list[str]:
    """The names of the losses that depend on a parameter, such as "margins"."""
    return [name for name, entry in ENTRIES.items() if parameter in entry.uses]


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
    name : one of :func:`names`, such as "hinge"; :func:`table` says what each is. "softmax" is
        "entropy" at k = 1.
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
        in place of 1/k for each of k; they do not increase, and are scaled to sum to 1. For the
        mixtures, the shares of each k as :func:`mixture_weights` has them; without, 1 to k have
        equal shares.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"the loss must be given by name, one of {', '.join(names())}; got {name!r}"
        )
    if name not in ENTRIES and name not in ALIASES:
        raise ValueError(f"unknown loss {name!r}; choose one of {', '.join(names())}")
    k = check_k(k)
    if name in ALIASES and k != ALIASES[name].k:
        of, only = ALIASES[name]
        use = Setting("loss", of)
        raise WordedError(f"{name} is the {of} loss at k={only}; got k={k}. Use " + use + ".")
    entry = entry_of(name)
    check_variant(variant, HINGE_VARIANTS if entry.printed else VARIANTS)
    if not isinstance(smoothing, Real) or not (0 <= smoothing < math.inf):
        problem = f"must be a finite number, zero or larger; got {smoothing!r}"
        raise ParameterError("smoothing", problem)
    if multilabel and entry.several_up_to == 0:
        at_any, at_one = (
            ", ".join(other for other, e in ENTRIES.items() if e.several_up_to == limit)
            for limit in (None, 1)
        )
        raise ValueError(
            f"the loss {name!r} takes one right label per example. Several are taken by "
            f"{at_any}, and {at_one} at k=1."
        )
    given = Parameters(k, variant, float(smoothing), multilabel)
    if margins is not None or rank_weights is not None or variant == "printed":
        _check_extras(entry, given, margins, rank_weights)
    if margins is not None:
        given = given._replace(margins=check_margins(margins))
    if rank_weights is not None:
        ranks = check_rank_weights("rank_weights", rank_weights)
        positive = ranks[ranks > 0]
        given = given._replace(rank_weights=positive / positive.sum())
    return entry.make(given)


def _check_extras(
    entry: Entry, given: Parameters, margins: ArrayLike | None, rank_weights: ArrayLike | None
) -> None:
    """Raise where a loss, or another parameter, leaves no room for these."""
    for name, value in (("margins", margins), ("rank_weights", rank_weights)):
        if value is not None and name not in entry.uses:
            *others, last = taking(name)
            able = f"{', '.join(others)} and {last}"
            raise ValueError(f"{name} are for the losses {able}; got {entry.name!r}")
    if given.multilabel and not entry.takes_several(1, given.variant, margins, rank_weights):
        raise ValueError(
            "margins, rank_weights and variant='printed' are for one right label per example"
        )
    if rank_weights is not None and given.variant == "printed":
        raise ValueError("rank_weights go with variant 'alpha' or 'beta'; got 'printed'")


def mixture_weights(shares: Mapping[int, float]) -> NDArray:
    """``rank_weights`` of a mixture over several k, from each k's share.

    The hinge beta with the weights w_r = sum over k >= r of mu_k / k is sum_k mu_k beta_k, and for
    every nonincreasing w there is such a mixture. With variant="alpha" they make
    max(0, sum_k mu_k alpha_k), the alphas without their positive parts. "mixed_smooth_hinge" and
    "mixed_entropy" are the sums of the losses themselves.
    """
    for k, share in shares.items():
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"every k of a mixture must be an integer, 1 or larger; got {k!r}")
        if not isinstance(share, Real) or not 0 <= share < math.inf:
            raise ValueError(f"the share of k={k} must be zero or larger; got {share!r}")
    weights = np.zeros(max(shares, default=0))
    for k, share in shares.items():
        weights[:k] += share / k
    return check_rank_weights("the shares of a mixture", weights)


def table() -> list[dict[str, str]]:
    """The table of losses, one mapping a row, for documentation and terminals."""

    def yes(flag: bool) -> str:
        return "yes" if flag else "no"

    several = {0: "no", 1: "at k = 1", None: "yes"}
    return [
        {
            "loss": entry.name,
            "what": entry.title,
            "formula": entry.formula,
            "convex": yes(entry.convex),
            "smooth": yes(entry.smooth),
            "top-k calibrated": entry.calibrated,
            "SDCA": yes(entry.has_dual_step),
            "several labels": several[entry.several_up_to],
            "torch": entry.torch,
        }
        for entry in ENTRIES.values()
    ]
