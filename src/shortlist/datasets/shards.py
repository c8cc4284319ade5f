"""Data in several files, read as one: a folder of shards, or a list of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataError
from .arrays import read_labels
from .containers import LabeledData
from .files import plain_errors
from .how_read import Reading
from .libsvm import densify
from .on_disk import CsrOnDisk, JoinedRows, RowsOnDisk

Read = Callable[..., dict[str, LabeledData]]


def files_in(folder: str) -> list[str]:
    """Return a folder's files in the order of their names, without hidden and marker files."""
    with plain_errors(folder):
        names = sorted(os.listdir(folder))
    paths = [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    return [path for path in paths if os.path.isfile(path)]


def read_shards(
    paths: Sequence[str], name: str, kind: str, read: Read, options: dict[str, Any]
) -> dict[str, LabeledData]:
    """Read files of one format and put their examples together, part by part.

    The first file decides how the others are read: the columns of a table by name, the number of
    features of a matrix. LibSVM files may differ in width, and count from 0 if one of them does.
    """
    like: Reading | None = options.get("like")
    if options.get("missing") == "mean" and (like is None or like.fill is None):
        raise DataError("means of missing values are taken within one file only", path=name)
    labels = options.pop("labels", None)
    if labels is not None:
        options["label"] = None
    if kind == "libsvm":
        shards = _libsvm_shards(paths, read, options)
    else:
        shards = [read(paths[0], **options)]
        first = next(iter(shards[0].values())).reading
        shards += [read(path, **{**options, "like": like or first}) for path in paths[1:]]
    for path, shard in zip(paths, shards, strict=True):
        if set(shard) != set(shards[0]):
            here, there = ", ".join(shard), ", ".join(shards[0])
            raise DataError(f"holds {here} where {paths[0]} holds {there}", path=path)
    joined = {part: _joined([shard[part] for shard in shards], name) for part in shards[0]}
    if labels is not None:
        joined = {part: _with_labels(data, labels) for part, data in joined.items()}
    if kind == "libsvm" and not isinstance(next(iter(joined.values())).X, RowsOnDisk):
        dense = options.get("dense", "auto")
        joined = {part: replace(d, X=densify(d.X, dense, name)) for part, d in joined.items()}
    return joined


def _libsvm_shards(
    paths: Sequence[str], read: Read, options: dict[str, Any]
) -> list[dict[str, LabeledData]]:
    options = {**options, "dense": False}  # the whole is made dense, or not, at the end
    shards = [read(path, **options) for path in paths]
    if any(shard["all"].zero_based for shard in shards):
        # A file that merely lacks the first feature looks as if it counted from 1.
        shards = [
            shard if shard["all"].zero_based else read(path, **{**options, "zero_based": True})
            for path, shard in zip(paths, shards, strict=True)
        ]
    width = max(shard["all"].n_features for shard in shards)
    for shard in shards:
        shard["all"] = replace(shard["all"], X=widened(shard["all"].X, width))
    return shards


def widened(X: Any, n_features: int) -> Any:
    """Return the matrix with columns of zeros added."""
    if isinstance(X, CsrOnDisk):
        return X.widened(n_features)
    if not sparse.issparse(X):
        return np.pad(X, ((0, 0), (0, n_features - X.shape[1])))
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _with_labels(data: LabeledData, labels: Any) -> LabeledData:
    """Put the labels of their own files to the examples: one file, a folder or a list of them."""
    if isinstance(labels, str | os.PathLike):
        path = os.fspath(labels)
        files = files_in(path) if os.path.isdir(path) else [path]
    else:
        files = [os.fspath(path) for path in labels]
    if len(files) == 1:
        return replace(data, y=read_labels(files[0], data.n_samples))
    y = _joined_labels([(file, read_labels(file, None)) for file in files])
    if len(y) != data.n_samples:
        message = f"there are {len(y)} labels in {len(files)} files for {data.n_samples} examples"
        raise DataError(message, path=data.source)
    return replace(data, y=y)


def _joined(shards: Sequence[LabeledData], name: str) -> LabeledData:
    first = shards[0]
    widths = [shard.n_features for shard in shards]
    for shard, width in zip(shards, widths, strict=True):
        if width != widths[0]:
            message = f"has {width} features where {first.source} has {widths[0]}"
            raise DataError(message, path=shard.source)
    matrices = [shard.X for shard in shards]
    if all(isinstance(X, RowsOnDisk) for X in matrices):
        X: Any = JoinedRows(matrices)
    elif any(sparse.issparse(X) for X in matrices):
        X = sparse.csr_matrix(sparse.vstack(matrices, format="csr"))
    else:
        X = np.concatenate(matrices)
    return beside(X, shards, name)


def beside(X: Any, shards: Sequence[LabeledData], name: str) -> LabeledData:
    """Put labels, weights and names of the shards' examples to their rows ``X``."""
    first = shards[0]
    reading = first.reading and replace(first.reading, n_features=X.shape[1])
    y: Any = None
    if any(shard.reading is not None and shard.reading.classes for shard in shards):
        y, classes = _joined_indicators(shards)
        reading = reading and replace(reading, classes=classes)
    elif first.y is not None:
        y = _joined_labels([(shard.source, shard.y) for shard in shards])
    return replace(
        first,
        X=X,
        y=y,
        source=name,
        reading=reading,
        ids=_all_or_none([shard.ids for shard in shards]),
        weight=_all_or_none([shard.weight for shard in shards]),
        left_out=sum(shard.left_out for shard in shards),
    )


def _all_or_none(arrays: list[Any]) -> np.ndarray | None:
    return None if any(array is None for array in arrays) else np.concatenate(arrays)


def _joined_labels(labels: list[tuple[str, Any]]) -> np.ndarray:
    """Put labels together that are all numbers or all text: others would become text unasked."""
    first_path, first = labels[0]
    for path, y in labels:
        if y is None:
            raise DataError(f"has no labels, unlike {first_path}", path=path)
        if y.dtype.kind != first.dtype.kind:
            kinds = {"U": "text", "b": "truth values"}
            here, there = (kinds.get(z.dtype.kind, "numbers") for z in (y, first))
            raise DataError(f"has {here} as labels where {first_path} has {there}", path=path)
    return np.concatenate([y for _, y in labels])


def _joined_indicators(shards: Sequence[LabeledData]) -> tuple[sparse.csr_matrix, tuple[Any, ...]]:
    """Put indicators together over the labels of all; single labels count as sets of one."""
    own = [classes_of(shard) for shard in shards]
    classes = sorted({label for labels in own for label in labels})
    number = {label: column for column, label in enumerate(classes)}
    blocks = []
    for shard, labels in zip(shards, own, strict=True):
        y = shard.y
        if not sparse.issparse(y):
            columns = {label: i for i, label in enumerate(labels)}
            ones = np.ones(len(y), dtype=np.int64)
            places = [columns[label] for label in y.tolist()]
            y = sparse.csr_matrix((ones, (np.arange(len(y)), places)), (len(y), len(labels)))
        moved = np.array([number[label] for label in labels], dtype=np.int32)[y.indices]
        shape = (y.shape[0], len(classes))
        blocks.append(sparse.csr_matrix((y.data, moved, y.indptr), shape=shape))
    return sparse.csr_matrix(sparse.vstack(blocks, format="csr")), tuple(classes)


def classes_of(shard: LabeledData) -> list[Any]:
    """Return the labels that occur in a shard, sorted."""
    if shard.reading is not None and shard.reading.classes is not None:
        return list(shard.reading.classes)
    return sorted(set(shard.y.tolist()))
