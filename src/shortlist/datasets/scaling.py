"""Features brought to similar sizes, by numbers that come from the training data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._parameters import SCALES


@dataclass(frozen=True)
class Scaling:
    """A feature x becomes (x - shift) * factor; with "l2" every row gets length one.

    Attributes
    ----------
    kind : "standard", "minmax" or "l2"
        "standard": mean 0 and standard deviation 1 in the training data. "minmax": from 0 to 1.
        Sparse data is not shifted, so that zeros stay: "standard" then only divides by the
        standard deviation, "minmax" by the largest absolute value.
    shift, factor : tuple of float or None
        One number for each feature.
    """

    kind: str
    shift: tuple[float, ...] | None = None
    factor: tuple[float, ...] | None = None

    @classmethod
    def of(cls, X: Any, kind: str) -> Scaling:
        """Return the scaling of this kind whose numbers come from X."""
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

        check_scale(kind)
        if kind == "l2":
            return cls(kind)
        if kind == "standard":
            standard = StandardScaler(with_mean=not sparse.issparse(X)).fit(X)
            shift = None if sparse.issparse(X) else tuple(standard.mean_.tolist())
            return cls(kind, shift, tuple((1.0 / standard.scale_).tolist()))
        if sparse.issparse(X):
            return cls(kind, None, tuple((1.0 / MaxAbsScaler().fit(X).scale_).tolist()))
        ranged = MinMaxScaler().fit(X)
        return cls(kind, tuple(ranged.data_min_.tolist()), tuple(ranged.scale_.tolist()))

    def apply(self, X: Any) -> Any:
        """Return X scaled, a copy of the same precision."""
        if self.kind == "l2":
            from sklearn.preprocessing import normalize

            return normalize(X)
        dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
        factor = np.array(self.factor, dtype=dtype)
        if sparse.issparse(X) and self.shift is None:
            data = X.data.astype(dtype) * factor[X.indices]
            return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        scaled = dense - (0.0 if self.shift is None else np.array(self.shift, dtype=dtype))
        scaled *= factor
        return scaled.astype(dtype, copy=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_features: int) -> Scaling:
        """Return what ``dataclasses.asdict`` gave; ValueError if it is no scaling of so many."""
        if not isinstance(data, Mapping) or not {"kind"} <= set(data) <= {
            "kind",
            "shift",
            "factor",
        }:
            raise ValueError("the scaling of a description of data is incomplete")
        check_scale(data["kind"])
        numbers = {}
        for name in ("shift", "factor"):
            values = data.get(name)
            numbers[name] = None if values is None else tuple(values)
            if values is not None and not _are_finite(values, n_features):
                raise ValueError(f"{name} of a scaling must be a finite number for each feature")
        if (numbers["factor"] is None) != (data["kind"] == "l2"):
            raise ValueError(f"a scaling of kind {data['kind']!r} has other numbers")
        return cls(data["kind"], **numbers)


def check_scale(kind: Any) -> None:
    """Raise ValueError unless ``kind`` is one of those known."""
    if kind not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {kind!r}")


def _are_finite(values: Any, n_features: int) -> bool:
    listed = isinstance(values, list | tuple) and len(values) == n_features
    return listed and all(isinstance(v, float) and math.isfinite(v) for v in values)
