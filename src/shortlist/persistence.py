"""Save and load fitted models as data: no pickle, no code that runs on loading.

A model file is a file of :mod:`shortlist._state_files`. Its arrays are the model's; it says

    estimator        the class, by its registered name
    state            parameters, fitted attributes, the training's record; and under "data", if
                     it was given, how the training data was read

A checksum tells damage only. What is loaded is checked to be a model that ``fit`` could have made
(:mod:`shortlist._model_checks`), whoever wrote the file.

A class takes part by being registered below and offering

    _to_state() -> (arrays, meta)               name -> ndarray, and a dictionary of plain data
    _from_state(arrays, meta) -> instance       a classmethod

A Pipeline of scikit-learn's scalers and such a model is put into these terms by
:mod:`shortlist._pipelines`.

``meta`` may hold None, booleans, numbers, text, lists, tuples, dictionaries with any such keys,
arrays (of numbers or labels), CSR matrices, dtypes, and other registered models.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ._encoding import Decoder, Encoder
from ._linear_scores import LinearScores
from ._model_checks import check_data, check_linear_scores, check_state
from ._pipelines import pipeline_of, pipeline_state
from ._state_files import FileKind, read_arrays, read_header, to_json, told_as, write_state
from .errors import ModelFileError

MODEL_FILE = FileKind("model", 1, ModelFileError)

# The classes a file may name, and where they live. Nothing else is ever imported.
_REGISTERED = {
    "TopKClassifier": "shortlist.estimators",
    "TopKClassifierCV": "shortlist.estimators",
    "KernelTopKClassifier": "shortlist.estimators",
}
# The same for the objects around a model that are saved with it.
_AROUND_A_MODEL = {
    "ConformalShortlist": "shortlist.conformal",
    "TemperatureScaling": "shortlist.probabilities",
    "Pipeline": "sklearn.pipeline",
}


@dataclass(frozen=True)
class ModelInfo:
    """The metadata of a model file, read without its arrays.

    ``meta`` is the estimator's own dictionary (parameters, fitted attributes, the training's
    record), in which an array is shown as its type and shape.
    """

    path: str
    estimator: str
    format_version: int
    shortlist_version: str
    meta: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...]]]
    data: dict[str, Any] | None = None


def save(
    model: Any, path: str | os.PathLike[str], *, data: Mapping[str, Any] | None = None
) -> None:
    """Save a fitted model; the file appears whole or not at all.

    Parameters
    ----------
    model : TopKClassifier, TopKClassifierCV or KernelTopKClassifier
        Fitted. Also a ConformalShortlist or TemperatureScaling around one, and a scikit-learn
        Pipeline that ends in one after scalers: StandardScaler, MinMaxScaler, MaxAbsScaler,
        RobustScaler, Normalizer.
    path : path-like
        An existing file is replaced once the new one is complete and on disk.
    data : mapping or None
        What else the file is to say, such as how the training data was read
        (``{"reading": data.reading.to_dict()}``): plain data for JSON. Loading gives it back as
        ``model.data_``. None keeps the ``data_`` that the model was loaded with, if any.

    Raises
    ------
    TypeError
        If the model is none of these, or holds something that is not data (such as a
        kernel given as a function), or ``data`` is not plain data.
    """
    encoder = Encoder(lambda value, name: _encode_model(encoder, value, f"{name}/"))
    entry = _encode_model(encoder, model, "")
    if entry is None:
        known, around = ", ".join(sorted(_REGISTERED)), ", ".join(sorted(_AROUND_A_MODEL))
        raise TypeError(
            f"a {type(model).__name__} cannot be saved, only {known}, and around one of these "
            f"{around}"
        )
    if data is None:
        data = getattr(model, "data_", None)
    if data is not None:
        entry["state"]["data"] = _plain_data(data)
    state = entry.pop("state")
    write_state(path, MODEL_FILE, state, encoder.arrays, **entry)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` wrote. Only data is read: no code from the file runs.

    Raises
    ------
    ModelFileError
        (a ValueError) if there is no such file, it is not a Shortlist model, it is cut short or
        damaged, it holds what ``fit`` could not have made, or a newer Shortlist wrote it in a
        format this one does not know.
    """
    return _load(os.fspath(path), scores_only=False)


