"""A model of arrays and plain data, to be saved and loaded, and what it means to be the same."""

import numpy as np


class Fake:
    """A stand-in for an estimator: arrays and metadata, given and taken as they are."""

    def __init__(self, arrays, meta):
        self.arrays, self.meta = arrays, meta

    def _to_state(self):
        return self.arrays, self.meta

    @classmethod
    def _from_state(cls, arrays, meta):
        if "coef_" in arrays and arrays["coef_"].ndim != 2:
            raise ValueError("coef_ must have two dimensions")
        return cls(arrays, meta)


def same(a, b):
    """Whether two values are equal in type, shape and content, NaN equal to NaN."""
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype.kind == b.dtype.kind
            and a.shape == b.shape
            and all(same(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
        )
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return (
            type(a) is type(b)
            and len(a) == len(b)
            and all(same(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, float) and np.isnan(a):
        return isinstance(b, float) and np.isnan(b)
    return type(a) is type(b) and a == b
