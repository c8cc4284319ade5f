"""How each loss is made from what :func:`shortlist.losses.get` was given: kernels and traits."""

from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from shortlist._parameters import Parameters
from shortlist._text import Setting
from shortlist.errors import WordedError
from shortlist.losses.base import Loss
from shortlist.losses.entropy import Softmax, TopKEntropy
from shortlist.losses.entropy_multilabel import MultilabelSoftmax
from shortlist.losses.hinge_multilabel import MultilabelAlphaHinge, MultilabelBetaHinge
from shortlist.losses.hinge_projection import AlphaHinge, BetaHinge
from shortlist.losses.margins import check_margins, with_margins
from shortlist.losses.ordered import OrderedHinge
from shortlist.losses.ova import OVAHinge, OVALogistic
from shortlist.losses.printed import PrintedHinge
from shortlist.losses.truncated import TruncatedEntropy
from shortlist.projections.entropic import kind_of


def hinge(given: Parameters) -> Loss:
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
        with_smoothing=partial(_smoothed_hinge, given),
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
    return hinge(given._replace(smoothing=gamma))


def _hinge_with_margins(given: Parameters, margins: ArrayLike) -> Loss:
    return hinge(given._replace(margins=check_margins(margins)))


def plain_hinge(given: Parameters) -> Loss:
    return _smoothed_hinge(given, 0.0)


def entropy(given: Parameters) -> Loss:
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
        log_lipschitz=k == 1 and not given.multilabel,
        logits=_same if k == 1 else None,
    )


def truncated_entropy(given: Parameters) -> Loss:
    softmax = given._replace(k=1, multilabel=False)
    if given.k == 1:
        return replace(entropy(softmax), name="truncated_entropy", variant=None)
    return Loss(
        "truncated_entropy",
        given.k,
        None,
        0.0,
        TruncatedEntropy(given.k),
        convex=False,
        smooth=False,
        start_from=partial(entropy, softmax),
    )


def ova_hinge(given: Parameters) -> Loss:
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
        with_smoothing=partial(_smoothed_ova_hinge, given),
    )


def _smoothed_ova_hinge(given: Parameters, gamma: float) -> Loss:
    return ova_hinge(given._replace(smoothing=gamma))


def plain_ova_hinge(given: Parameters) -> Loss:
    return _smoothed_ova_hinge(given, 0.0)


def ova_logistic(given: Parameters) -> Loss:
    return Loss(
        "ova_logistic",
        1,
        None,
        0.0,
        OVALogistic(),
        convex=True,
        smooth=True,
        log_lipschitz=True,
        separable=True,
        logits=log_expit,
    )


def _same(scores: NDArray) -> NDArray:
    return scores
