"""What a model file may hold: a model that ``fit`` could have made, and nothing else.

A checksum tells damage, not malice: whoever edits a file can recompute it. So before an estimator
is made of a file's arrays and metadata, everything in them is checked here: parameters by the
estimator's own rules, classes, shapes, types and finite values of arrays, and the record of
training. ValueError or TypeError says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from .datasets.reading import Reading

Arrays = Mapping[str, Any]
Meta = Mapping[str, Any]

# What ``Result.status`` may say.
_STATUSES = frozenset(["converged", "max_epochs", "interrupted", "stopped", "stalled"])
# By rounding, a dual value may exceed the primal one by this share, and an accuracy 1 by as much.
_ROUNDING = 1e-4
_LARGEST_SEED = 2**32 - 1


def check_state(estimator: str, arrays: Arrays, meta: Meta) -> None:
    """Raise unless the state of an estimator, known by its name, is one that ``fit`` leaves."""
    if estimator in _CHECKS:
        _CHECKS[estimator](arrays, meta)


def check_data(model: Any, data: Meta) -> None:
    """Raise unless what a file says of the training data can be true of the model's.

    ``data`` may hold anything; only its "reading" is known here.
    """
    if "reading" not in data:
        return
    _require(isinstance(data["reading"], dict), "the data's reading is not a mapping")
    reading = Reading.from_dict(data["reading"])
    n_features = getattr(model, "n_features_in_", None)
    _require(n_features in (None, reading.n_features), "the data had another number of features")
    labels = [label for label, _ in reading.class_names or ()]
    _require(len(set(labels)) == len(labels), "a class has two names")
    if reading.classes is not None and hasattr(model, "classes_"):
        same_number = len(set(reading.classes)) == len(reading.classes) == len(model.classes_)
        _require(same_number, "the data had another number of labels")


# --- what all estimators share -------------------------------------------------------------------


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_common_parameters(params: Any) -> None:
    """Check the parameters that the estimators' own checks leave to their use in ``fit``."""
    _require(isinstance(params, dict), "the parameters are not a dictionary")
    for name in ("fit_intercept", "warm_start"):
        value = params.get(name, False)
        _require(isinstance(value, int) and value in (0, 1), f"{name} is neither True nor False")
    verbose = params.get("verbose", 0)
    _require(isinstance(verbose, int) and verbose >= 0, f"verbose is {verbose!r}")
    seed = params.get("random_state")
    seeded = _is_integer(seed) and 0 <= seed <= _LARGEST_SEED
    _require(seed is None or seeded, f"random_state is {seed!r}")
    _check_class_weight(params.get("class_weight"))


def _check_class_weight(class_weight: Any) -> None:
    if class_weight is None or class_weight == "balanced":
        return
    _require(isinstance(class_weight, dict), f"class_weight is {class_weight!r}")
    for weight in class_weight.values():
        finite = _is_real(weight) and 0 <= float(weight) < math.inf
        _require(finite, f"a weight in class_weight is {weight!r}")


def _check_classes(classes: Any, multilabel: Any) -> np.ndarray:
    """Return the classes, checked to be those of labels that can be trained on."""
    _require(isinstance(multilabel, bool), "multilabel is neither True nor False")
    _require(isinstance(classes, np.ndarray), "the classes are not an array")
    _require(classes.ndim == 1 and len(classes) >= 2, f"the classes have shape {classes.shape}")
    if multilabel:
        whole = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
        _require(whole, "the classes of several labels are not 0, 1, 2, ...")
        return classes
    kind = classes.dtype.kind
    _require(kind in "biufUO", f"the classes are of type {classes.dtype}")
    if kind == "f":
        whole = np.isfinite(classes) & (classes == np.floor(classes))
        _require(whole.all(), "a class is a number that is not whole")
    if kind in "UO":
        labels = classes.tolist()
        _require(all(isinstance(label, str) for label in labels), "a class is not text")
        for label in labels:
            label.encode()  # an error for half a character
    ordered = bool((classes[1:] > classes[:-1]).all())
    _require(ordered, "the classes are not sorted, or one is there twice")
    return classes


def _check_features(meta: Meta) -> int:
    """Return the number of features, checked, with their names if they have any."""
    n_features = meta["n_features_in"]
    _require(_is_integer(n_features) and n_features >= 1, f"n_features_in is {n_features!r}")
    names = meta.get("feature_names_in")
    if names is not None:
        listed = np.asarray(names, dtype=object)
        _require(listed.shape == (n_features,), "there is not one name for each feature")
        _require(all(isinstance(name, str) for name in listed), "a feature's name is not text")
    return int(n_features)


def _check_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any = None) -> np.ndarray:
    """Return an array of finite floats, checked to have this shape and precision."""
    _require(isinstance(array, np.ndarray), f"{name} is not an array")
    _require(array.dtype in (np.float32, np.float64), f"{name} is of type {array.dtype}")
    _require(dtype is None or array.dtype == dtype, f"{name} is of type {array.dtype}")
    _require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    _require(np.isfinite(array).all(), f"{name} holds a value that is not finite")
    return array


