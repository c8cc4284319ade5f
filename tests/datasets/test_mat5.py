"""MATLAB's files: the same as scipy reads, and nothing that a damaged file could break."""

import io
import struct

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from shortlist.datasets import read_dataset
from shortlist.datasets.mat import read_mat5
from shortlist.errors import DataError

X = np.random.default_rng(0).normal(size=(7, 4))
Y = np.arange(7) % 3


def saved(variables, **options):
    file = io.BytesIO()
    savemat(file, variables, **options)
    return file.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "bool"]
)
def test_numbers_are_those_scipy_reads(compressed, dtype):
    values = (np.abs(X) * 30).astype(dtype)
    content = saved({"X": values, "other": values[:1]}, do_compression=compressed)
    found, held = read_mat5(content, ["X"], "file")
    np.testing.assert_array_equal(found["X"], loadmat(io.BytesIO(content))["X"])
    assert found["X"].shape == values.shape
    assert held == ["X", "other"]


@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_matrices_text_and_cells(compressed):
    matrix = sparse.csc_matrix(np.where(X > 0, X, 0))
    names = np.empty((1, 3), dtype=object)
    names[0] = ["ant", "", "Düne 猫"]
    content = saved(
        {"X": matrix, "names": names, "word": "hello", "words": ["ab", "cde"]},
        do_compression=compressed,
    )
    found, _ = read_mat5(content, ["X", "names", "word", "words"], "file")
    assert (found["X"] != matrix).nnz == 0
    assert [str(cell.ravel()[0]) if cell.size else "" for cell in found["names"].ravel()] == [
        "ant",
        "",
        "Düne 猫",
    ]
    assert found["word"].tolist() == ["hello"]
    assert found["words"].tolist() == ["ab", "cde"]


def test_what_is_not_asked_for_is_not_looked_at():
    content = saved({"X": X, "s": {"a": 1}, "deep": X.reshape(7, 2, 2)})
    found, held = read_mat5(content, ["X"], "file")
    assert list(found) == ["X"]
    assert held == ["X", "s", "deep"]


def test_big_endian_files():
    """Written by hand: no writer of such files is at hand."""

    def element(kind, content):
        return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)

    flags = element(6, struct.pack(">II", 6, 0))
    sizes = element(5, struct.pack(">ii", 2, 2))
    values = element(9, struct.pack(">4d", 1, 3, 2, 4))
    variable = element(14, flags + sizes + element(1, b"X") + values)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    found, _ = read_mat5(header + variable, ["X"], "file")
    assert found["X"].tolist() == [[1, 2], [3, 4]]


def test_a_wrong_row_number_is_an_error_and_no_crash(tmp_path):
    matrix = sparse.csc_matrix(np.where(X > 0, X, 0))
    content = saved({"X": matrix, "y": Y})
    rows = matrix.indices.astype("<i4").tobytes()
    path = tmp_path / "a.mat"
    path.write_bytes(content.replace(rows, b"\xff\xff\xff\x7f" + rows[4:]))
    with pytest.raises(DataError, match=r"a\.mat: the sparse matrix 'X' is damaged"):
        read_dataset(path)


def test_sizes_that_lie(tmp_path):
    content = saved({"X": X, "y": Y})
    path = tmp_path / "a.mat"
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"a\.mat: "):
            read_dataset(path)
    shape = struct.pack("<ii", *X.shape)
    path.write_bytes(content.replace(shape, struct.pack("<ii", 2**30, 2**30), 1))
    with pytest.raises(DataError, match="28 values do not make"):
        read_dataset(path)


def test_complex_numbers_are_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"X": X + 1j, "y": Y})
    with pytest.raises(DataError, match="holds complex numbers"):
        read_dataset(path)


@pytest.mark.parametrize("variables", [{"X": X, "y": Y}, {"X": sparse.csc_matrix(X), "y": Y}])
def test_version_4(tmp_path, variables):
    path = tmp_path / "a.mat"
    savemat(path, variables, format="4")
    data = read_dataset(path)
    np.testing.assert_allclose(sparse.csr_matrix(data.X).toarray(), X)
    assert data.y.tolist() == Y.tolist()
