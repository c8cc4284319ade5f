"""What every public projection does around its kernel: check the input, go row by row."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import kernel_array
from shortlist._parameters import VARIANTS
from shortlist.errors import ParameterError


def each_row(a: ArrayLike, kernel: Callable[[NDArray, NDArray], Any]) -> NDArray:
    """Call ``kernel(rows, out)`` on a finite float vector, or on a matrix of row vectors."""
    given = np.asarray(a)
    if given.ndim not in (1, 2) or given.shape[-1] == 0:
        raise ValueError(f"expected a vector or a matrix of row vectors; got shape {given.shape}")
    if given.dtype.kind not in "fiub":
        raise TypeError(f"expected real numbers; got an array of dtype {given.dtype}")
    dtype = np.float32 if given.dtype in (np.float32, np.float16) else np.float64
    rows = kernel_array(np.atleast_2d(given), dtype)
    if not np.isfinite(rows).all():
        raise ValueError("the vector to project has NaN or infinite entries")
    out = np.empty_like(rows)
    kernel(rows, out)
    return out.reshape(given.shape)


def check_positive(name: str, value: float) -> float:
    if not isinstance(value, Real) or not (0 < value < math.inf):
        raise ParameterError(name, f"must be a positive number; got {value!r}")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    if not isinstance(value, Real) or not (0 <= value < math.inf):
        raise ParameterError(name, f"must be a number, zero or larger; got {value!r}")
    return float(value)


def check_variant(variant: str, allowed: tuple[str, ...] = VARIANTS) -> str:
    if variant not in allowed:
        *others, last = map(repr, allowed)
        raise ParameterError("variant", f"must be {', '.join(others)} or {last}; got {variant!r}")
    return variant


def check_rank_weights(name: str, weights: ArrayLike, most: int | None = None) -> NDArray:
    """Weights of ranks: finite, zero or larger, not increasing, not all zero; at most so many."""
    ranks = np.array(weights)
    if ranks.dtype.kind not in "fiu" or ranks.ndim != 1 or ranks.size == 0:
        raise ParameterError(name, f"must be a list of numbers; got {weights!r}")
    ranks = kernel_array(ranks, np.float64)
    if not (np.isfinite(ranks).all() and (ranks >= 0).all() and ranks[0] > 0):
        problem = f"must be finite, zero or larger and not all zero; got {weights!r}"
        raise ParameterError(name, problem)
    if (np.diff(ranks) > 0).any():
        problem = f"must not increase from one rank to the next; got {weights!r}"
        raise ParameterError(name, problem)
    if most is not None and ranks.size > most:
        problem = f"must be at most {most}, the number of entries; got {ranks.size}"
        raise ParameterError(name, problem)
    return ranks