def _check_intercept(model: Any, intercept: Any, shape: tuple[int, ...], dtype: Any) -> None:
    values = _check_array("intercept", intercept, shape, dtype)
    _require(model.fit_intercept or not values.any(), "there is an intercept, but none was fitted")


def _check_loss(model: Any, multilabel: bool, n_classes: int) -> Any:
    """Return the loss that the parameters name, checked to take so many classes."""
    from shortlist.estimators.training import check_parameters, loss_of

    check_parameters(model)
    loss = loss_of(model, multilabel)
    loss.check_classes(n_classes)
    return loss


def _check_result(result: Any, convex: bool) -> None:
    """Check the record of training: numbers that a solver could have reported."""
    from shortlist.solvers import Result

    _require(isinstance(result, dict), "the training's record is not a dictionary")
    record = Result.from_dict(result)
    if record.status == "imported":  # made from a torch layer: nothing is known of its training
        _require(math.isnan(record.primal) and math.isnan(record.dual), "it was never trained")
        _require(not record.history and record.epochs == 0, "it was never trained")
        return
    _require(record.status in _STATUSES, f"the training's status is {record.status!r}")
    _require(isinstance(record.solver, str), "the solver's name is not text")
    moments: list[Any] = [record, *record.history]
    for moment in moments:
        _check_number("primal", moment.primal)
        _check_number("seconds", moment.seconds)
        if convex:
            _require(_is_real(moment.dual) and math.isfinite(moment.dual), "dual is not finite")
            slack = _ROUNDING * max(1.0, abs(moment.primal))
            _require(moment.dual <= moment.primal + slack, "dual is larger than primal")
        else:
            _require(isinstance(moment.dual, float), "dual is not a number")
    _check_number("epochs", record.epochs)
    for moment in record.history:
        _check_number("epoch", moment.epoch)
        accuracy = moment.accuracy
        valid = accuracy is None or (_is_real(accuracy) and 0 <= accuracy <= 1 + _ROUNDING)
        _require(valid, f"an accuracy in the training's record is {accuracy!r}")
    for name in ("gap", "relative_gap", "gain_gap"):
        if name in result:
            stated, computed = result[name], getattr(record, name)
            same = stated == computed or (stated != stated and computed != computed)
            _require(same, f"{name} is not what primal and dual say")


def _check_number(name: str, value: Any) -> None:
    valid = _is_real(value) and 0 <= float(value) < math.inf
    _require(valid, f"{name} in the training's record is {value!r}")


def _check_fitted(meta: Meta, model: Any) -> tuple[int, int]:
    """Check what the linear and the kernel classifier share; returns classes and features."""
    multilabel = meta.get("multilabel", False)
    classes = _check_classes(meta["classes"], multilabel)
    loss = _check_loss(model, multilabel, len(classes))
    _check_result(meta["result"], loss.convex)
    least = 0 if meta["result"]["status"] == "imported" else 1
    _require(
        _is_integer(meta["n_iter"]) and meta["n_iter"] >= least, "n_iter is not a number of epochs"
    )
    _require(not multilabel or model.class_weight is None, "class_weight is for one label each")
    return len(classes), _check_features(meta)


# --- the estimators ------------------------------------------------------------------------------


def _check_linear(arrays: Arrays, meta: Meta) -> None:
    from shortlist.estimators import TopKClassifier

    _check_common_parameters(meta["params"])
    model = TopKClassifier(**meta["params"])
    n_classes, n_features = _check_fitted(meta, model)
    coef = _check_array("coef", arrays["coef"], (n_classes, n_features))
    _check_intercept(model, arrays["intercept"], (n_classes,), coef.dtype)


def _check_kernel(arrays: Arrays, meta: Meta) -> None:
    from shortlist.estimators import KernelTopKClassifier
    from shortlist.estimators.kernel_matrix import KERNELS

    _check_common_parameters(meta["params"])
    model = KernelTopKClassifier(**meta["params"])
    _require(model.kernel in KERNELS, f"kernel is {model.kernel!r}")
    _check_kernel_numbers(model, meta["gamma"])
    n_classes, n_features = _check_fitted(meta, model)
    support = arrays["support"]
    _require(isinstance(support, np.ndarray) and support.ndim == 1, "support is not a list")
    _require(support.dtype.kind in "iu", f"support is of type {support.dtype}")
    ascending = (support[1:] > support[:-1]).all() and (support >= 0).all()
    _require(ascending, "support does not hold numbers of examples in their order")
    dual_coef = _check_array("dual_coef", arrays["dual_coef"], (len(support), n_classes))
    _require(dual_coef.any(axis=1).all(), "a support vector has no coefficient")
    _check_intercept(model, arrays["intercept"], (n_classes,), dual_coef.dtype)
    if model.kernel == "precomputed":
        _require((support < n_features).all(), "support holds the number of no training example")
        _check_vectors(meta["support_vectors"], (0, n_features))
    else:
        _check_vectors(meta["support_vectors"], (len(support), n_features))


