"""From a user's labels and weights to classes and costs, checked in the user's terms."""

import math
from collections.abc import Mapping
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from shortlist import losses
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.multilabel import encode_indicator
from shortlist.solvers.storage import Costs, Storage


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
    # Older versions of scikit-learn count examples, not their weights.
    takes_weights = "sample_weight" in signature(compute_class_weight).parameters
    counted = {"sample_weight": weights} if takes_weights else {}
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


def make_costs(codes: NDArray, weights: NDArray, C: float) -> Costs:
    """Labels, and C times the weight of each example; an error where that overflows."""
    with np.errstate(over="ignore"):
        cost = C * weights
    if not np.isfinite(cost).all():
        raise ParameterError("C", "times the sample weights overflows; use smaller ones")
    return Costs(codes, cost)


def check_overflow(storage: Storage, costs: Costs) -> None:
    """Raise ValueError if a step of training would overflow the precision of the data."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(float(storage.kappa.max()), float((costs.cost * storage.kappa).max()))
    if not largest < float(np.finfo(storage.dtype).max):
        large = f" times it, is {largest:.1e}, which {storage.dtype} cannot hold; "
        lower = "scale the features, lower " + Setting("C") + " or use float64"
        times = "the squared norm of an example, or " + Setting("C")
        raise WordedError(times + large + lower)
