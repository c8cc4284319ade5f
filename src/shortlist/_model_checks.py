"""What a model file may hold: a model that ``fit`` could have made, and nothing else.

A checksum tells damage, not malice: whoever edits a file can recompute it. So before an estimator
is made of a file's arrays and metadata, everything in them is checked here: parameters by the
estimator's own rules, classes, shapes, types and finite values of arrays, and the record of
training. ValueError or TypeError says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ._parameters import KERNELS, PLAIN_LOSS_PARAMETERS, is_integer, is_real
from ._record_checks import ROUNDING_SHARE, check_array, check_result, require
from .datasets.how_read import Reading

Arrays = Mapping[str, Any]
Meta = Mapping[str, Any]

_MAX_SEED = 2**32 - 1


def check_state(estimator: str, arrays: Arrays, meta: Meta) -> None:
    """Raise unless the state of an estimator, known by its name, is one that ``fit`` leaves."""
    if estimator in _CHECKS:
        _CHECKS[estimator](arrays, meta)


def check_linear_scores(arrays: Arrays, meta: Meta) -> None:
    """Raise unless a linear model's state has all that its scores and shortlists need."""
    params = meta["params"]
    require(isinstance(params, dict), "the parameters are not a dictionary")
    classes = _check_classes(meta["classes"], meta.get("multilabel", False))
    k = params["k"]
    require(is_integer(k) and 1 <= k < len(classes), f"k is {k!r}")
    require(isinstance(params["loss"], str), f"loss is {params['loss']!r}")
    require(is_real(params["C"]) and 0 < params["C"] < math.inf, f"C is {params['C']!r}")
    coef = check_array("coef", arrays["coef"], (len(classes), _check_features(meta)))
    check_array("intercept", arrays["intercept"], (len(classes),), coef.dtype)


def check_data(model: Any, data: Meta) -> None:
    """Raise unless what a file says of the training data can be true of the model's.

    ``data`` may hold anything; only its "reading" is known here.
    """
    if "reading" not in data:
        return
    require(isinstance(data["reading"], dict), "the data's reading is not a mapping")
    reading = Reading.from_dict(data["reading"])
    n_features = getattr(model, "n_features_in_", None)
    require(n_features in (None, reading.n_features), "the data had another number of features")
    labels = [label for label, _ in reading.class_names or ()]
    require(len(set(labels)) == len(labels), "a class has two names")
    if reading.classes is not None and hasattr(model, "classes_"):
        same_number = len(set(reading.classes)) == len(reading.classes) == len(model.classes_)
        require(same_number, "the data had another number of labels")


# --- what all estimators share -------------------------------------------------------------------


def _check_common_parameters(params: Any) -> None:
    """Check the parameters that the estimators' own checks leave to their use in ``fit``."""
    require(isinstance(params, dict), "the parameters are not a dictionary")
    for name in ("fit_intercept", "warm_start"):
        value = params.get(name, False)
        if name == "fit_intercept" and value == "free":
            continue
        require(isinstance(value, int) and value in (0, 1), f"{name} is neither True nor False")
    verbose = params.get("verbose", 0)
    require(isinstance(verbose, int) and verbose >= 0, f"verbose is {verbose!r}")
    seed = params.get("random_state")
    seeded = is_integer(seed) and 0 <= seed <= _MAX_SEED
    require(seed is None or seeded, f"random_state is {seed!r}")
    # A model file may come from anyone: ``fit`` must not write to a path named in it.
    require(params.get("checkpoint") is None, "it names a checkpoint")
    seconds = params.get("checkpoint_every", 0)
    valid = is_real(seconds) and 0 <= float(seconds) < math.inf
    require(valid, f"checkpoint_every is {seconds!r}")
    _check_class_weight(params.get("class_weight"))


def _check_class_weight(class_weight: Any) -> None:
    if class_weight is None or class_weight == "balanced":
        return
    require(isinstance(class_weight, dict), f"class_weight is {class_weight!r}")
    for weight in class_weight.values():
        finite = is_real(weight) and 0 <= float(weight) < math.inf
        require(finite, f"a weight in class_weight is {weight!r}")


