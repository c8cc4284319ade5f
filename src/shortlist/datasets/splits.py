"""Training, validation and test examples from files: parts of one file, or a file for each."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._parameters import SPLIT_NAMES
from ..errors import DataError
from .containers import DataSplits, LabeledData
from .read import read_dataset, read_splits, scaled_parts

PathLike = str | os.PathLike[str]


def read_parts(
    path: PathLike,
    test_path: PathLike | None = None,
    *,
    scale: str | None = None,
    random_state: Any = None,
) -> DataSplits:
    """Read training and test examples, and validation examples if there are any.

    One file may hold all parts; or ``path`` holds the training examples and ``test_path`` the test
    examples. A file with one unnamed set is halved into training and test examples at random, class
    by class. A folder may hold a file for each part: features in "train.npy" or "X_train.npy", or
    in any other format; labels that are not in the same file in "train.labels.npy", as ``shortlist
    features`` writes them, or "y_train.npy". ``scale`` is that of :func:`read_dataset`.
    """
    parts = _folder_of_parts(Path(path)) if os.path.isdir(path) else {}
    parts = parts or read_splits(path)
    if test_path is not None:
        test = read_splits(test_path, n_features=next(iter(parts.values())).n_features)
        validation = {"val": parts["val"]} if "val" in parts else {}
        train = parts.get("train") or parts["all"]
        parts = {"train": train, "test": test.get("test") or test["all"], **validation}
    parts = scaled_parts(parts, scale, None)
    if "all" in parts:
        parts = halves(parts["all"], random_state)
    for part in ("train", "test"):
        if part not in parts:
            raise DataError(f"holds no part {part!r}, only {', '.join(parts)}", path=path)
    return DataSplits(Path(path).stem, parts["train"], parts.get("val"), parts["test"])


def _folder_of_parts(folder: Path) -> dict[str, LabeledData]:
    """The parts that have a file of their own in a folder; none if it is no such folder."""
    files = {path.stem: path for path in sorted(folder.iterdir())}
    parts: dict[str, LabeledData] = {}
    for split in SPLIT_NAMES:
        path = files.get(split) or files.get(f"X_{split}")
        if path is None:
            continue
        labels = files.get(f"{split}.labels") or files.get(f"y_{split}")
        if labels is None and path.suffix == ".npy":
            words = f"holds no labels: put them into {split}.labels.npy beside it"
            raise DataError(words, path=path)
        options: dict[str, Any] = {} if labels is None else {"labels": labels}
        if "train" in parts:
            options["n_features"] = parts["train"].n_features
        parts[split] = read_dataset(path, **options)
    return parts


def halves(data: LabeledData, random_state: Any) -> dict[str, LabeledData]:
    """Training and test examples, one half each, class by class."""
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.5, stratify=data.y, random_state=random_state
    )
    return {
        "train": replace(data, X=X_train, y=y_train),
        "test": replace(data, X=X_test, y=y_test),
    }
