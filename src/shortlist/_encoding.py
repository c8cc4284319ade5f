"""A model's state as JSON and numeric arrays: data only, exact, and nothing that could run.

JSON has neither tuples, nor keys other than text, nor NaN. What it lacks is written as an object
with one key that says what it is, such as ``{"$tuple": [1, 3]}``. Numeric arrays are put aside in
a dictionary, for a file format that stores them as they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ._sparse import check_sparse

_MARK = "$"
_STORED_KINDS = "biuf"
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CSR_PARTS = ("data", "indices", "indptr")


class Encoder:
    """Encode values; their arrays gather in ``arrays``, under the values' names.

    ``encode_model(value, name)`` is asked first about every object that is not plain data, and
    returns its encoding or None.
    """

    def __init__(self, encode_model: Callable[[Any, str], Any]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._encode_model = encode_model

    def __call__(self, value: Any, name: str) -> Any:
        """Return ``value`` in JSON's terms. TypeError, with the name, if it is not data."""
        # A scalar's exact type matters no more than a Python number's does.
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, list | tuple):
            items = [self(item, f"{name}.{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return self._dictionary(value, name)
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if sparse.issparse(value):
            return self._sparse(value, name)
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            return {"$dtype": np.dtype(value).str}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            message = f"{name} is a random generator; it is not saved and will be None on loading"
            warnings.warn(message, UserWarning, stacklevel=2)
            return None
        model = self._encode_model(value, name)
        if model is None:
            kind = type(value).__name__
            raise TypeError(f"{name} cannot be saved: a {kind} is not plain data")
        return {"$model": model}

    def _dictionary(self, value: dict[Any, Any], name: str) -> Any:
        if all(isinstance(key, str) and not key.startswith(_MARK) for key in value):
            return {key: self(item, f"{name}.{key}") for key, item in value.items()}
        pairs = [
            [self(key, f"{name} (a key)"), self(item, f"{name}.{key}")]
            for key, item in value.items()
        ]
        return {"$dict": pairs}

    def _array(self, value: np.ndarray, name: str) -> Any:
        kind, size = value.dtype.kind, value.dtype.itemsize
        if kind in _STORED_KINDS and size <= 8:
            if name in self.arrays:
                raise ValueError(f"two arrays are named {name}")
            # Little-endian and contiguous is what the file format stores.
            stored = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
            self.arrays[name] = stored.reshape(value.shape)
            return {"$array": {"name": name, "dtype": stored.dtype.str, "shape": list(value.shape)}}
        if kind in "UO":
            items = [self(item, f"{name}.{i}") for i, item in enumerate(value.ravel().tolist())]
            word = "text" if kind == "U" else "object"
            return {"$items": {"kind": word, "shape": list(value.shape), "items": items}}
        raise TypeError(f"{name} cannot be saved: an array of type {value.dtype}")

    def _sparse(self, value: Any, name: str) -> Any:
        csr = value.tocsr()
        parts = {part: self._array(getattr(csr, part), f"{name}.{part}") for part in _CSR_PARTS}
        return {"$csr": {**parts, "shape": list(csr.shape)}}


class Decoder:
    """Give back what an :class:`Encoder` was given; ValueError or KeyError if it is not such.

    ``decode_model`` turns a model's encoding, already decoded as a dictionary, into the model.
    """

    def __init__(
        self, arrays: Mapping[str, Any], decode_model: Callable[[dict[str, Any]], Any]
    ) -> None:
        self._arrays = arrays
        self._decode_model = decode_model
        self._marks: dict[str, Callable[[Any], Any]] = {
            "$array": self._array,
            "$csr": self._csr,
            "$dict": lambda pairs: {self(key): self(item) for key, item in pairs},
            "$dtype": lambda text: np.dtype(str(text)),
            "$float": lambda word: _WORDS[word],
            "$items": self._items,
            "$model": lambda model: self._decode_model(self(model)),
            "$tuple": lambda items: tuple(self(item) for item in items),
        }

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(item) for item in value]
        if not isinstance(value, dict):
            return value
        marked = [key for key in value if key.startswith(_MARK)]
        if not marked:
            return {key: self(item) for key, item in value.items()}
        if len(value) != 1 or marked[0] not in self._marks:
            raise ValueError(f"unknown entry {marked[0]!r}")
        return self._marks[marked[0]](value[marked[0]])

    def _array(self, value: dict[str, Any]) -> Any:
        array = self._arrays[value["name"]]
        # NumPy's own mark for this machine's byte order may differ from the one written.
        if array.dtype != np.dtype(value["dtype"]) or list(array.shape) != value["shape"]:
            stated = f"{value['dtype']} {tuple(value['shape'])}"
            found = f"{array.dtype.str} {array.shape}"
            raise ValueError(f"array {value['name']!r} is {found}, not {stated}")
        return array

    def _items(self, value: dict[str, Any]) -> np.ndarray:
        items = [self(item) for item in value["items"]]
        shape = tuple(value["shape"])
        if value["kind"] == "text":
            if not all(isinstance(item, str) for item in items):
                raise ValueError("an array of text holds something else")
            return np.array(items, dtype=np.str_).reshape(shape)
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _csr(self, value: dict[str, Any]) -> Any:
        parts = tuple(self(value[part]) for part in _CSR_PARTS)
        matrix = sparse.csr_matrix(parts, shape=tuple(value["shape"]))
        check_sparse(matrix)
        return matrix
