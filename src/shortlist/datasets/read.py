"""One door to every file format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._parameters import FORMATS, SPLIT_NAMES
from .._text import Setting
from ..errors import DataError
from .containers import LabeledData
from .files import STDIN, check_readable, format_suffix
from .how_read import Reading
from .scaling import Scaling

_FORMAT_OF_SUFFIX = {
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_TEXT_FORMATS = ("libsvm", "csv")

PathLike = str | os.PathLike[str]


def data_format(path: PathLike) -> str:
    """Return the format that a file's name stands for; names that say nothing are "libsvm".

    A folder has the format of its files.
    """
    if os.path.isdir(path):
        return _folder_format(os.fspath(path))
    return _FORMAT_OF_SUFFIX.get(format_suffix(path), "libsvm")


def _folder_format(folder: str) -> str:
    from .shards import files_in

    files = files_in(folder)
    if not files:
        raise DataError("is a directory without data files", path=folder)
    formats = {data_format(file): file for file in files}
    if len(formats) > 1:
        shown = " and ".join(os.path.basename(file) for file in list(formats.values())[:2])
        raise DataError(f"is a directory of several formats ({shown})", path=folder)
    return next(iter(formats))


def read_splits(
    path: PathLike | Sequence[PathLike],
    *,
    format: str | None = None,
    names: PathLike | Sequence[str] | Mapping[Any, str] | None = None,
    like: Reading | Mapping[str, Any] | None = None,
    scale: str | None = None,
    on_disk: bool = False,
    **options: Any,
) -> dict[str, LabeledData]:
    """Read every part of a file: "train", "val" and "test", or "all" where it has no such parts.

    Only .npz and .mat files can have several parts. Parameters are those of :func:`read_dataset`.
    """
    if isinstance(like, Mapping):
        like = Reading.from_dict(like)
    if like is not None:
        options["like"] = like
    shards = _shards(path)
    first = shards[0] if shards else os.fspath(path)  # type: ignore[arg-type]
    kind = format or data_format(first)
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if on_disk and (scale is not None or (like is not None and like.scaling is not None)):
        raise ValueError("features that stay on disk cannot be scaled; scale them beforehand")
    read = _read_to_disk if on_disk else _read_file
    if shards is None:
        parts = read(first, kind, options)
    else:
        parts = _read_all(shards, path, kind, options, read)
    parts = scaled_parts(parts, scale, like)
    if names is None and like is not None and like.class_names is not None:
        return _named(parts, like.class_names)
    return parts if names is None else with_class_names(parts, names)


def scaled_parts(
    parts: dict[str, LabeledData], scale: str | None, like: Reading | None
) -> dict[str, LabeledData]:
    """Return the parts scaled as those of ``like`` were, else as ``scale`` says.

    The numbers then come from the training part, or from all.
    """
    if like is not None:
        scaling = like.scaling
    elif scale is not None:
        scaling = Scaling.of(parts.get("train", next(iter(parts.values()))).X, scale)
    else:
        scaling = None
    if scaling is None:
        return parts
    return {
        split: replace(
            part,
            X=scaling.apply(part.X),
            reading=part.reading and replace(part.reading, scaling=scaling),
        )
        for split, part in parts.items()
    }


def _read_file(path: str, kind: str, options: dict[str, Any]) -> dict[str, LabeledData]:
    name = check_readable(path)
    if name == STDIN and kind not in _TEXT_FORMATS:
        raise DataError(f"{kind} cannot be read from standard input", path=name)
    data = reader_of(kind)(name, **options)
    return data if isinstance(data, dict) else {"all": data}


def _read_to_disk(path: str, kind: str, options: dict[str, Any]) -> dict[str, LabeledData]:
    """Read a file, but leave its features on disk."""
    from .on_disk import rows_on_disk

    parts = _read_file(path, kind, options)
    return {name: replace(part, X=rows_on_disk(part.X)) for name, part in parts.items()}


def _shards(path: Any) -> list[str] | None:
    """Return the files of a folder or a list; None for one file."""
    if not isinstance(path, str | os.PathLike):
        shards = [os.fspath(shard) for shard in path]
        if not shards:
            raise ValueError("the list of files is empty")
        return shards
    if not os.path.isdir(path):
        return None
    from .shards import files_in

    data_format(path)  # an error unless all files are of one format
    return files_in(os.fspath(path))


def _read_all(
    shards: list[str],
    path: Any,
    kind: str,
    options: dict[str, Any],
    read_one: Callable[[str, str, dict[str, Any]], dict[str, LabeledData]],
) -> dict[str, LabeledData]:
    from .shards import read_shards

    one = isinstance(path, str | os.PathLike)
    name = os.fspath(path) if one else f"{shards[0]} and {len(shards) - 1} more"

    def read(shard: str, **own: Any) -> dict[str, LabeledData]:
        return read_one(shard, kind, own)

    return read_shards(shards, name, kind, read, dict(options))


def with_class_names(parts: dict[str, LabeledData], names: Any) -> dict[str, LabeledData]:
    """Return the parts with names for their labels: a list, a mapping, or a file of either."""
    from .names import distinct_labels, named_labels

    return _named(parts, named_labels(distinct_labels(parts.values()), names))


def _named(parts: dict[str, LabeledData], pairs: Any) -> dict[str, LabeledData]:
    names = tuple(name for _, name in pairs)
    return {
        split: replace(
            part,
            target_names=names,
            reading=part.reading and replace(part.reading, class_names=tuple(pairs)),
        )
        for split, part in parts.items()
    }


def read_dataset(
    path: PathLike | Sequence[PathLike],
    *,
    format: str | None = None,
    split: str | None = None,
    names: PathLike | Sequence[str] | Mapping[Any, str] | None = None,
    like: Reading | Mapping[str, Any] | None = None,
    scale: str | None = None,
    on_disk: bool = False,
    **options: Any,
) -> LabeledData:
    """Read examples and labels from a file; ``X, y = read_dataset(path)``.

    Parameters
    ----------
    path : path-like, or a sequence of them
        LibSVM text (any name), .csv or .tsv, each also compressed (.gz, .bz2, .xz) or from
        standard input (``"-"``); .parquet, .arrow, .feather, .npy, .npz, .mat. A folder or a list
        of files of one format is read as one data set, in the order of the names or of the list.
    format : "libsvm", "csv", "parquet", "arrow", "npy", "npz", "mat" or None
        None goes by the file's name.
    split : "train", "val", "test" or None
        Which part to take of an .npz or .mat file that holds several.
    names : path-like, sequence, mapping or None
        Names of the classes, or a file of them: one name a line in the order of the sorted labels,
        or a JSON object ``{"label": "name"}``.
    like : Reading, mapping or None
        How a file that goes with this one was read: its ``reading``, or what ``reading.to_dict()``
        gave. This file is read the same way: the same index base, the same columns by name and in
        the same order, the same treatment of missing values. Other columns are passed over;
        missing ones are an error that names them. Labels may be absent. Features are scaled as
        that file's were, whatever ``scale`` says.
    scale : "standard", "minmax", "l2" or None
        Scale the features, by numbers from this file (of several parts, from "train"). They are
        kept in ``reading``, for other files. See :class:`~shortlist.datasets.Scaling`.
    on_disk : bool, default=False
        Leave the features where they are, for data larger than memory: ``X`` is then for
        ``TopKClassifier(memory_limit=...).fit``, and slices of its rows are read as asked for.
        Formats that cannot be read by position are decoded once, to a temporary file without a
        name.
    **options
        What the format's reader takes: ``n_features`` and ``dtype`` always; ``label`` (None reads
        data without labels); see :func:`read_libsvm`, :func:`read_csv`, :func:`read_parquet`,
        :func:`read_arrow`, :func:`read_npy`, :func:`read_npz` and :func:`read_mat`.

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
    parts = read_splits(
        path, format=format, names=names, like=like, scale=scale, on_disk=on_disk, **options
    )
    source = next(iter(parts.values())).source
    if split is None:
        if len(parts) > 1:
            choice = ", ".join(parts)
            words = f"holds the parts {choice}: say which one with " + Setting("split")
            raise DataError(words, path=source)
        return next(iter(parts.values()))
    if split not in parts:
        raise DataError(f"holds no part {split!r}, only {', '.join(parts)}", path=source)
    return parts[split]


def reader_of(kind: str) -> Callable[..., LabeledData | dict[str, LabeledData]]:
    """The function that reads a format; its parameters are the options that the format has."""
    if kind == "libsvm":
        from .libsvm import read_libsvm

        return read_libsvm
    if kind == "csv":
        from .csv_tables import read_csv

        return read_csv
    from . import arrays, arrow_tables

    readers: dict[str, Callable[..., LabeledData | dict[str, LabeledData]]] = {
        "parquet": arrow_tables.read_parquet,
        "arrow": arrow_tables.read_arrow,
        "npy": arrays.read_npy,
        "npz": arrays.read_npz,
        "mat": arrays.read_mat,
    }
    return readers[kind]
