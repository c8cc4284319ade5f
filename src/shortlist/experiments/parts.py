"""Training, validation and test examples: embedded, from files, or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.experiments.units import fingerprint

if TYPE_CHECKING:
    from shortlist.datasets import DataSplits

#: Sparse features with a larger share of nonzeros than this are faster as a dense array.
_DENSE_SHARE = 0.3


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
        from sklearn.model_selection import train_test_split

        X, X_val, y, y_val = train_test_split(
            self.X_train, self.y_train, test_size=0.2, stratify=self.y_train, random_state=seed
        )
        return X, y, X_val, y_val

    def subsample(self, n: int, seed: int) -> Parts:
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
    from shortlist.datasets import load_letter

    return _of_splits(load_letter(dtype=dtype))


def stand_in_parts(name: str, *, seed: int) -> Parts:
    """A stand-in by its name, made anew from the package it comes from."""
    from shortlist.datasets import standins

    return _of_splits(getattr(standins, f"load_{name}")(random_state=seed))


def _of_splits(data: DataSplits) -> Parts:
    return Parts(data.X_train, data.y_train, data.X_test, data.y_test, data.X_val, data.y_val)


def read_parts(
    data: Path, test_data: Path | None = None, *, seed: int, scale: str | None = None
) -> Parts:
    """Parts from files; ``scale`` is that of :func:`shortlist.datasets.read_splits`.

    One file may hold training and test examples (and validation examples); or ``data`` holds the
    training examples and ``test_data`` the test examples. A file with one unnamed set is halved
    into training and test examples, class by class, as the paper does with ALOI. A folder may hold
    a file for each part: see :func:`_folder_of_parts`.
    """
    from shortlist.datasets import DataError, read_splits, scaled_parts

    parts = _folder_of_parts(data) if data.is_dir() else {}
    parts = parts or read_splits(data)
    if test_data is not None:
        test = read_splits(test_data, n_features=next(iter(parts.values())).n_features)
        parts = {
            "train": parts.get("train") or parts["all"],
            "test": test.get("test") or test["all"],
            **({"val": parts["val"]} if "val" in parts else {}),
        }
    parts = scaled_parts(parts, scale, None)
    if "all" in parts:
        return _halved(parts["all"].X, parts["all"].y, seed)
    for part in ("train", "test"):
        if part not in parts:
            raise DataError(f"holds no part {part!r}, only {', '.join(parts)}", path=str(data))
    train, test, val = parts["train"], parts["test"], parts.get("val")
    X_val, y_val = (None, None) if val is None else (val.X, val.y)
    return _in_single(Parts(train.X, train.y, test.X, test.y, X_val, y_val))


def _folder_of_parts(folder: Path) -> dict[str, Any]:
    """The parts that have a file of their own in a folder; none if it is no such folder.

    A part's features are in "train.npy" or "X_train.npy", or any other format. Labels that are not
    in the same file are in "train.labels.npy", as ``shortlist features`` writes them, or
    "y_train.npy".
    """
    from shortlist.datasets import DataError, read_dataset

    files = {path.stem: path for path in sorted(folder.iterdir())}
    parts: dict[str, Any] = {}
    for split in ("train", "val", "test"):
        path = files.get(split) or files.get(f"X_{split}")
        if path is None:
            continue
        labels = files.get(f"{split}.labels") or files.get(f"y_{split}")
        if labels is None and path.suffix == ".npy":
            raise DataError(
                f"holds no labels: put them into {split}.labels.npy beside it", path=str(path)
            )
        beside = {} if labels is None else {"labels": labels}
        n_features = parts["train"].n_features if "train" in parts else None
        parts[split] = read_dataset(path, n_features=n_features, **beside)
    return parts


def downloaded_parts(name: str, *, seed: int) -> Parts:
    """One of LibSVM's sets, from the cache or its site."""
    from shortlist.datasets import fetch

    data = fetch(name, random_state=seed)
    return _in_single(Parts(data.X_train, data.y_train, data.X_test, data.y_test))


def _halved(X: Any, y: Any, seed: int) -> Parts:
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    return _in_single(Parts(X_train, y_train, X_test, y_test))


def _in_single(parts: Parts) -> Parts:
    """Features in single precision, dense unless most entries are zero: fast, exact enough."""

    def single(X: Any, y: Any) -> tuple[Any, Any]:
        if X is None:
            return None, None
        if hasattr(X, "toarray") and X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        return X.astype(np.float32, copy=False), np.asarray(y)

    train, test = single(parts.X_train, parts.y_train), single(parts.X_test, parts.y_test)
    return Parts(*train, *test, *single(parts.X_val, parts.y_val))
