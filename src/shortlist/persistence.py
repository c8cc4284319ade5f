"""Save and load fitted models as data: no pickle, no code that runs on loading.

A model file is a safetensors file. Its arrays are the model's; its metadata have one entry,
"shortlist-model", a JSON object (one entry, because safetensors writes several in any order, and
saving a model twice is to give the same bytes):

    format_version   1
    shortlist        the version of Shortlist that wrote it
    estimator        the class, by its registered name
    state            parameters, fitted attributes, the training's record; and under "data", if
                     it was given, how the training data was read
    sha256           of the state and the arrays, so that damage does not go unnoticed

A checksum tells damage only. What is loaded is checked to be a model that ``fit`` could have made
(:mod:`shortlist._model_checks`), whoever wrote the file.

A class takes part by being registered below and offering

    _to_state() -> (arrays, meta)               name -> ndarray, and a dictionary of plain data
    _from_state(arrays, meta) -> instance       a classmethod

``meta`` may hold None, booleans, numbers, text, lists, tuples, dictionaries with any such keys,
arrays (of numbers or labels), CSR matrices, dtypes, and other registered models.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from . import __version__
from ._encoding import Decoder, Encoder
from ._files import atomic_write
from ._model_checks import check_data, check_state
from .datasets.files import check_readable, plain_errors
from .errors import DataError, ModelFileError

FORMAT = "shortlist-model"
FORMAT_VERSION = 1

# The classes a file may name, and where they live. Nothing else is ever imported.
_REGISTERED = {
    "TopKClassifier": "shortlist.estimators",
    "TopKClassifierCV": "shortlist.estimators",
    "KernelTopKClassifier": "shortlist.estimators",
}
# The same for what stands around a model, and is saved with it.
_AROUND_A_MODEL = {
    "ConformalShortlist": "shortlist.conformal",
    "TemperatureScaling": "shortlist.probabilities",
}

# safetensors' own limit on the header, and a guard against reading rubbish as a length.
_LARGEST_HEADER = 100_000_000
_SHOWN_REASON = 300


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says of itself, read without its arrays.

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
        Fitted.
    path : path-like
        An existing file is replaced once the new one is complete and on disk.
    data : mapping or None
        What else the file is to say, such as how the training data was read
        (``{"reading": data.reading.to_dict()}``): plain data for JSON. Loading gives it back as
        ``model.data_``. None keeps the ``data_`` that the model was loaded with, if any.

    Raises
    ------
    TypeError
        If the model is not one of these classes, or holds something that is not data (such as a
        kernel given as a function), or ``data`` is not plain data.
    """
    import safetensors.numpy

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
    own = {
        "format_version": FORMAT_VERSION,
        "shortlist": __version__,
        **entry,
        "sha256": _digest(entry["state"], encoder.arrays),
    }
    content = safetensors.numpy.save(encoder.arrays, metadata={FORMAT: _to_json(own)})
    with atomic_write(path) as part, open(part, "wb") as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` wrote. Only data is read: no code from the file runs.

    Raises
    ------
    ModelFileError
        (a ValueError) if there is no such file, it is not a Shortlist model, it is cut short or
        damaged, it holds what ``fit`` could not have made, or a newer Shortlist wrote it in a
        format this one does not know.
    """
    import safetensors
    import safetensors.numpy

    name = os.fspath(path)
    with _told_as_model_file_error(name):
        header = _read_header(name)
        try:
            with open(name, "rb") as file:
                arrays = safetensors.numpy.load(file.read())
        except safetensors.SafetensorError as error:
            raise ModelFileError(f"is damaged ({error})", path=name) from None
        if _digest(header.state, arrays) != header.sha256:
            raise ModelFileError("is damaged: its checksum does not match", path=name)
        state, data = _without_data(header.state)
        model = Decoder(arrays, _decode_model)(
            {"$model": {"estimator": header.estimator, "state": state}}
        )
        if data is not None:
            check_data(model, data)
            model.data_ = data
        return model


def describe(path: str | os.PathLike[str]) -> ModelInfo:
    """Return what a model file says of itself, without loading its arrays."""
    name = os.fspath(path)
    with _told_as_model_file_error(name):
        header = _read_header(name)
        state, data = _without_data(header.state)
        check_data(None, data or {})
        return ModelInfo(
            path=name,
            estimator=header.estimator,
            format_version=header.format_version,
            shortlist_version=header.shortlist_version,
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
    arrays, meta = model._to_state()
    names = {key: encoder(value, prefix + key) for key, value in arrays.items()}
    return {
        "estimator": estimator,
        "state": {"arrays": names, "meta": encoder(meta, f"{prefix}meta")},
    }


def _decode_model(entry: dict[str, Any]) -> Any:
    estimator, state = entry["estimator"], entry["state"]
    make = _class_of(estimator)._from_state
    check_state(estimator, state["arrays"], state["meta"])
    return make(state["arrays"], state["meta"])


def _plain_data(data: Any) -> dict[str, Any]:
    """Return a copy of a mapping of plain data, as JSON will give it back."""
    try:
        copy = json.loads(_to_json(dict(data)))
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


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _digest(state: Any, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of a state and its arrays: names, types, shapes and contents."""
    digest = hashlib.sha256(_to_json(state).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@contextmanager
def _told_as_model_file_error(path: str) -> Iterator[None]:
    """Turn whatever a bad file causes into a ModelFileError that names it."""
    try:
        with plain_errors(check_readable(path)):
            yield
    except ModelFileError:
        raise
    except DataError as error:
        raise ModelFileError(str(error).removeprefix(f"{path}: "), path=path) from None
    except Exception as error:  # of a file that anybody may have written
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        message = f"does not hold a complete model ({reason[:_SHOWN_REASON]})"
        raise ModelFileError(message, path=path) from error


@dataclass(frozen=True)
class _Header:
    estimator: str
    format_version: int
    shortlist_version: str
    state: Any
    sha256: str
    arrays: dict[str, tuple[str, tuple[int, ...]]]


def _read_header(path: str) -> _Header:
    """Read and judge a file's header: is it a whole Shortlist model in a format known here?"""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        text = file.read(min(length, _LARGEST_HEADER))
    if not text.startswith(b"{"):
        raise ModelFileError("is not a Shortlist model file", path=path)
    if len(text) < length:
        # Cut within the header; its beginning tells whose file it is.
        if FORMAT.encode() in text:
            raise ModelFileError("is cut short", path=path)
        raise ModelFileError("is not a Shortlist model file, or is cut short", path=path)
    try:
        header = json.loads(text)
    except ValueError:
        raise ModelFileError("is not a Shortlist model file", path=path) from None
    metadata = header.pop("__metadata__", {})
    if FORMAT not in metadata:
        raise ModelFileError("is not a Shortlist model file", path=path)
    own = json.loads(metadata[FORMAT])
    version = int(own["format_version"])
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"was written by a newer Shortlist ({own.get('shortlist', 'unknown')}, file format "
            f"{version}; this one, {__version__}, reads up to {FORMAT_VERSION}): upgrade Shortlist",
            path=path,
        )
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if size < 8 + length + end:
        raise ModelFileError(f"is cut short: {size} bytes of {8 + length + end}", path=path)
    return _Header(
        estimator=own["estimator"],
        format_version=version,
        shortlist_version=own.get("shortlist", "unknown"),
        state=own["state"],
        sha256=own["sha256"],
        arrays={key: (entry["dtype"], tuple(entry["shape"])) for key, entry in header.items()},
    )
