"""Pipelines of scikit-learn's scalers and a classifier of this package, as data for a model file.

Of a scaler the file holds its class by name, its parameters and what ``fit`` has set. Loading makes
a scaler of one of the classes below, checks that its numbers are such that ``fit`` could have left,
and scales a row with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ._parameters import is_integer
from ._record_checks import check_array, require

# What fit sets, one number for each feature; None where a parameter leaves it out.
_VECTORS = {
    "StandardScaler": ("mean_", "scale_", "var_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": ("scale_", "max_abs_"),
    "RobustScaler": ("center_", "scale_"),
    "Normalizer": (),
}
# How many examples were seen, all in all or of each feature.
_COUNT = "n_samples_seen_"
_SKIPPED = "passthrough"


def pipeline_state(pipeline: Any, models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state of a fitted Pipeline whose last step is of one of the classes ``models``."""
    *before, (last_name, last) = pipeline.steps
    steps = [_step_state(name, step) for name, step in before]
    if type(last).__name__ not in models:
        raise TypeError(_refusal(last))
    meta = {"steps": steps, "last": [last_name, last], "verbose": bool(pipeline.verbose)}
    return {}, meta


def pipeline_of(meta: Mapping[str, Any]) -> Any:
    """The Pipeline of a state that :func:`pipeline_state` gave; ValueError if it is none."""
    from sklearn.pipeline import Pipeline

    last_name, last = meta["last"]
    require(hasattr(last, "predict_topk"), "the last step is not a classifier")
    require(isinstance(meta["verbose"], bool), "verbose is neither True nor False")
    steps = [(step["name"], _step_of(step, last.n_features_in_)) for step in meta["steps"]]
    names = [name for name, _ in steps] + [last_name]
    valid = all(isinstance(name, str) and name and "__" not in name for name in names)
    require(valid and len(set(names)) == len(names), "the steps have no names of their own")
    return Pipeline([*steps, (last_name, last)], verbose=meta["verbose"])


def _step_state(name: str, step: Any) -> dict[str, Any]:
    if step is None or (isinstance(step, str) and step == _SKIPPED):
        return {"name": name, "estimator": _SKIPPED}
    kind = type(step).__name__
    if kind not in _VECTORS or type(step) is not _class_of(kind):
        raise TypeError(_refusal(step))
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(step)
    attributes = (*_VECTORS[kind], _COUNT, "n_features_in_", "feature_names_in_")
    fitted = {known: getattr(step, known) for known in attributes if hasattr(step, known)}
    return {"name": name, "estimator": kind, "params": step.get_params(), "fitted": fitted}


def _step_of(state: Mapping[str, Any], n_features: int) -> Any:
    kind = state["estimator"]
    if kind == _SKIPPED:
        return _SKIPPED
    require(kind in _VECTORS, f"a step is a {kind!r}")
    scaler = _class_of(kind)(**state["params"])
    scaler._validate_params()  # scikit-learn's own rules
    fitted = dict(state["fitted"])
    known = {*_VECTORS[kind], _COUNT, "n_features_in_", "feature_names_in_"}
    require(set(fitted) <= known, f"a {kind} holds what it does not learn")
    width = fitted.get("n_features_in_")
    require(is_integer(width) and width == n_features, f"a {kind} is for other features")
    for name in _VECTORS[kind]:
        if fitted[name] is not None:
            check_array(name, fitted[name], (n_features,))
    if _COUNT in fitted:
        seen = np.asarray(fitted[_COUNT])
        counts = seen.dtype.kind in "iuf" and seen.shape in ((), (n_features,))
        require(counts and (seen >= 0).all(), f"{_COUNT} is no number of examples")
    names = fitted.pop("feature_names_in_", None)
    vars(scaler).update(fitted)
    _check_scaling(scaler, kind, n_features)
    if names is not None:
        shaped = isinstance(names, np.ndarray) and names.shape == (n_features,)
        require(shaped and all(isinstance(name, str) for name in names), "a feature has no name")
        scaler.feature_names_in_ = names
    return scaler


def _check_scaling(scaler: Any, kind: str, n_features: int) -> None:
    """Raise unless a row of ones is scaled to finite numbers."""
    with np.errstate(all="ignore"):
        scaled = np.asarray(scaler.transform(np.ones((1, n_features))))
    require(scaled.shape == (1, n_features), f"a {kind} gives other features")
    require(np.isfinite(scaled).all(), f"a {kind} gives what is not finite")


def _class_of(kind: str) -> Any:
    return getattr(import_module("sklearn.preprocessing"), kind)


def _refusal(step: Any) -> str:
    known = ", ".join(_VECTORS)
    return (
        f"a Pipeline with a {type(step).__name__} cannot be saved, only {known} before a "
        "classifier of this package. Save it with skops (skops.io.dump), or its last step here, "
        "which takes what the steps before it give"
    )