def _check_classes(classes: Any, multilabel: Any) -> np.ndarray:
    """Return the classes, checked to be those of labels that can be trained on."""
    require(isinstance(multilabel, bool), "multilabel is neither True nor False")
    require(isinstance(classes, np.ndarray), "the classes are not an array")
    require(classes.ndim == 1 and len(classes) >= 2, f"the classes have shape {classes.shape}")
    if multilabel:
        whole = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
        require(whole, "the classes of several labels are not 0, 1, 2, ...")
        return classes
    kind = classes.dtype.kind
    require(kind in "biufUO", f"the classes are of type {classes.dtype}")
    if kind == "f":
        whole = np.isfinite(classes) & (classes == np.floor(classes))
        require(whole.all(), "a class is a number that is not whole")
    if kind in "UO":
        labels = classes.tolist()
        require(all(isinstance(label, str) for label in labels), "a class is not text")
        for label in labels:
            label.encode()  # raises an error for a lone surrogate
    ordered = bool((classes[1:] > classes[:-1]).all())
    require(ordered, "the classes are not sorted, or one is there twice")
    return classes


def _check_features(meta: Meta) -> int:
    """Return the number of features, checked, with their names if they have any."""
    n_features = meta["n_features_in"]
    require(is_integer(n_features) and n_features >= 1, f"n_features_in is {n_features!r}")
    names = meta.get("feature_names_in")
    if names is not None:
        listed = np.asarray(names, dtype=object)
        require(listed.shape == (n_features,), "there is not one name for each feature")
        require(all(isinstance(name, str) for name in listed), "a feature's name is not text")
    return int(n_features)


def _check_intercept(model: Any, intercept: Any, shape: tuple[int, ...], dtype: Any) -> None:
    values = check_array("intercept", intercept, shape, dtype)
    require(model.fit_intercept or not values.any(), "there is an intercept, but none was fitted")


def _check_loss(model: Any, multilabel: bool, n_classes: int) -> Any:
    """Return the loss that the parameters name, checked to take so many classes."""
    from shortlist.estimators.parameters import check_parameters, loss_of

    check_parameters(model)
    loss = loss_of(model, multilabel)
    loss.check_classes(n_classes)
    return loss


def _check_fitted(meta: Meta, model: Any) -> tuple[int, int]:
    """Check what the linear and the kernel classifier share; returns classes and features."""
    multilabel = meta.get("multilabel", False)
    classes = _check_classes(meta["classes"], multilabel)
    loss = _check_loss(model, multilabel, len(classes))
    check_result(meta["result"], loss.convex)
    least = 0 if meta["result"]["status"] == "imported" else 1
    require(
        is_integer(meta["n_iter"]) and meta["n_iter"] >= least, "n_iter is not a number of epochs"
    )
    require(not multilabel or model.class_weight is None, "class_weight is for one label each")
    return len(classes), _check_features(meta)


# --- the estimators ------------------------------------------------------------------------------


def _check_linear(arrays: Arrays, meta: Meta) -> None:
    from shortlist.estimators import TopKClassifier

    _check_common_parameters(meta["params"])
    model = TopKClassifier(**meta["params"])
    n_classes, n_features = _check_fitted(meta, model)
    coef = check_array("coef", arrays["coef"], (n_classes, n_features))
    _check_intercept(model, arrays["intercept"], (n_classes,), coef.dtype)
    if "class_distances" in arrays:
        distances = check_array("class_distances", arrays["class_distances"], (n_classes,))
        require(distances.min() >= 0, "a distance to the optimum is negative")


