"""The parameters of a classifier, checked in the user's terms, and the loss they make."""

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from shortlist import losses
from shortlist._parameters import is_integer, is_real
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.limited import check_memory_limit
from shortlist.estimators.normalization import check_normalize
from shortlist.losses.registry import entry_of, taking

# The constant feature of an intercept that is not regularised. The certificate depends on the slope
# along the intercept to first order, on all other slopes to second order. A large value makes
# descents reduce that slope first. On digits, values from 4 to 16 take half the evaluations that 1
# takes; on Letter and on embeddings about as many as 1.
FREE_CONSTANT = 8.0


def check_parameters(estimator: Any, multilabel: bool = False) -> losses.Loss:
    """The loss; raises ValueError or TypeError that names the parameter and what it may be."""
    positive = {"C": estimator.C, "tol": estimator.tol}
    if isinstance(estimator.fit_intercept, str) and estimator.fit_intercept != "free":
        problem = f"must be True, False or 'free'; got {estimator.fit_intercept!r}"
        raise ParameterError("fit_intercept", problem)
    if estimator.fit_intercept:
        positive["intercept_scaling"] = estimator.intercept_scaling
    for name, value in positive.items():
        if not is_real(value) or not 0 < float(value) < math.inf:
            raise ParameterError(name, f"must be a positive finite number; got {value!r}")
    scaling = estimator.intercept_scaling
    if estimator.fit_intercept and math.isinf(float(scaling) * float(scaling)):
        raise ParameterError("intercept_scaling", f"is too large to be squared; got {scaling!r}")
    epochs = estimator.max_epochs
    if not is_integer(epochs) or epochs < 1:
        raise ParameterError("max_epochs", f"must be an integer, 1 or larger; got {epochs!r}")
    seconds = estimator.checkpoint_every
    if not is_real(seconds) or not 0 <= float(seconds) < math.inf:
        raise ParameterError("checkpoint_every", f"must be seconds, 0 or more; got {seconds!r}")
    if not isinstance(estimator.checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be a path or None; got {estimator.checkpoint!r}")
    check_normalize(estimator.normalize)
    check_memory_limit(estimator.memory_limit)
    # Names and ranges of the rest are checked where the loss is made.
    return loss_of(estimator, multilabel)


def constant_feature(estimator: Any) -> float:
    """The value of the constant feature whose weights are the intercept; 0: there is none."""
    if estimator.fit_intercept == "free":
        return FREE_CONSTANT
    return float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0


def check_free_intercept(
    loss: losses.Loss, classes: NDArray, codes: NDArray, weights: NDArray
) -> None:
    """Raise ValueError if an intercept that is not regularised has no optimum or certificate."""
    free = Setting("fit_intercept", "free")
    if loss.convex and not loss.smooth:
        kinks = f" takes a smooth loss; {loss.name} has kinks. Use its smoothed version, with a "
        raise WordedError(free + kinks + "small " + Setting("smoothing"))
    if loss.convex and not loss.has_dual_step:
        raise WordedError(free + f" takes a loss with a conjugate; {loss.name} has none")
    if loss.multilabel:
        several = " takes one right label per example; y is an indicator of several"
        raise WordedError(free + several)
    empty = np.bincount(codes, weights, len(classes)) == 0
    if empty.any():
        raise WordedError(
            free
            + " needs examples of positive weight in every class; class "
            + f"{classes[empty].tolist()[0]!r} has none, and its best intercept is minus infinity"
        )


def loss_of(estimator: Any, multilabel: bool = False) -> losses.Loss:
    """The loss as the parameters have it; :func:`with_counted_margins` adds what data tells."""
    counted = isinstance(estimator.margins, str)
    loss = losses.get(
        estimator.loss,
        k=estimator.k,
        variant=estimator.variant,
        smoothing=estimator.smoothing,
        multilabel=multilabel,
        margins=None if counted else estimator.margins,
        rank_weights=estimator.rank_weights,
    )
    if counted and estimator.margins != "ldam":
        problem = f"must be 'ldam', numbers or None; got {estimator.margins!r}"
        raise ParameterError("margins", problem)
    if counted and loss.with_margins is None:
        able = " and ".join(taking("margins"))
        able += " with one right label per example; got "
        given = Setting("loss", estimator.loss)
        raise WordedError(Setting("margins", "ldam") + f" is for {able}" + given)
    return loss


def with_counted_margins(
    estimator: Any, loss: losses.Loss, codes: NDArray, n_classes: int, sample_weight: Any
) -> losses.Loss:
    """The loss with the margins that depend on the numbers of examples, if such were asked for."""
    if not isinstance(estimator.margins, str) or loss.with_margins is None:
        return loss
    weights = _check_sample_weight(sample_weight, codes, dtype=np.float64)
    totals = np.bincount(codes, weights, minlength=n_classes)
    return loss.with_margins(losses.ldam_margins(totals))


def takes_several_labels(estimator: Any) -> bool:
    """Whether the loss, as the parameters stand, takes examples with several right labels."""
    if estimator.loss not in losses.names():
        return False
    given = (estimator.k, estimator.variant, estimator.margins, estimator.rank_weights)
    return entry_of(estimator.loss).takes_several(*given)


def seed_of(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
