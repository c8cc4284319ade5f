"""Training, validation and test examples: embedded, from files, or downloaded."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import datasets
from shortlist.datasets import DataSplits, LabeledData
from shortlist.experiments.units import fingerprint

#: Sparse features with a larger share of nonzeros than this are faster as a dense array.
_MAX_SPARSE_SHARE = 0.3


class MissingData(ValueError):
    """An experiment needs data that was not given; the message says how to give it."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Training, validation and test examples.

    Without a validation part a fifth of the training part is held out for choosing C, class by
    class, and the chosen models are trained again on all of it.
    """

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    X_val: Any = None
    y_val: Any = None

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y_train))

    @cached_property
    def fingerprint(self) -> str:
        arrays = [self.X_train, self.y_train, self.X_test, self.y_test, self.X_val, self.y_val]
        return fingerprint(*(array for array in arrays if array is not None))

    def for_selection(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Examples to train on and to choose C by: X, y, X_val, y_val."""
        if self.X_val is not None:
            return self.X_train, self.y_train, self.X_val, self.y_val
        X, X_val, y, y_val = train_test_split(
            self.X_train, self.y_train, test_size=0.2, stratify=self.y_train, random_state=seed
        )
        return X, y, X_val, y_val

    def subsample(self, n: int, seed: int) -> "Parts":
        """At most ``n`` examples of each part, drawn at random."""
        random = np.random.default_rng(seed)

        def some(X: Any, y: Any) -> tuple[Any, Any]:
            if X is None or X.shape[0] <= n:
                return X, y
            rows = np.sort(random.choice(X.shape[0], n, replace=False))
            return X[rows], np.asarray(y)[rows]

        train, test = some(self.X_train, self.y_train), some(self.X_test, self.y_test)
        return Parts(*train, *test, *some(self.X_val, self.y_val))


def letter_parts(dtype: Any = np.float64) -> Parts:
    """Letter as it comes with the package, in the paper's three parts."""
    return parts_of(datasets.load_letter(dtype=dtype))


def read_parts(
    data: Path, test_data: Path | None = None, *, seed: int, scale: str | None = None
) -> Parts:
    """Parts from files, as :func:`shortlist.datasets.read_parts` reads them."""
    splits = datasets.read_parts(data, test_data, scale=scale, random_state=seed)
    return parts_of(splits, in_single)


def parts_of(
    splits: DataSplits, convert: Callable[[LabeledData], tuple[Any, Any]] = tuple
) -> Parts:
    parts = [splits.train, splits.part("test"), *([splits.val] if splits.val else [])]
    return Parts(*(array for part in parts for array in convert(part)))


def in_single(part: LabeledData) -> tuple[Any, Any]:
    """Features in single precision, dense unless most entries are zero: fast, exact enough."""
    X, y = part
    if hasattr(X, "toarray") and X.nnz > _MAX_SPARSE_SHARE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return X.astype(np.float32, copy=False), np.asarray(y)
