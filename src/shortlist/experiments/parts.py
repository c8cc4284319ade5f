"""Training, validation and test examples: embedded, from files, or downloaded."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import datasets
from shortlist.datasets import DataSplits, LabeledData
from shortlist.datasets.downloads import SOURCES
from shortlist.experiments.paper import read_table
from shortlist.experiments.units import fingerprint

#: Stand-ins for data that cannot be had, and their titles; :mod:`shortlist.datasets.standins` makes
#: them, and the prose of Table 3 has a word on each.
STAND_INS = {
    "glyphs": "Glyphs",
    "languages": "Languages of words",
    "countries": "Countries of cities",
}
#: Sparse features with a larger share of nonzeros than this are faster as a dense array.
_MAX_SPARSE_SHARE = 0.3


class MissingData(ValueError):
    """An experiment needs data that was not given; the message says how to give it."""


class Parts(DataSplits):
    """Training and test examples, and validation examples where there are any.

    Without a validation part a fifth of the training part is held out for choosing C, class by
    class, and the chosen models are trained again on all of it.
    """

    @property
    def n_classes(self) -> int:
        return self.train.n_classes

    @cached_property
    def fingerprint(self) -> str:
        parts = [self.train, self.part("test"), *([self.val] if self.val else [])]
        return fingerprint(*(array for part in parts for array in part))

    def for_selection(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Examples to train on and to choose C by: X, y, X_val, y_val."""
        if self.val is not None:
            return self.X_train, self.y_train, self.X_val, self.y_val
        X, X_val, y, y_val = train_test_split(
            *self.train, test_size=0.2, stratify=self.y_train, random_state=seed
        )
        return X, y, X_val, y_val

    def subsample(self, n: int, seed: int) -> "Parts":
        """At most ``n`` examples of each part, drawn at random."""
        random = np.random.default_rng(seed)

        def some(part: LabeledData) -> LabeledData:
            if part.n_samples <= n:
                return part
            rows = np.sort(random.choice(part.n_samples, n, replace=False))
            return LabeledData(part.X[rows], np.asarray(part.y)[rows])

        return parts_of(self, some)


def letter_parts(dtype: Any = np.float64) -> Parts:
    """Letter as it comes with the package, in the paper's three parts."""
    return parts_of(datasets.load_letter(dtype=dtype))


def known_parts(dataset: str, *, seed: int, download: bool) -> Parts:
    """The examples of a data set that needs no file."""
    if dataset == "letter":
        # Single precision, as for all data here: a third less time, the same table to 0.3 points.
        return letter_parts(np.float32)
    if dataset in STAND_INS:
        return parts_of(getattr(datasets, f"load_{dataset}")(random_state=seed))
    if download and dataset in SOURCES:
        return parts_of(datasets.fetch(dataset, random_state=seed), in_single)
    hints = {name: hint for name, *_, hint in read_table("experiments.csv")}
    raise MissingData(f"{dataset} needs its data: {hints.get(dataset) or hints['features']}")


def read_parts(
    data: Path, test_data: Path | None = None, *, seed: int, scale: str | None = None
) -> Parts:
    """Parts from files, as :func:`shortlist.datasets.read_parts` reads them."""
    splits = datasets.read_parts(data, test_data, scale=scale, random_state=seed)
    return parts_of(splits, in_single)


def parts_of(
    splits: DataSplits, convert: Callable[[LabeledData], LabeledData] = lambda part: part
) -> Parts:
    """The parts, each of them converted: first training, then test, then validation examples."""
    train, test = convert(splits.train), convert(splits.part("test"))
    val = None if splits.val is None else convert(splits.val)
    return Parts(splits.name, train, val, test)


def in_single(part: LabeledData) -> LabeledData:
    """Features in single precision, dense unless most entries are zero: fast, exact enough."""
    X, y = part
    if hasattr(X, "toarray") and X.nnz > _MAX_SPARSE_SHARE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return LabeledData(X.astype(np.float32, copy=False), np.asarray(y))
