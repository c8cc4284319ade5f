"""NumPy and MATLAB files: layouts, memory maps, and errors that name file and row."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from shortlist.datasets import read_dataset, read_npy, read_splits
from shortlist.errors import DataError

X = np.random.default_rng(0).normal(size=(6, 4))
Y = np.array([3, 1, 2, 3, 1, 2])


def is_memory_map(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


@pytest.fixture
def npz(tmp_path):
    """Return a function that saves arrays, plainly or compressed, and returns the path."""

    def save(compressed=False, **arrays):
        path = tmp_path / "data.npz"
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
        return path

    return save


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "u1", "?", ">f8"])
def test_npz(npz, compressed, order, dtype):
    stored = np.asarray(X > 0 if dtype == "?" else np.abs(X) * 9, dtype=dtype, order=order)
    data = read_dataset(npz(compressed, X=stored, y=Y))
    np.testing.assert_array_equal(data.X, stored)
    assert data.X.dtype == stored.dtype
    assert data.y.tolist() == Y.tolist()
    assert is_memory_map(data.X) is not compressed


def test_npz_with_splits(npz):
    arrays = {"X_train": X, "y_train": Y, "X_val": X[:3], "y_val": Y[:3], "X_test": X[:2]}
    path = npz(**arrays, y_test=Y[:2], target_names=np.array(["a", "b", "c"]))
    parts = read_splits(path)
    assert {name: part.n_samples for name, part in parts.items()} == {
        "train": 6,
        "val": 3,
        "test": 2,
    }
    assert parts["test"].target_names == ("a", "b", "c")
    np.testing.assert_array_equal(read_dataset(path, split="val").X, X[:3])
    with pytest.raises(DataError, match="holds the parts train, val, test: say which one"):
        read_dataset(path)


def test_asking_for_a_part_that_is_not_there(npz):
    with pytest.raises(DataError, match="holds no part 'test', only all"):
        read_dataset(npz(X=X, y=Y), split="test")
    with pytest.raises(ValueError, match="split must be one of train, val, test"):
        read_dataset(npz(X=X, y=Y), split="dev")


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_with_csr_parts(npz, compressed):
    matrix = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    parts = {
        "X_data": matrix.data,
        "X_indices": matrix.indices,
        "X_indptr": matrix.indptr,
        "X_shape": np.array(matrix.shape),
    }
    data = read_dataset(npz(compressed, **parts, y=Y))
    assert sparse.issparse(data.X)
    assert (matrix != data.X).nnz == 0
    with pytest.raises(DataError, match="the CSR parts of 'X' do not fit together"):
        read_dataset(npz(**{**parts, "X_indices": matrix.indices + 9}, y=Y))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_csr_parts_with_an_entry_twice_and_either_byte_order(npz, compressed, order):
    path = npz(
        compressed,
        X_data=np.array([1.0, 2.0, 4.0, 8.0], f"{order}f8"),
        X_indices=np.array([1, 0, 1, 1], f"{order}i4"),
        X_indptr=np.array([0, 3, 4]),
        X_shape=np.array([2, 2]),
        y=[0, 1],
    )
    X = read_dataset(path).X
    assert X.sum() == 15
    assert X.toarray().tolist() == [[2, 5], [0, 8]]
    assert X.has_canonical_format


@pytest.mark.parametrize("indptr", [[0, 4, 0], [0, 0, 4, 1]])
def test_pointers_that_decrease(npz, indptr):
    rows = len(indptr) - 1
    path = npz(
        X_data=np.ones(4),
        X_indices=np.array([0, 1, 0, 1]),
        X_indptr=np.array(indptr),
        X_shape=np.array([rows, 2]),
        y=np.arange(rows),
    )
    with pytest.raises(DataError, match="the CSR parts of 'X' do not fit together"):
        read_dataset(path)


def test_npz_of_text_labels_and_unlabelled_data(npz):
    words = np.array(["x", "y", "z", "x", "y", "z"])
    assert read_dataset(npz(X=X, y=words)).y.tolist() == words.tolist()
    assert read_dataset(npz(X=X, y=words.astype("S"))).y.tolist() == words.tolist()
    assert read_dataset(npz(X=X), label=None).y is None
    with pytest.raises(DataError, match="holds no labels 'y'"):
        read_dataset(npz(X=X))


def test_npz_never_unpickles(npz):
    with pytest.raises(DataError, match=r"array 'y' cannot be read \(.*[Oo]bject"):
        read_dataset(npz(X=X, y=np.array([{"a": 1}] * 6, dtype=object)))
    with pytest.raises(DataError, match=r"array 'X' cannot be read \(.*[Oo]bject"):
        read_dataset(npz(True, X=np.array([[None]]), y=Y[:1]))


BAD_ARRAYS = [
    ({"X": X, "y": Y[:5]}, "has 6 examples but 5 labels"),
    ({"X": X[0], "y": Y}, r"the features have shape \(4,\), not two dimensions"),
    ({"X": X.astype(str), "y": Y}, "the features are of type <U32, not numbers"),
    ({"X": X[:0], "y": Y[:0]}, "holds no examples"),
    ({"X": np.where(X[4, 2] == X, np.nan, X), "y": Y}, "row 5: feature 2 is nan"),
    ({"X": np.where(X[3, 0] == X, np.inf, X), "y": Y}, "row 4: feature 0 is inf"),
    ({"X": X, "y": Y + np.array([0, 0, 0.5, 0, 0, 0])}, "row 3: label 2.5 is not an integer"),
    ({"X": X, "y": np.where(Y == 3, np.nan, Y)}, "row 1: label nan is not an integer"),
    ({"X": X, "y": np.eye(6)}, r"the labels have shape \(6, 6\), not one dimension"),
    ({"X": X, "y": Y + 1j}, "labels of type complex128 are neither numbers nor text"),
    ({"A": X, "B": Y}, r"holds neither 'X' nor 'X_train' \(it holds A, B\)"),
]


@pytest.mark.parametrize(("arrays", "problem"), BAD_ARRAYS)
def test_bad_arrays(npz, arrays, problem):
    path = npz(**arrays)
    with pytest.raises(DataError, match=problem) as caught:
        read_dataset(path)
    assert str(caught.value).startswith(str(path))


def test_nan_far_into_a_large_array(npz, monkeypatch):
    monkeypatch.setattr("shortlist.datasets.checks._CHUNK_VALUES", 8)
    bad = X.copy()
    bad[5, 1] = np.nan
    with pytest.raises(DataError, match="row 6: feature 1 is nan"):
        read_dataset(npz(X=bad, y=Y))


def test_nan_in_a_sparse_matrix(npz):
    matrix = sparse.csr_matrix([[0, 1.0], [0, 0], [np.nan, 2]])
    parts = {"X_data": matrix.data, "X_indices": matrix.indices, "X_indptr": matrix.indptr}
    with pytest.raises(DataError, match="row 3: feature 0 is nan"):
        read_dataset(npz(**parts, X_shape=np.array(matrix.shape), y=Y[:3]))


def test_expected_number_of_features(npz):
    assert read_dataset(npz(X=X, y=Y), n_features=4).n_features == 4
    with pytest.raises(DataError, match="has 4 features where 5 are expected"):
        read_dataset(npz(X=X, y=Y), n_features=5)


def test_whole_float_labels_and_columns_of_labels(npz):
    y = read_dataset(npz(X=X, y=Y.astype(float)[:, None])).y
    assert y.dtype == np.int64
    assert y.tolist() == Y.tolist()


def test_other_type_on_request(npz):
    assert read_dataset(npz(X=X, y=Y), dtype=np.float32).X.dtype == np.float32


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_cut_short(npz, compressed):
    path = npz(compressed, X=X, y=Y)
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"is not a complete \.npz archive"):
            read_dataset(path)


def test_npz_with_a_damaged_compressed_member(npz):
    path = npz(True, X=np.tile(X, (100, 1)), y=np.tile(Y, 100))
    whole = bytearray(path.read_bytes())
    whole[200:230] = bytes(30)
    path.write_bytes(whole)
    with pytest.raises(DataError):
        read_dataset(path)


def test_npy_is_memory_mapped(tmp_path):
    path, labels = tmp_path / "X.npy", tmp_path / "y.npy"
    np.save(path, X)
    np.save(labels, Y)
    data = read_dataset(path, labels=labels)
    np.testing.assert_array_equal(data.X, X)
    assert is_memory_map(data.X)
    assert data.y.tolist() == Y.tolist()
    assert read_dataset(path, label=None).y is None


@pytest.mark.parametrize("column", [0, 2, 4, -1, -5])
def test_npy_with_a_column_of_labels(tmp_path, column):
    path = tmp_path / "data.npy"
    place = column % 5
    np.save(path, np.insert(X, place, Y, axis=1))
    data = read_dataset(path, label=column)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == Y.tolist()


def test_npy_errors(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, X)
    with pytest.raises(DataError, match="holds one array: give the labels' file"):
        read_dataset(path)
    with pytest.raises(DataError, match="has no column 9, only 0 to 3"):
        read_npy(path, label=9)
    whole = path.read_bytes()
    for size in (0, 20, len(whole) - 8):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"data\.npy: is not a complete \.npy file"):
            read_dataset(path, label=None)
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"is not a complete \.npy file"):
        read_dataset(path, label=None)


@pytest.fixture
def silhouettes(tmp_path):
    """Return a small file in the layout of caltech101_silhouettes_28_split1.mat."""
    rng = np.random.default_rng(0)
    names = np.empty((1, 3), dtype=object)
    names[0] = ["Faces 2", "accordion", "yin yang"]
    contents = {"classnames": names}
    for split, n in (("train", 9), ("val", 4), ("test", 5)):
        contents[f"{split}_data"] = rng.integers(0, 2, size=(n, 784)).astype(np.uint8)
        contents[f"{split}_labels"] = rng.integers(1, 4, size=(n, 1)).astype(np.uint8)
    path = tmp_path / "caltech101_silhouettes_28_split1.mat"
    savemat(path, contents, do_compression=True)
    return path, contents


def test_mat_of_caltech_silhouettes(silhouettes):
    path, contents = silhouettes
    parts = read_splits(path)
    assert list(parts) == ["train", "val", "test"]
    for split, part in parts.items():
        np.testing.assert_array_equal(part.X, contents[f"{split}_data"])
        assert part.y.tolist() == contents[f"{split}_labels"].ravel().tolist()
        assert part.y.dtype == np.int64
        assert part.target_names == ("Faces 2", "accordion", "yin yang")


def test_mat_with_a_sparse_matrix(tmp_path):
    path = tmp_path / "data.mat"
    matrix = sparse.csc_matrix(np.where(X > 0, X, 0))
    savemat(path, {"X": matrix, "y": Y})
    data = read_dataset(path)
    assert sparse.isspmatrix_csr(data.X)
    assert (matrix != data.X).nnz == 0


@pytest.mark.parametrize(("features", "labels"), [("X", "Y"), ("fea", "gnd"), ("x", "y")])
def test_other_names_of_features_and_labels(tmp_path, features, labels):
    savemat(tmp_path / "a.mat", {features: np.eye(3), labels: [[1], [2], [2]]})
    data = read_dataset(tmp_path / "a.mat")
    np.testing.assert_array_equal(data.X, np.eye(3))
    assert data.y.tolist() == [1, 2, 2]


def test_mat_errors(silhouettes, tmp_path):
    path, _ = silhouettes
    whole = path.read_bytes()
    for content in (b"", b"not a MATLAB file" * 20, whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"split1\.mat: ") as caught:
            read_splits(path)
        assert "\n" not in str(caught.value)
    # The first bytes of a version 7.3 file, which is HDF5 behind a text header.
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(header + bytes(400))
    with pytest.raises(DataError, match=r"is a MATLAB 7\.3"):
        read_splits(path)
