"""NumPy and MATLAB files: .npy, .npz and .mat.

Two layouts are understood: one set (``X`` and ``y``), and splits (``X_train``, ``y_train``,
``X_val``, ... , or the ``train_data``, ``train_labels``, ... of Caltech 101 Silhouettes). A sparse
matrix is stored as its CSR parts, ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``. Nothing
in these files is ever run: pickled objects are refused.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from .checks import check_features, check_labels
from .containers import SPLIT_NAMES, LabeledData
from .errors import DataError
from .files import check_readable, plain_errors

_FEATURES = ("X", "data", "features")
_LABELS = ("y", "target", "labels")
_CLASS_NAMES = ("target_names", "classnames", "class_names")
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def read_npy(
    path: str | os.PathLike[str],
    *,
    label: int | str | None = "auto",
    labels: str | os.PathLike[str] | None = None,
    n_features: int | None = None,
    dtype: Any = None,
) -> dict[str, LabeledData]:
    """Read a matrix from a .npy file, memory-mapped, as the one part "all".

    Parameters
    ----------
    path : path-like
    label : int or None
        The column that holds the labels (negative counts from the end); None: there are no labels.
    labels : path-like or None
        A second .npy file that holds the labels.
    n_features : int or None
        Number of features the file must have.
    dtype : dtype or None
        Type of the features; None keeps the file's, and the memory map.
    """
    name = check_readable(path)
    X = _load_npy(name)
    y = None
    if labels is not None:
        y = _load_npy(check_readable(labels))
    elif isinstance(label, int) and X.ndim == 2:
        if not -X.shape[1] <= label < X.shape[1]:
            raise DataError(f"has no column {label}, only {X.shape[1]} columns", path=name)
        column = label % X.shape[1]
        y = X[:, column]
        # A view where it can be one: cutting a middle column needs a copy.
        if column == X.shape[1] - 1:
            X = X[:, :-1]
        elif column == 0:
            X = X[:, 1:]
        else:
            X = np.delete(X, column, axis=1)
    elif label is not None:
        raise DataError(
            "holds one array: give the labels' file (labels=), "
            "the labels' column number (label=), or label=None for data without labels",
            path=name,
        )
    X = check_features(X, name, n_features)
    if y is not None:
        y = check_labels(y, X.shape[0], name if labels is None else os.fspath(labels))
    return {"all": LabeledData(_as_type(X, dtype), y, source=name)}


def read_npz(
    path: str | os.PathLike[str],
    *,
    label: str | None = "auto",
    n_features: int | None = None,
    dtype: Any = None,
) -> dict[str, LabeledData]:
    """Read every part of an .npz file, by name: "all", or some of "train", "val", "test".

    Arrays of files written without compression are memory-mapped. ``label=None`` leaves the
    labels aside, present or not.
    """
    name = check_readable(path)
    try:
        with plain_errors(name), zipfile.ZipFile(name) as archive:
            members = {m.removesuffix(".npy"): m for m in archive.namelist() if m.endswith(".npy")}
            arrays = _LazyArrays(members, lambda m: _load_member(archive, name, m))
            return _parts(arrays, name, label, n_features, dtype)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise DataError(f"is not a complete .npz archive ({error})", path=name) from None


def read_mat(
    path: str | os.PathLike[str],
    *,
    label: str | None = "auto",
    n_features: int | None = None,
    dtype: Any = None,
) -> dict[str, LabeledData]:
    """Read every part of a MATLAB file (up to version 7.2), by name, as :func:`read_npz` does.

    This is the format of Caltech 101 Silhouettes (``caltech101_silhouettes_28_split1.mat``).
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    name = check_readable(path)
    try:
        with plain_errors(name):
            stored = loadmat(name)
    except NotImplementedError:
        message = "is a MATLAB 7.3 (HDF5) file: save it with '-v7' to read it here"
        raise DataError(message, path=name) from None
    except DataError:
        raise
    except (MatReadError, ValueError, TypeError, KeyError, IndexError) as error:
        raise DataError(f"is not a complete MATLAB file ({error})", path=name) from None
    arrays = {key: value for key, value in stored.items() if not key.startswith("__")}
    return _parts(arrays, name, label, n_features, dtype)