def _check_kernel(arrays: Arrays, meta: Meta) -> None:
    from shortlist.estimators import KernelTopKClassifier

    _check_common_parameters(meta["params"])
    model = KernelTopKClassifier(**meta["params"])
    require(model.kernel in KERNELS, f"kernel is {model.kernel!r}")
    _check_kernel_numbers(model, meta["gamma"])
    n_classes, n_features = _check_fitted(meta, model)
    support = arrays["support"]
    require(isinstance(support, np.ndarray) and support.ndim == 1, "support is not a list")
    require(support.dtype.kind in "iu", f"support is of type {support.dtype}")
    ascending = (support[1:] > support[:-1]).all() and (support >= 0).all()
    require(ascending, "support does not hold numbers of examples in their order")
    dual_coef = check_array("dual_coef", arrays["dual_coef"], (len(support), n_classes))
    require(dual_coef.any(axis=1).all(), "a support vector has no coefficient")
    _check_intercept(model, arrays["intercept"], (n_classes,), dual_coef.dtype)
    if model.kernel == "precomputed":
        require((support < n_features).all(), "support names an example outside the training data")
        _check_vectors(meta["support_vectors"], (0, n_features))
    else:
        _check_vectors(meta["support_vectors"], (len(support), n_features))


def _check_kernel_numbers(model: Any, gamma: Any) -> None:
    require(is_real(gamma) and 0 < float(gamma) < math.inf, f"gamma is {gamma!r}")
    given = model.gamma
    if isinstance(given, str):
        require(given in ("scale", "auto"), f"the parameter gamma is {given!r}")
    else:
        require(is_real(given) and float(given) == float(gamma), "gamma is not the parameter")
    used = ("degree", "coef0", "cache_size") if model.kernel == "poly" else ("cache_size",)
    for name in used:
        value = getattr(model, name)
        require(is_real(value) and 0 <= float(value) < math.inf, f"{name} is {value!r}")


def _check_vectors(vectors: Any, shape: tuple[int, int]) -> None:
    if sparse.issparse(vectors):
        require(vectors.shape == shape, f"the support vectors have shape {vectors.shape}")
        check_array("the support vectors", vectors.data, (vectors.nnz,))
    else:
        check_array("the support vectors", vectors, shape)


def _check_search(arrays: Arrays, meta: Meta) -> None:
    """Check a search. Its models have been checked one by one when they were made."""
    from shortlist.estimators import TopKClassifier, TopKClassifierCV

    _check_common_parameters(meta["params"])
    search = TopKClassifierCV(**meta["params"])
    multilabel = meta.get("multilabel", False)
    classes = _check_classes(meta["classes"], multilabel)
    _check_search_parameters(search, multilabel, len(classes))
    n_features = _check_features(meta)
    models = meta["models"]
    require(isinstance(models, list) and models, "there are no models")
    for model in models:
        require(type(model) is TopKClassifier, "a model is of another class")
        require(np.array_equal(model.classes_, classes), "two models have other classes")
        require(model.multilabel_ is multilabel, "two models have other numbers of labels")
        require(model.n_features_in_ == n_features, "two models have other features")
    ks = meta["ks"]
    require(isinstance(ks, list | tuple) and len(ks) > 0, "there are no ks")
    for k in ks:
        require(is_integer(k) and 1 <= k < len(classes), f"{k!r} is among the ks")
    require(list(ks) == sorted(set(ks)), "the ks are not sorted, or one is there twice")
    chosen = meta["chosen"]
    require(
        isinstance(chosen, list) and len(chosen) == len(ks), "there is not one choice for each k"
    )
    require(all(map(is_integer, chosen)), "a choice is not the number of a model")
    require(set(chosen) == set(range(len(models))), "the choices are not those of the models")
    decided = meta["decided"]
    require(
        isinstance(decided, list) and [type(d) for d in decided] == [bool] * len(ks),
        "decided is not True or False for each k",
    )
    _check_table(arrays, meta["table"], [int(k) for k in ks])
    chosen_models = [models[number] for number in chosen]
    _check_families(meta["families"], meta["table"], meta["rows"], chosen_models)


