"""Damaged data files: read whole, or refused with a DataError that names them."""

from __future__ import annotations

import gzip
import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.io
from scipy import sparse

from shortlist.datasets import read_splits
from shortlist.errors import DataError

from .mutations import mutate

N, D = 12, 5
_X = np.random.default_rng(0).normal(size=(N, D)).round(3)
_Y = np.arange(N) % 3
_SPARSE = sparse.csr_matrix(np.where(np.abs(_X) > 0.7, _X, 0))
_NAMES = np.array(["ant", "bee", "cat"])

# Where every byte of the arrays is under a checksum, what is read is what was written.
_UNDER_CHECKSUMS = ("npz", "npz compressed")

Make = Callable[[random.Random], bytes]


def _damaged(content: bytes) -> Make:
    return lambda rng: mutate(content, rng)


def _bytes_of(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _npy(array: np.ndarray) -> bytes:
    return _bytes_of(lambda file: np.save(file, array))


def _members(arrays: dict[str, np.ndarray]) -> Make:
    """Return what damages a member before it is put into an archive whose checksums are right."""
    stored = {f"{name}.npy": _npy(array) for name, array in arrays.items()}

    def make(rng: random.Random) -> bytes:
        damaged = rng.choice(sorted(stored))
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, content in stored.items():
                archive.writestr(name, mutate(content, rng) if name == damaged else content)
        return file.getvalue()

    return make


def _csv() -> bytes:
    lines = [",".join([*map(str, row), str(y)]) for row, y in zip(_X, _Y, strict=True)]
    return "\n".join(["a,b,c,d,e,label", *lines]).encode()


def _libsvm() -> bytes:
    rows = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in _X]
    return "\n".join(f"{y} {row}" for y, row in zip(_Y, rows, strict=True)).encode()


def _multilabel() -> bytes:
    return _libsvm().replace(b"1 1:", b"1,2 1:")


def _formats() -> dict[str, tuple[str, Make]]:
    """Every kind of file: its suffix, and what makes a damaged one."""
    plain = {"X": _X, "y": _Y, "target_names": _NAMES}
    csr = {
        "X_data": _SPARSE.data,
        "X_indices": _SPARSE.indices,
        "X_indptr": _SPARSE.indptr,
        "X_shape": np.array(_SPARSE.shape),
        "y": _Y,
    }
    csc = _SPARSE.tocsc()
    scipy_parts = {
        "format": np.array(b"csc"),
        "shape": np.array(csc.shape),
        "data": csc.data,
        "indices": csc.indices,
        "indptr": csc.indptr,
        "y": _Y,
    }
    mat = {"X": _X, "y": _Y, "classnames": _NAMES.astype(object)}
    sparse_mat = {"X": csc, "y": _Y}
    formats = {
        "npy": (".npy", _damaged(_npy(np.column_stack([_X, _Y])))),
        "npz": (".npz", _damaged(_bytes_of(lambda file: np.savez(file, **plain)))),
        "npz compressed": (
            ".npz",
            _damaged(_bytes_of(lambda file: np.savez_compressed(file, **plain))),
        ),
        "npz members": (".npz", _members(plain)),
        "npz text labels": (".npz", _members({"X": _X, "y": _NAMES[_Y]})),
        "npz CSR": (".npz", _members(csr)),
        "npz scipy": (".npz", _members(scipy_parts)),
        "mat": (".mat", _damaged(_bytes_of(lambda file: scipy.io.savemat(file, mat)))),
        "mat compressed": (
            ".mat",
            _damaged(_bytes_of(lambda f: scipy.io.savemat(f, mat, do_compression=True))),
        ),
        "mat sparse": (
            ".mat",
            _damaged(_bytes_of(lambda file: scipy.io.savemat(file, sparse_mat))),
        ),
        "mat version 4": (
            ".mat",
            _damaged(_bytes_of(lambda f: scipy.io.savemat(f, sparse_mat, format="4"))),
        ),
        "csv": (".csv", _damaged(_csv())),
        "csv.gz": (".csv.gz", _damaged(gzip.compress(_csv(), mtime=0))),
        "libsvm": (".svm", _damaged(_libsvm())),
        "libsvm.gz": (".svm.gz", _damaged(gzip.compress(_libsvm(), mtime=0))),
        "libsvm several labels": (".svm", _damaged(_multilabel())),
    }
    return {**formats, **_arrow_formats()}


def _arrow_formats() -> dict[str, tuple[str, Make]]:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        return {}
    table = pyarrow.table(
        {
            "a": _X[:, 0],
            "b": pyarrow.array(_X[:, 1:].tolist(), pyarrow.list_(pyarrow.float32())),
            "label": _NAMES[_Y],
        }
    )

    def arrow(file: io.BytesIO) -> None:
        with pyarrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)

    return {
        "parquet": (".parquet", _damaged(_bytes_of(lambda f: parquet.write_table(table, f)))),
        "arrow stream": (".arrow", _damaged(_bytes_of(arrow))),
        "feather": (".feather", _damaged(_bytes_of(lambda f: feather.write_feather(table, f)))),
    }


class Readers:
    """Cases by number: every format in turn, damaged by the seed and the number."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self._folder = seed, folder
        self._formats = _formats()

    def run(self, number: int) -> tuple[str, str]:
        """Run a case; returns its kind, and "" for data, "refused", or what is wrong."""
        kinds = sorted(self._formats)
        kind = kinds[number % len(kinds)]
        suffix, make = self._formats[kind]
        path = self._folder / f"case{suffix}"
        path.write_bytes(make(random.Random(f"{self._seed} {number}")))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options = {"label": -1} if kind == "npy" else {}
                parts = read_splits(path, **options)
                for data in parts.values():
                    _check(data)
                if kind in _UNDER_CHECKSUMS:
                    np.testing.assert_array_equal(parts["all"].X, _X)
                    np.testing.assert_array_equal(parts["all"].y, _Y)
        except DataError as error:
            message = str(error)
            named = message.startswith(str(path))
            return kind, "refused" if named and "\n" not in message else f"says {message!r}"
        except Exception as error:
            return kind, f"raises {type(error).__name__}: {str(error)[:200]}"
        return kind, ""


def _check(data: object) -> None:
    """Assert that what was read can be used: nothing a reader gives may fail later."""
    X, y = data.X, data.y  # type: ignore[attr-defined]
    assert X.ndim == 2
    assert min(X.shape) > 0
    if sparse.issparse(X):
        X.check_format(full_check=True)
    assert np.isfinite(X.sum(dtype=np.longdouble))
    assert y is not None
    if sparse.issparse(y):
        y.check_format(full_check=True)
        assert set(y.data.tolist()) <= {1}
    else:
        assert y.dtype == np.int64 or y.dtype.kind in "Ub"
        json.dumps(y.tolist()).encode()
    assert y.shape[0] == X.shape[0]
    json.dumps(data.reading.to_dict())  # type: ignore[attr-defined]
