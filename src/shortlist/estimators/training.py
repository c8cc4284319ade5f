"""From a user's X, y and weights to the solver's problem: checks in the user's terms."""

import math
import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from shortlist import losses
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.inputs import as_matrix
from shortlist.estimators.limited import check_memory_limit
from shortlist.estimators.multilabel import encode_indicator
from shortlist.estimators.normalization import check_normalize
from shortlist.losses.registry import entry_of, taking
from shortlist.metrics._inputs import is_missing
from shortlist.solvers.storage import Costs, Storage

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
        real = isinstance(value, Real) and not isinstance(value, bool)
        if not real or not 0 < float(value) < math.inf:
            raise ParameterError(name, f"must be a positive finite number; got {value!r}")
    scaling = estimator.intercept_scaling
    if estimator.fit_intercept and math.isinf(float(scaling) * float(scaling)):
        raise ParameterError("intercept_scaling", f"is too large to be squared; got {scaling!r}")
    epochs = estimator.max_epochs
    if not isinstance(epochs, Integral) or isinstance(epochs, bool) or epochs < 1:
        raise ParameterError("max_epochs", f"must be an integer, 1 or larger; got {epochs!r}")
    seconds = estimator.checkpoint_every
    real = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not real or not 0 <= float(seconds) < math.inf:
        raise ParameterError("checkpoint_every", f"must be seconds, 0 or more; got {seconds!r}")
    if not isinstance(estimator.checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be a path or None; got {estimator.checkpoint!r}")
    check_normalize(getattr(estimator, "normalize", None))  # kernels have no such parameter
    check_memory_limit(getattr(estimator, "memory_limit", None))
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


def check_input(
    estimator: Any, X: Any, *, accept_sparse: str | bool = "csr", **options: Any
) -> Any:
    """scikit-learn's ``validate_data``, for floats of single or double precision.

    X may also be a tensor, in half precision, or a list of shards.
    """
    try:
        return validate_data(
            estimator,
            as_matrix(X),
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32],
            **options,
        )
    except TypeError:
        # scikit-learn compares labels with themselves. The NA of pandas does not allow that.
        y = np.asarray(options.get("y"))
        if y.dtype == object and y.ndim and any(map(is_missing, y.flat)):
            raise ValueError("Input y contains missing values.") from None
        raise


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


def encode_labels(y: NDArray) -> tuple[NDArray, NDArray]:
    """Classes, sorted, and each label's place among them."""
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) == 1:  # bytes: scikit-learn says what to do
            raise
        raise TypeError(f"labels must all be of one type; y holds {', '.join(kinds)}") from error
    if len(classes) < 2:
        only = classes[0].item() if isinstance(classes[0], np.generic) else classes[0]
        raise ValueError(f"training needs at least 2 classes; y holds only one class, {only!r}")
    return classes, codes.astype(np.int64).ravel()


def encode_targets(
    X: Any, y: Any, loss: losses.Loss, sample_weight: ArrayLike | None, class_weight: Any
) -> tuple[NDArray, NDArray, NDArray]:
    """Classes, labels as the loss takes them, and the weight of each example."""
    if not loss.multilabel:
        classes, codes = encode_labels(y)
        loss.check_classes(len(classes))
        return classes, codes, example_weights(X, codes, classes, sample_weight, class_weight)
    if class_weight is not None:
        several = "is for one label per example; with several, weight the examples by "
        raise ParameterError("class_weight", several + Setting("sample_weight"))
    classes = np.arange(y.shape[1])
    loss.check_classes(len(classes))
    rows, asks = encode_indicator(y, loss.k)
    weights = example_weights(X, rows, classes, sample_weight, None) * asks
    if not (weights > 0).any():
        nothing = "there is nothing to learn from: no example of positive weight has a right label "
        raise WordedError(nothing + "and at least " + Setting("k", loss.k) + " wrong ones")
    return classes, rows, weights


def example_weights(
    X: Any, codes: NDArray, classes: NDArray, sample_weight: ArrayLike | None, class_weight: Any
) -> NDArray:
    """Sample weight times class weight, one per example, in double."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        factors = class_factors(classes[codes], classes, weights, class_weight)
        weights = np.multiply(weights, factors[codes], where=weights > 0, out=np.zeros(len(codes)))
    if not (weights > 0).any():
        raise ValueError("all sample weights are zero: there is nothing to learn from")
    return weights


def class_factors(
    labels: NDArray, classes: NDArray, weights: NDArray, class_weight: Any
) -> NDArray:
    """The weight of each class; a class of no sample weight cannot be balanced and gets inf."""
    if isinstance(class_weight, Mapping):
        _check_class_weights(class_weight, classes)
    counted = {"sample_weight": weights} if _class_weights_take_sample_weights() else {}
    with np.errstate(divide="ignore"):
        factors: NDArray = compute_class_weight(class_weight, classes=classes, y=labels, **counted)
    return factors


def _check_class_weights(class_weight: Mapping[Any, Any], classes: NDArray) -> None:
    known = set(classes.tolist())
    all_named = known <= set(class_weight)  # then further names may belong to absent classes
    for name, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
            problem = f" must be finite numbers, zero or larger; got {weight!r} for {name!r}"
            raise WordedError("weights in " + Setting("class_weight") + problem)
        if name not in known and not all_named:
            problem = f"names {name!r}, which is not among the labels"
            raise ParameterError("class_weight", problem)


def _class_weights_take_sample_weights() -> bool:
    from inspect import signature

    return "sample_weight" in signature(compute_class_weight).parameters


def make_costs(codes: NDArray, weights: NDArray, C: float) -> Costs:
    with np.errstate(over="ignore"):
        cost = C * weights
    if not np.isfinite(cost).all():
        raise ParameterError("C", "times the sample weights overflows; use smaller ones")
    return Costs(codes, cost)


def check_scale(storage: Storage, costs: Costs) -> None:
    """Raise ValueError if a step of training would overflow the precision of the data."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(float(storage.kappa.max()), float((costs.cost * storage.kappa).max()))
    if not largest < float(np.finfo(storage.dtype).max):
        large = f" times it, is {largest:.1e}, which {storage.dtype} cannot hold; "
        lower = "scale the features, lower " + Setting("C") + " or use float64"
        times = "the squared norm of an example, or " + Setting("C")
        raise WordedError(times + large + lower)


def seed_of(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