def _check_families(families: Any, table: Any, rows: Any, models: list[Any]) -> None:
    """Check what was searched, and that the chosen rows of the table are the models'."""
    require(isinstance(families, list), "the families are not a list")
    allowed = set(PLAIN_LOSS_PARAMETERS) | set(models[0].get_params())
    for family in families:
        named = isinstance(family, dict) and set(PLAIN_LOSS_PARAMETERS) <= set(family) <= allowed
        require(named, "a family is not named by its parameters")
    numbers = table["family"]
    known = (numbers >= 0) & (numbers < len(families))
    require(known.all(), "the table has a family that was not searched")
    whole = isinstance(rows, list) and all(map(is_integer, rows))
    require(whole and len(rows) == len(models), "there is not one chosen row for each k")
    for row, model in zip(rows, models, strict=True):
        require(0 <= row < len(numbers), "a chosen row is not of the table")
        require(table["C"][row] == model.C, "a chosen row has another C than its model")
        family = families[numbers[row]]
        same = all(family[name] == getattr(model, name) for name in PLAIN_LOSS_PARAMETERS)
        require(same, "a chosen row has another family than its model")


def _check_search_parameters(search: Any, multilabel: bool, n_classes: int) -> None:
    from shortlist.estimators.cv_checks import check_counts, check_own_k, check_refit, families_of
    from shortlist.estimators.cv_grid import grid_of

    grid_of(search.Cs)
    check_counts(search)
    check_refit(search.refit)
    require(search.scoring is None or isinstance(search.scoring, str), "scoring is not a name")
    for _, loss in families_of(search, multilabel):
        loss.check_classes(n_classes)
    check_own_k(search, n_classes)
    ks = [search.ks] if is_integer(search.ks) else search.ks
    require(isinstance(ks, list | tuple | np.ndarray) and len(ks) > 0, f"ks is {search.ks!r}")
    require(all(is_integer(k) and k >= 1 for k in ks), f"ks is {search.ks!r}")
    folds, jobs = search.cv, search.n_jobs
    require(folds is None or (is_integer(folds) and folds >= 2), f"cv is {folds!r}")
    require(jobs is None or (is_integer(jobs) and jobs != 0), f"n_jobs is {jobs!r}")


def _check_table(arrays: Arrays, table: Any, ks: list[int]) -> None:
    """Check the search's accuracies, as matrices and as columns of its table."""
    require(isinstance(table, dict) and len(table) > 0, "the table of the search is not a table")
    columns = list(table.values())
    require(all(isinstance(column, np.ndarray) for column in columns), "the table has no columns")
    n_rows = len(columns[0]) if columns[0].ndim else 0
    for name, column in table.items():
        require(isinstance(name, str), "a column of the table has no name")
        require(column.shape == (n_rows,) and n_rows > 0, f"column {name} has another length")
    whole = "family" in table and table["family"].dtype.kind in "iu"
    require(whole, "the table has no column of the families' numbers")
    numbers = ["C", "mean_seconds", "relative_gap", *(f"certified_top{k}" for k in ks)]
    for name in (*PLAIN_LOSS_PARAMETERS, *numbers):
        require(name in table, f"the table has no column {name}")
        kinds = "iuf" if name in numbers else "iufU"
        require(table[name].dtype.kind in kinds, f"column {name} is of type {table[name].dtype}")
    for word in ("mean", "std"):
        name = f"{word}_scores"
        scores = check_array(name, arrays[name], (n_rows, len(ks)))
        possible = (scores >= 0) & (scores <= 1 + ROUNDING_SHARE)
        require(possible.all(), f"{name} holds values outside 0 to 1")
        for column, k in enumerate(ks):
            stated = table.get(f"{word}_top{k}")
            require(stated is not None, f"the table has no column {word}_top{k}")
            same = np.array_equal(stated, scores[:, column])
            require(same, f"column {word}_top{k} differs from {name}")


_CHECKS: dict[str, Callable[[Arrays, Meta], None]] = {
    "TopKClassifier": _check_linear,
    "KernelTopKClassifier": _check_kernel,
    "TopKClassifierCV": _check_search,
}
