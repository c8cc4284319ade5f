"""NumPy and MATLAB files: .npy, .npz and .mat.

Three layouts are understood: one set (``X`` and ``y``); splits (``X_train``, ``y_train``,
``X_val``, ... , or the ``train_data``, ``train_labels``, ... of Caltech 101 Silhouettes); and a
sparse matrix that ``scipy.sparse.save_npz`` wrote, with the labels in a file of their own. A sparse
matrix among other arrays is stored as its CSR parts, ``X_data``, ``X_indices``, ``X_indptr`` and
``X_shape``. Nothing in these files is ever run: pickled objects are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .._parameters import SPLIT_NAMES
from .._sparse import check_sparse
from .._text import Setting, few
from ..errors import DataError
from .checks import check_features
from .columns import features_by_name
from .containers import LabeledData
from .files import as_text, check_readable, format_suffix, open_data, parser_errors
from .how_read import Reading
from .labels import check_labels, parse_labels, text_array
from .limits import check_read_size
from .mat import load_mat
from .names import distinct_labels, pair_names
from .npy import Archive, load_npy

# Also x_train and Y as others write them, and the fea and gnd of a well-known page of data sets.
_FEATURES = ("X", "x", "data", "features", "fea")
_LABELS = ("y", "Y", "target", "labels", "gnd")
_CLASS_NAMES = ("target_names", "classnames", "class_names")
_FEATURE_NAMES = ("feature_names",)
_SHOWN_NAMES = 12
_CSR_PARTS = ("data", "indices", "indptr", "shape")
# What scipy.sparse.save_npz writes, by the matrix's own word for its format.
_SCIPY_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def read_npy(
    path: str | os.PathLike[str],
    *,
    label: int | str | None = "auto",
    labels: str | os.PathLike[str] | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    like: Reading | None = None,
) -> dict[str, LabeledData]:
    """Read a matrix from a .npy file, memory-mapped, as the one part "all".

    Parameters
    ----------
    path : path-like
    label : int or None
        The column that holds the labels (negative counts from the end); None: there are no labels.
    labels : path-like or None
        A second file that holds the labels: .npy, or text with one label a line.
    n_features : int or None
        Number of features the file must have.
    dtype : dtype or None
        Type of the features; None keeps the file's, and the memory map.
    like : Reading or None
        How a file that goes with this one was read.
    """
    name = check_readable(path)
    X = load_npy(name)
    y = None
    if like is not None and label == "auto" and labels is None and X.ndim == 2:
        label = like.label if like.format == "npy" and X.shape[1] > like.n_features else None
    if labels is None and isinstance(label, int) and X.ndim == 2:
        if not -X.shape[1] <= label < X.shape[1]:
            raise DataError(f"has no column {label}, only 0 to {X.shape[1] - 1}", path=name)
        column = label = label % X.shape[1]
        y = X[:, column]
        # A view where it can be one: cutting a middle column needs a copy.
        if column == X.shape[1] - 1:
            X = X[:, :-1]
        elif column == 0:
            X = X[:, 1:]
        else:
            X = np.delete(X, column, axis=1)
    elif labels is None and label is not None:
        raise DataError(
            "holds one array: give the labels' file ("
            + Setting("labels")
            + "), the labels' column number ("
            + Setting("label")
            + "), or "
            + Setting("label", None)
            + " for data without labels",
            path=name,
        )
    if n_features is None and like is not None:
        n_features = like.n_features
    X = check_features(X, name, n_features)
    if labels is not None:
        y = read_labels(labels, X.shape[0])
    elif y is not None:
        y = check_labels(y, X.shape[0], name)
    reading = Reading("npy", X.shape[1], label=label if isinstance(label, int) else None)
    return {"all": LabeledData(_as_type(X, dtype), y, source=name, reading=reading)}


def read_npz(
    path: str | os.PathLike[str],
    *,
    label: str | None = "auto",
    labels: str | os.PathLike[str] | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    like: Reading | None = None,
) -> dict[str, LabeledData]:
    """Read every part of an .npz file, by name: "all", or some of "train", "val", "test".

    Arrays of files written without compression are memory-mapped. ``label=None`` leaves the
    labels aside, present or not. ``labels`` is a second file that holds them, .npy or text with
    one label a line: a matrix written by ``scipy.sparse.save_npz`` has none of its own.
    """
    name = check_readable(path)
    with Archive(name) as arrays:
        return _parts(arrays, name, "npz", label, labels, n_features, dtype, like)


def read_mat(
    path: str | os.PathLike[str],
    *,
    label: str | None = "auto",
    labels: str | os.PathLike[str] | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    like: Reading | None = None,
) -> dict[str, LabeledData]:
    """Read every part of a MATLAB file (up to version 7.2), by name, as :func:`read_npz` does.

    This is the format of Caltech 101 Silhouettes (``caltech101_silhouettes_28_split1.mat``).
    """
    name = check_readable(path)
    bases = (*_FEATURES, *_LABELS)
    wanted = [key for split in ("all", *SPLIT_NAMES) for key in _keys(bases, split)]
    arrays, held = load_mat(name, [*wanted, *_CLASS_NAMES])
    if not arrays:
        raise _nothing_found(held, name)
    return _parts(arrays, name, "mat", label, labels, n_features, dtype, like)


def read_labels(path: str | os.PathLike[str], n_samples: int | None) -> np.ndarray:
    """Read one label an example from a file of labels: .npy, or text with one label a line.

    None leaves their number open.
    """
    name = check_readable(path)
    if format_suffix(name) == ".npy":
        y = load_npy(name)
        return check_labels(y, y.size if n_samples is None else n_samples, name)
    with parser_errors("is not UTF-8 text", name), open_data(name) as file, as_text(file) as text:
        lines = [(number, line.strip()) for number, line in enumerate(text, start=1)]
    kept = [(number, line) for number, line in lines if line]
    y = parse_labels([line for _, line in kept], [number for number, _ in kept], "auto", name)
    return check_labels(y, len(y) if n_samples is None else n_samples, name)


def _parts(
    arrays: Mapping[str, Any],
    name: str,
    kind: str,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    n_features: int | None,
    dtype: Any,
    like: Reading | None,
) -> dict[str, LabeledData]:
    if label not in ("auto", None):
        raise ValueError(f'label must be "auto" or None for .npz and .mat files, got {label!r}')
    target_names = _texts(arrays, _CLASS_NAMES, name)
    feature_names = _texts(arrays, _FEATURE_NAMES, name)
    parts: dict[str, LabeledData] = {}
    for split in ("all", *SPLIT_NAMES):
        X = _features_of(arrays, split, name)
        if X is None:
            continue
        X = check_features(X, name)
        names = feature_names
        if names is not None and len(names) != X.shape[1]:
            raise DataError(f"has {len(names)} names for {X.shape[1]} features", path=name)
        if like is not None:
            X, names = features_by_name(X, names, like, name)
        if n_features is not None and X.shape[1] != n_features:
            message = f"has {X.shape[1]} features where {n_features} are expected"
            raise DataError(message, path=name)
        y = _labels_of(arrays, split, X.shape[0], label, labels, like, name)
        reading = Reading(kind, X.shape[1], feature_names=names)
        parts[split] = LabeledData(
            _as_type(X, dtype), y, names, target_names, source=name, reading=reading
        )
        if split == "all":
            break
    if not parts:
        raise _nothing_found(list(arrays), name)
    if labels is not None and len(parts) > 1:
        raise DataError("has several parts, so one file of labels does not do", path=name)
    return _with_class_names(parts, target_names, first=1 if kind == "mat" else 0)


def _nothing_found(held: list[str], name: str) -> DataError:
    listed = few(sorted(held), _SHOWN_NAMES, str) or "nothing"
    return DataError(f"holds neither 'X' nor 'X_train' (it holds {listed})", path=name)


def _with_class_names(
    parts: dict[str, LabeledData], names: tuple[str, ...] | None, first: int
) -> dict[str, LabeledData]:
    """Put the file's own names of classes to the labels, if it is clear which is whose."""
    if names is None:
        return parts
    try:
        pairs = pair_names(distinct_labels(parts.values()), names, first)
    except ValueError:
        return parts
    return {
        split: replace(part, reading=part.reading and replace(part.reading, class_names=pairs))
        for split, part in parts.items()
    }