def load_scores(path: str | os.PathLike[str]) -> Any:
    """Load a model as far as its scores and shortlists need it.

    A linear model becomes a ``LinearScores``, which loads neither scikit-learn nor numba. Others
    are as :func:`load` gives them, which also says what is raised.
    """
    return _load(os.fspath(path), scores_only=True)


def _load(name: str, *, scores_only: bool) -> Any:
    with told_as(MODEL_FILE, name):
        header = read_header(name, MODEL_FILE)
        arrays = read_arrays(name, MODEL_FILE, header)
        state, data = _without_data(header.state)
        entry = {"estimator": header.own["estimator"], "state": state}

        def decode(entry: dict[str, Any]) -> Any:
            meta = entry["state"]["meta"]
            # A model within another, as a search has, is loaded whole.
            alone = scores_only and entry["estimator"] == header.own["estimator"]
            if not alone or not LinearScores.can_hold(entry["estimator"], meta):
                return _decode_model(entry)
            check_linear_scores(entry["state"]["arrays"], meta)
            return LinearScores.from_state(entry["state"]["arrays"], meta, data)

        model = Decoder(arrays, decode)({"$model": entry})
        if data is not None:
            check_data(model, data)
            if not isinstance(model, LinearScores):
                model.data_ = data
        return model


def describe(path: str | os.PathLike[str]) -> ModelInfo:
    """Return what a model file says of itself, without loading its arrays."""
    name = os.fspath(path)
    with told_as(MODEL_FILE, name):
        header = read_header(name, MODEL_FILE)
        state, data = _without_data(header.state)
        check_data(None, data or {})
        return ModelInfo(
            path=name,
            estimator=header.own["estimator"],
            format_version=int(header.own["format_version"]),
            shortlist_version=header.own.get("shortlist", "unknown"),
            meta=_Outline()(state)["meta"],
            arrays=header.arrays,
            data=data,
        )


class _Outline(Decoder):
    """Decode a state with its arrays' types and shapes in place of the arrays."""

    def __init__(self) -> None:
        super().__init__({}, decode_model=lambda entry: entry)

    def _array(self, value: dict[str, Any]) -> Any:
        return f"{np.dtype(value['dtype']).name} {tuple(value['shape'])}"

    def _csr(self, value: dict[str, Any]) -> Any:
        return f"CSR {tuple(value['shape'])}"


def _class_of(estimator: str) -> Any:
    module = _module_of(estimator)
    if module is None:
        raise ValueError(f"unknown class {estimator!r}")
    return getattr(import_module(module), estimator)


def _module_of(estimator: str) -> str | None:
    return _REGISTERED.get(estimator) or _AROUND_A_MODEL.get(estimator)


def _encode_model(encoder: Encoder, model: Any, prefix: str) -> dict[str, Any] | None:
    """Return a model's registered name and state, or None if it is not of a registered class.

    A subclass does not count: it may hold what the registered class does not save.
    """
    estimator = type(model).__name__
    if _module_of(estimator) is None or type(model) is not _class_of(estimator):
        return None
    if estimator == "Pipeline":
        arrays, meta = pipeline_state(model, _REGISTERED)
    else:
        arrays, meta = model._to_state()
    names = {key: encoder(value, prefix + key) for key, value in arrays.items()}
    return {
        "estimator": estimator,
        "state": {"arrays": names, "meta": encoder(meta, f"{prefix}meta")},
    }


def _decode_model(entry: dict[str, Any]) -> Any:
    estimator, state = entry["estimator"], entry["state"]
    if estimator == "Pipeline":
        return pipeline_of(state["meta"])
    make = _class_of(estimator)._from_state
    check_state(estimator, state["arrays"], state["meta"])
    return make(state["arrays"], state["meta"])


def _plain_data(data: Any) -> dict[str, Any]:
    """Return a copy of a mapping of plain data, as JSON will give it back."""
    try:
        copy = json.loads(to_json(dict(data)))
    except (TypeError, ValueError) as error:
        raise TypeError(f"data must be a mapping of plain data: {error}") from None
    return dict(copy)


def _without_data(state: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return a state without what :func:`save` was given as ``data``, and that."""
    if not isinstance(state, dict):
        raise TypeError(f"the state is a {type(state).__name__}, not a mapping")
    rest = dict(state)
    data = rest.pop("data", None)
    if data is not None and not isinstance(data, dict):
        raise ValueError("data is not a mapping")
    return rest, data
