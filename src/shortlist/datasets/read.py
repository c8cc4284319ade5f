"""One door to every file format."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .containers import SPLIT_NAMES, LabeledData
from .errors import DataError
from .files import STDIN, check_readable, format_suffix

_FORMAT_OF_SUFFIX = {
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ("libsvm", "csv", "parquet", "npy", "npz", "mat")


def data_format(path: str | os.PathLike[str]) -> str:
    """Return the format that a file's name stands for; names that say nothing are "libsvm"."""
    return _FORMAT_OF_SUFFIX.get(format_suffix(path), "libsvm")


def read_splits(
    path: str | os.PathLike[str], *, format: str | None = None, **options: Any
) -> dict[str, LabeledData]:
    """Read every part of a file: "train", "val" and "test", or "all" where it has no such parts.

    Only .npz and .mat files can have several parts. Parameters are those of :func:`read_dataset`.
    """
    name = check_readable(path)
    kind = format or data_format(name)
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if name == STDIN and kind not in ("libsvm", "csv"):
        raise DataError(f"{kind} cannot be read from standard input", path=name)
    # Every line of LibSVM text has a label; data to predict carries any number there.
    if kind == "libsvm" and options.pop("label", "auto") not in ("auto", None):
        raise DataError("LibSVM text has its labels in front: label= is for tables", path=name)
    data = _reader(kind)(name, **options)
    return data if isinstance(data, dict) else {"all": data}


def read_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    split: str | None = None,
    **options: Any,
) -> LabeledData:
    """Read examples and labels from a file; ``X, y = read_dataset(path)``.

    Parameters
    ----------
    path : path-like
        LibSVM text (any name), .csv or .tsv, each also compressed (.gz, .bz2, .xz) or from
        standard input (``"-"``); .parquet, .npy, .npz, .mat.
    format : "libsvm", "csv", "parquet", "npy", "npz", "mat" or None
        None goes by the file's name.
    split : "train", "val", "test" or None
        Which part to take of an .npz or .mat file that holds several.
    **options
        What the format's reader takes: ``n_features`` and ``dtype`` always; ``label`` for tables
        and arrays (``label=None`` reads data without labels); see :func:`read_libsvm`,
        :func:`read_csv`, :func:`read_parquet`, :func:`read_npy`, :func:`read_npz` and
        :func:`read_mat`.

    Returns
    -------
    LabeledData

    Raises
    ------
    DataError
        (a ValueError) in one line, with the file, and the line or row where there is one.
    """
    if split is not None and split not in SPLIT_NAMES:
        raise ValueError(f"split must be one of {', '.join(SPLIT_NAMES)}, got {split!r}")
    parts = read_splits(path, format=format, **options)
    name = os.fspath(path)
    if split is None:
        if len(parts) > 1:
            choice = ", ".join(parts)
            raise DataError(f"holds the parts {choice}: say which one with split", path=name)
        return next(iter(parts.values()))
    if split not in parts:
        raise DataError(f"holds no part {split!r}, only {', '.join(parts)}", path=name)
    return parts[split]


def _reader(kind: str) -> Callable[..., LabeledData | dict[str, LabeledData]]:
    if kind == "libsvm":
        from .libsvm import read_libsvm

        return read_libsvm
    from . import arrays, tables

    readers: dict[str, Callable[..., LabeledData | dict[str, LabeledData]]] = {
        "csv": tables.read_csv,
        "parquet": tables.read_parquet,
        "npy": arrays.read_npy,
        "npz": arrays.read_npz,
        "mat": arrays.read_mat,
    }
    return readers[kind]