def _keys(bases: tuple[str, ...], split: str) -> list[str]:
    if split == "all":
        return list(bases)
    return [f"{base}_{split}" for base in bases] + [f"{split}_{base}" for base in bases]


def _present(arrays: Mapping[str, Any], keys: list[str] | tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def _labels_of(
    arrays: Mapping[str, Any],
    split: str,
    n_samples: int,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    like: Reading | None,
    name: str,
) -> np.ndarray | None:
    if labels is not None:
        return read_labels(labels, n_samples)
    if label is None:
        return None
    key = _present(arrays, _keys(_LABELS, split))
    if key is not None:
        return check_labels(arrays[key], n_samples, name)
    if like is not None:
        return None  # the number of features is known from the training data: labels may be absent
    wanted = _keys(_LABELS, split)[0]
    raise DataError(
        f"holds no labels {wanted!r}: give their file ("
        + Setting("labels")
        + "), or "
        + Setting("label", None)
        + " for none",
        path=name,
    )


def _features_of(arrays: Mapping[str, Any], split: str, name: str) -> Any:
    if split == "all" and all(part in arrays for part in ("format", "shape", "data")):
        return _scipy_matrix(arrays, name)
    # CSR parts come first: "X_train_data" must not be taken for something else's features.
    for key in _keys(_FEATURES, split):
        if all(f"{key}_{part}" in arrays for part in _CSR_PARTS):
            *parts, shape = (arrays[f"{key}_{part}"] for part in _CSR_PARTS)
            with parser_errors(f"the CSR parts of {key!r} do not fit together", name):
                matrix = sparse.csr_matrix(tuple(parts), shape=_shape(shape))
                return _checked_csr(matrix, name)
    found = _present(arrays, _keys(_FEATURES, split))
    if found is None:
        return None
    X = arrays[found]
    if sparse.issparse(X):  # MATLAB stores sparse matrices by column
        with parser_errors(f"the sparse matrix {found!r} is damaged", name):
            return _checked_csr(X, name)
    return np.asanyarray(X)


def _scipy_matrix(arrays: Mapping[str, Any], name: str) -> sparse.csr_matrix:
    """Return what ``scipy.sparse.save_npz`` wrote."""
    with parser_errors("the parts of the sparse matrix do not fit together", name):
        stored = arrays["format"].item()
        kind = stored.decode("ascii") if isinstance(stored, bytes) else str(stored)
        if kind not in _SCIPY_PARTS:
            raise ValueError(f"its format is {kind!r}: save it as CSR")
        first, second, third = (arrays[part] for part in _SCIPY_PARTS[kind])
        shape = _shape(arrays["shape"])
        if kind == "coo":
            return _checked_csr(sparse.coo_matrix((first, (second, third)), shape=shape), name)
        make = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        return _checked_csr(make((first, second, third), shape=shape), name)


def _shape(values: Any) -> tuple[int, int]:
    rows, columns = (int(value) for value in np.asarray(values).ravel())
    return rows, columns


def _checked_csr(X: Any, name: str) -> sparse.csr_matrix:
    """Return a sparse matrix as CSR, its indices checked before anything follows them."""
    if X.format in ("csr", "csc"):
        check_sparse(X)  # the constructor of "coo" has checked its indices
    if X.format != "csr":
        check_read_size(8 * (X.shape[0] + 1), os.path.getsize(name), name, "the matrix")
    X = sparse.csr_matrix(X.tocsr())
    if not X.has_canonical_format:
        X = X.copy()  # a memory map cannot be put in order
        X.sum_duplicates()
    return X


def _texts(arrays: Mapping[str, Any], keys: tuple[str, ...], name: str) -> tuple[str, ...] | None:
    """Return an array of names, if there is one."""
    key = _present(arrays, keys)
    if key is None:
        return None
    what = f"the names {key!r}"
    stored = np.asarray(arrays[key]).ravel()
    if stored.dtype.kind in "SU":
        return tuple(text_array(stored, name, what).tolist())
    # A MATLAB cell array is an array of objects, each an array with one string.
    return tuple(_text(np.asarray(cell).ravel()[:1], what, name) for cell in stored)


def _text(cell: np.ndarray, what: str, name: str) -> str:
    if not cell.size:
        return ""
    if cell.dtype.kind in "SU":
        return str(text_array(cell, name, what)[0])
    if cell.dtype.kind not in "biuf":
        raise DataError(f"{what} are not text", path=name)
    return str(cell[0])


def _as_type(X: Any, dtype: Any) -> Any:
    return X if dtype is None else X.astype(dtype, copy=False)