def _check_kernel_numbers(model: Any, gamma: Any) -> None:
    _require(_is_real(gamma) and 0 < float(gamma) < math.inf, f"gamma is {gamma!r}")
    given = model.gamma
    if isinstance(given, str):
        _require(given in ("scale", "auto"), f"the parameter gamma is {given!r}")
    else:
        _require(_is_real(given) and float(given) == float(gamma), "gamma is not the parameter")
    used = ("degree", "coef0", "cache_size") if model.kernel == "poly" else ("cache_size",)
    for name in used:
        value = getattr(model, name)
        _require(_is_real(value) and 0 <= float(value) < math.inf, f"{name} is {value!r}")


def _check_vectors(vectors: Any, shape: tuple[int, int]) -> None:
    if sparse.issparse(vectors):
        _require(vectors.shape == shape, f"the support vectors have shape {vectors.shape}")
        _check_array("the support vectors", vectors.data, (vectors.nnz,))
    else:
        _check_array("the support vectors", vectors, shape)


def _check_search(arrays: Arrays, meta: Meta) -> None:
    """Check a search. Its models have been checked one by one when they were made."""
    from shortlist.estimators import TopKClassifier, TopKClassifierCV

    _check_common_parameters(meta["params"])
    search = TopKClassifierCV(**meta["params"])
    _check_search_parameters(search)
    classes = _check_classes(meta["classes"], False)
    n_features = _check_features(meta)
    models = meta["models"]
    _require(isinstance(models, list) and models, "there are no models")
    for model in models:
        _require(type(model) is TopKClassifier, "a model is of another class")
        _require(np.array_equal(model.classes_, classes), "two models have other classes")
        _require(model.n_features_in_ == n_features, "two models have other features")
    ks = meta["ks"]
    _require(isinstance(ks, list | tuple) and len(ks) > 0, "there are no ks")
    for k in ks:
        _require(_is_integer(k) and 1 <= k < len(classes), f"{k!r} is among the ks")
    _require(list(ks) == sorted(set(ks)), "the ks are not sorted, or one is there twice")
    chosen = meta["chosen"]
    _require(
        isinstance(chosen, list) and len(chosen) == len(ks), "there is not one choice for each k"
    )
    _require(all(map(_is_integer, chosen)), "a choice is not the number of a model")
    _require(set(chosen) == set(range(len(models))), "the choices are not those of the models")
    decided = meta["decided"]
    _require(
        isinstance(decided, list) and [type(d) for d in decided] == [bool] * len(ks),
        "decided is not True or False for each k",
    )
    _check_table(arrays, meta["table"], [int(k) for k in ks])


def _check_search_parameters(search: Any) -> None:
    from shortlist.estimators.cv_grid import grid_of
    from shortlist.estimators.cv_options import check_counts, check_refit, families_of

    grid_of(search.Cs)
    check_counts(search)
    check_refit(search.refit)
    _require(search.scoring is None or isinstance(search.scoring, str), "scoring is not a name")
    families_of(search)
    ks = [search.ks] if _is_integer(search.ks) else search.ks
    _require(isinstance(ks, list | tuple | np.ndarray) and len(ks) > 0, f"ks is {search.ks!r}")
    _require(all(_is_integer(k) and k >= 1 for k in ks), f"ks is {search.ks!r}")
    folds, jobs = search.cv, search.n_jobs
    _require(folds is None or (_is_integer(folds) and folds >= 2), f"cv is {folds!r}")
    _require(jobs is None or (_is_integer(jobs) and jobs != 0), f"n_jobs is {jobs!r}")


def _check_table(arrays: Arrays, table: Any, ks: list[int]) -> None:
    """Check the search's accuracies, as matrices and as columns of its table."""
    _require(isinstance(table, dict) and len(table) > 0, "the table of the search is not a table")
    columns = list(table.values())
    _require(all(isinstance(column, np.ndarray) for column in columns), "the table has no columns")
    n_rows = len(columns[0]) if columns[0].ndim else 0
    for name, column in table.items():
        _require(isinstance(name, str), "a column of the table has no name")
        _require(column.shape == (n_rows,) and n_rows > 0, f"column {name} has another length")
    numbers = ["C", "mean_seconds", "relative_gap", *(f"certified_top{k}" for k in ks)]
    for name in ("loss", "k", "variant", "smoothing", *numbers):
        _require(name in table, f"the table has no column {name}")
        kinds = "iuf" if name in numbers else "iufU"
        _require(table[name].dtype.kind in kinds, f"column {name} is of type {table[name].dtype}")
    for word in ("mean", "std"):
        name = f"{word}_scores"
        scores = _check_array(name, arrays[name], (n_rows, len(ks)))
        possible = (scores >= 0) & (scores <= 1 + _ROUNDING)
        _require(possible.all(), f"{name} holds what is no accuracy")
        for column, k in enumerate(ks):
            stated = table.get(f"{word}_top{k}")
            _require(stated is not None, f"the table has no column {word}_top{k}")
            same = np.array_equal(stated, scores[:, column])
            _require(same, f"column {word}_top{k} differs from {name}")


_CHECKS: dict[str, Callable[[Arrays, Meta], None]] = {
    "TopKClassifier": _check_linear,
    "KernelTopKClassifier": _check_kernel,
    "TopKClassifierCV": _check_search,
}
