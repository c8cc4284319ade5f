"""What the readers and loaders return: one labelled set, or several splits of one data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .._parameters import SPLIT_NAMES
from .._text import counted
from .how_read import Reading

Matrix: TypeAlias = Any  # a dense array or a scipy csr_matrix


@dataclass(frozen=True, eq=False)
class LabeledData:
    """Examples with their labels; unpacks as ``X, y = data``.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), csr_matrix of shape (n_samples, n_classes) or None
        An indicator matrix where examples have several labels; None without labels.
    feature_names : tuple of str or None
        The columns' names, where the file has any.
    target_names : tuple of str or None
        The classes' names in the order of the sorted labels, where the file has any.
    source : str
        The file (or generator) that the data came from.
    reading : Reading or None
        How the file was read: pass it on (``like=``) when reading a file that goes with this one.
    ids : ndarray of shape (n_samples,) or None
        The examples' names, where a column was said to hold them.
    weight : ndarray of shape (n_samples,) or None
        The examples' weights, where a column was said to hold them.
    left_out : int
        How many examples were left out for missing values.
    """

    X: Matrix
    y: Any
    feature_names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None
    source: str = ""
    reading: Reading | None = None
    ids: np.ndarray | None = None
    weight: np.ndarray | None = None
    left_out: int = 0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def zero_based(self) -> bool | None:
        """LibSVM text: whether its first feature is number 0 rather than 1."""
        base = None if self.reading is None else self.reading.index_base
        return None if base is None else base == 0

    @property
    def n_classes(self) -> int:
        """The number of distinct labels, 0 without labels."""
        if self.y is None:
            return 0
        return int(self.y.shape[1]) if sparse.issparse(self.y) else len(np.unique(self.y))

    def describe(self) -> str:
        """Return in one line where the data is from, and how much there is."""
        source = "standard input" if self.source == "-" else self.source
        parts = [counted(self.n_samples, "example"), counted(self.n_features, "feature")]
        if sparse.issparse(self.X):
            share = self.X.nnz / max(self.n_samples * self.n_features, 1)
            parts[-1] += f" ({share:.2%} nonzero)"
        if self.y is not None:
            parts.append(counted(self.n_classes, "class"))
        if self.left_out:
            parts.append(f"{self.left_out} more left out for missing values")
        return f"{source}: {', '.join(parts)}"

    def __repr__(self) -> str:
        labels = "no labels" if self.y is None else f"{self.n_classes} classes"
        shape = f"{self.n_samples} x {self.n_features}"
        return f"LabeledData({self.source or 'in memory'}: {shape}, {labels})"


@dataclass(frozen=True, eq=False)
class DataSplits:
    """A data set in up to three parts: ``train``, ``val`` and ``test``.

    ``X_train``, ``y_train``, ``X_val``, ``y_val``, ``X_test`` and ``y_test`` are shorthands;
    asking for a part that the data set does not have is an AttributeError.
    """

    name: str
    train: LabeledData
    val: LabeledData | None = None
    test: LabeledData | None = None
    target_names: tuple[str, ...] | None = field(default=None, repr=False)
    description: str = field(default="", repr=False)

    def part(self, split: str) -> LabeledData:
        """Return one of the parts by its name: "train", "val" or "test"."""
        if split not in SPLIT_NAMES:
            raise ValueError(f"split must be one of {', '.join(SPLIT_NAMES)}, got {split!r}")
        data = getattr(self, split)
        if data is None:
            have = [name for name in SPLIT_NAMES if getattr(self, name) is not None]
            raise AttributeError(f"{self.name} has no {split!r} part, only {', '.join(have)}")
        return data

    @property
    def X_train(self) -> Any:
        return self.train.X

    @property
    def y_train(self) -> Any:
        return self.train.y

    @property
    def X_val(self) -> Any:
        return self.part("val").X

    @property
    def y_val(self) -> Any:
        return self.part("val").y

    @property
    def X_test(self) -> Any:
        return self.part("test").X

    @property
    def y_test(self) -> Any:
        return self.part("test").y