class _LazyArrays(Mapping[str, Any]):
    """An archive's arrays by name, each read when it is asked for."""

    def __init__(self, members: dict[str, str], load: Callable[[str], Any]) -> None:
        self._members, self._load = members, load

    def __getitem__(self, key: str) -> Any:
        return self._load(self._members[key])

    def __iter__(self):
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def _load_npy(name: str) -> np.ndarray:
    with plain_errors(name):
        try:
            return np.load(name, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise DataError(f"is not a complete .npy file ({error})", path=name) from None


def _load_member(archive: zipfile.ZipFile, name: str, member: str) -> np.ndarray:
    """Return one array of an .npz file: a memory map if it is stored as it is, else a copy."""
    info = archive.getinfo(member)
    try:
        with archive.open(info) as file:
            if info.compress_type != zipfile.ZIP_STORED:
                return np.lib.format.read_array(file, allow_pickle=False)
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(file)
            header_size = file.tell()
        if dtype.hasobject:
            raise ValueError("holds Python objects")
        if 0 in shape or not shape:
            with archive.open(info) as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        start = _member_start(name, info) + header_size
        stored = np.memmap(name, dtype=dtype, mode="r", offset=start, shape=math.prod(shape))
        return stored.reshape(shape, order="F" if fortran else "C")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        message = f"array {member.removesuffix('.npy')!r} cannot be read ({error})"
        raise DataError(message, path=name) from None


def _member_start(name: str, info: zipfile.ZipInfo) -> int:
    """Return where a member's bytes begin: its local header has a name and an extra field."""
    with open(name, "rb") as file:
        file.seek(info.header_offset)
        header = file.read(30)
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    return info.header_offset + 30 + name_length + extra_length


def _parts(
    arrays: Mapping[str, Any],
    name: str,
    label: str | None,
    n_features: int | None,
    dtype: Any,
) -> dict[str, LabeledData]:
    if label not in ("auto", None):
        raise ValueError(f'label must be "auto" or None for .npz and .mat files, got {label!r}')
    class_names = _class_names(arrays)
    parts: dict[str, LabeledData] = {}
    for split in ("all", *SPLIT_NAMES):
        X = _features_of(arrays, split, name)
        if X is None:
            continue
        X = check_features(X, name, n_features)
        y_key = _present(arrays, _keys(_LABELS, split))
        y = None
        if label is not None:
            if y_key is None:
                wanted = _keys(_LABELS, split)[0]
                message = f"holds no labels {wanted!r} (label=None reads data without labels)"
                raise DataError(message, path=name)
            y = check_labels(arrays[y_key], X.shape[0], name)
        parts[split] = LabeledData(
            _as_type(X, dtype), y, target_names=class_names, source=name, feature_names=None
        )
        if split == "all":
            break
    if not parts:
        held = ", ".join(sorted(arrays)[:12]) or "nothing"
        raise DataError(f"holds neither 'X' nor 'X_train' (it holds {held})", path=name)
    return parts


def _keys(bases: tuple[str, ...], split: str) -> list[str]:
    if split == "all":
        return list(bases)
    return [f"{base}_{split}" for base in bases] + [f"{split}_{base}" for base in bases]


def _present(arrays: Mapping[str, Any], keys: list[str] | tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def _features_of(arrays: Mapping[str, Any], split: str, name: str) -> Any:
    # CSR parts come first: "X_train_data" must not be taken for something else's features.
    for key in _keys(_FEATURES, split):
        if all(f"{key}_{part}" in arrays for part in _CSR_PARTS):
            data, indices, indptr, shape = (arrays[f"{key}_{part}"] for part in _CSR_PARTS)
            try:
                X = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape))
                X.check_format(full_check=True)
            except (ValueError, TypeError, IndexError) as error:
                message = f"the CSR parts of {key!r} do not fit together ({error})"
                raise DataError(message, path=name) from None
            return X
    found = _present(arrays, _keys(_FEATURES, split))
    if found is None:
        return None
    X = arrays[found]
    if sparse.issparse(X):  # MATLAB stores sparse matrices by column
        return X.tocsr()
    return np.asanyarray(X)


def _class_names(arrays: Mapping[str, Any]) -> tuple[str, ...] | None:
    key = _present(arrays, _CLASS_NAMES)
    if key is None:
        return None
    # A MATLAB cell array is an array of objects, each an array with one string.
    cells = np.asarray(arrays[key]).ravel()
    return tuple(str(np.asarray(cell).ravel()[0]) if np.size(cell) else "" for cell in cells)


def _as_type(X: Any, dtype: Any) -> Any:
    return X if dtype is None else X.astype(dtype, copy=False)
