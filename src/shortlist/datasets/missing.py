"""Missing values of a table: an error, the feature's mean, or the example left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from .._text import Setting
from ..errors import DataError
from .columns import TableOptions, shown_column

# How files write that a value is missing, in small letters.
MISSING_WORDS = frozenset(["", "na", "n/a", "nan", "null", "none", "?"])


@dataclass(frozen=True)
class Filled:
    """A matrix without missing values, which rows it has, and the means that were put in."""

    X: np.ndarray
    kept: np.ndarray
    means: tuple[float, ...] | None


def fill_missing(
    X: np.ndarray, options: TableOptions, feature_names: tuple[str, ...] | None, path: str
) -> Filled:
    """Treat NaN in X as ``options.missing`` says. A NaN that is an error stays, to be told.

    The means are those of the data that ``options.like`` describes, if it has any.
    """
    everything = np.ones(len(X), dtype=bool)
    if options.missing == "error" or X.dtype.kind != "f":
        return Filled(X, everything, None)
    absent = np.isnan(X)
    if options.missing == "drop":
        kept = ~absent.any(axis=1)
        if not kept.any():
            raise DataError("every example has a missing value", path=path)
        return Filled(X[kept], kept, None)
    if options.like is not None and options.like.fill is not None:
        means = np.array(options.like.fill, dtype=np.float64)
    else:
        means = _means(X, feature_names, path)
    if absent.any():
        X = np.where(absent, means.astype(X.dtype), X)
    return Filled(X, everything, tuple(means.tolist()))


def _means(X: np.ndarray, feature_names: tuple[str, ...] | None, path: str) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore")  # a column without any value: reported below
        means = np.asarray(np.nanmean(X, axis=0, dtype=np.float64))
    empty = np.flatnonzero(np.isnan(means))
    if empty.size:
        column = int(empty[0])
        where = shown_column(column, feature_names)
        words = f"{where} has no value at all: leave it out with " + Setting("drop")
        raise DataError(words, path=path)
    return means
