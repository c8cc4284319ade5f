"""Folders and lists of files, read as one data set."""

import numpy as np
import pytest
from scipy import sparse

from shortlist.datasets import read_dataset, read_splits
from shortlist.datasets.read import data_format
from shortlist.errors import DataError

X = np.arange(24.0).reshape(8, 3)
Y = np.arange(8) % 3


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "shards"
    path.mkdir()
    return path


def halves():
    return [("1", slice(0, 3)), ("2", slice(3, 8))]


def test_npz(folder):
    for name, rows in halves():
        np.savez(folder / f"{name}.npz", X=X[rows], y=Y[rows], target_names=np.array(list("abc")))
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").touch()
    data = read_dataset(folder)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == Y.tolist()
    assert data.source == str(folder)
    assert data.reading.class_names == ((0, "a"), (1, "b"), (2, "c"))
    backwards = read_dataset([folder / "2.npz", folder / "1.npz"])
    np.testing.assert_array_equal(backwards.X, np.concatenate([X[3:], X[:3]]))


def test_npz_with_splits(folder):
    for name, rows in halves():
        arrays = {"X_train": X[rows], "y_train": Y[rows], "X_test": X[rows], "y_test": Y[rows]}
        np.savez(folder / f"{name}.npz", **arrays)
    parts = read_splits(folder)
    assert {split: part.n_samples for split, part in parts.items()} == {"train": 8, "test": 8}


@pytest.mark.parametrize("as_text", [False, True])
def test_npy_with_labels_in_files_of_their_own(folder, tmp_path, as_text):
    labels = tmp_path / "labels"
    labels.mkdir()
    for name, rows in halves():
        np.save(folder / f"{name}.npy", X[rows])
        if as_text:
            np.savetxt(labels / f"{name}.txt", Y[rows], fmt="%d")
        else:
            np.save(labels / f"{name}.npy", Y[rows])
    np.save(tmp_path / "all.npy", Y)
    files = sorted(labels.iterdir())
    for given in (labels, files, tmp_path / "all.npy"):
        data = read_dataset(folder, labels=given)
        np.testing.assert_array_equal(data.X, X)
        assert data.y.tolist() == Y.tolist()
    with pytest.raises(DataError, match="there are 6 labels in 2 files for 8 examples"):
        read_dataset(folder, labels=[files[0], files[0]])


def test_parquet_by_name(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, rows in halves():
        columns = {"a": X[rows, 0], "b": X[rows, 1], "y": Y[rows]}
        order = list(columns) if name == "1" else ["y", "b", "a"]
        parquet.write_table(pa.table({c: columns[c] for c in order}), folder / f"{name}.parquet")
    data = read_dataset(folder)
    np.testing.assert_array_equal(data.X, X[:, :2])
    assert data.y.tolist() == Y.tolist()


def test_libsvm_of_different_widths_and_one_base(folder):
    (folder / "1.svm").write_text("0 1:1\n1 2:2\n")
    (folder / "2.svm").write_text("1 0:3 4:5\n")
    data = read_dataset(folder, dense=True)
    assert data.X.tolist() == [[0, 1, 0, 0, 0], [0, 0, 2, 0, 0], [3, 0, 0, 0, 5]]
    assert data.reading.index_base == 0
    assert data.reading.n_features == 5
    assert data.zero_based
    assert sparse.issparse(read_dataset(folder, dense=False).X)


def test_libsvm_with_several_labels(folder):
    (folder / "1.svm").write_text("1,5 1:1\n")
    (folder / "2.svm").write_text("3 1:1\n5 1:2\n")
    data = read_dataset(folder)
    assert data.reading.classes == (1, 3, 5)
    assert data.y.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]


def test_tables_with_names_and_weights(folder):
    for i in range(2):
        (folder / f"{i}.csv").write_text(f"id,a,w,y\nn{i},{i},2,1\nm{i},,1,0\n")
    options = {"id_column": "id", "weight_column": "w"}
    data = read_dataset(folder, missing="drop", **options)
    assert data.ids.tolist() == ["n0", "n1"]
    assert data.weight.tolist() == [2, 2]
    assert data.left_out == 2
    with pytest.raises(DataError, match="means of missing values are taken within one file only"):
        read_dataset(folder, missing="mean", **options)


def test_a_bad_shard_is_named(folder):
    np.savez(folder / "1.npz", X=X, y=Y)
    np.savez(folder / "2.npz", X=X[:, :2], y=Y)
    with pytest.raises(DataError, match=r"2\.npz: has 2 features where 3 are expected"):
        read_dataset(folder)
    np.savez(folder / "2.npz", X=X, y=np.array(list("abcabcab")))
    with pytest.raises(DataError, match=r"2\.npz: has text as labels where .*1\.npz has numbers"):
        read_dataset(folder)
    np.savez(folder / "2.npz", X_train=X, y_train=Y)
    with pytest.raises(DataError, match=r"2\.npz: holds train where .*1\.npz holds all"):
        read_dataset(folder)


def test_folders_that_are_no_data(folder):
    with pytest.raises(DataError, match="is a directory without data files"):
        read_dataset(folder)
    np.savez(folder / "1.npz", X=X, y=Y)
    (folder / "2.csv").write_text("1,2\n")
    with pytest.raises(DataError, match=r"is a directory of several formats \(1\.npz and 2\.csv\)"):
        read_dataset(folder)
    with pytest.raises(ValueError, match="the list of files is empty"):
        read_dataset([])


def test_the_format_of_a_folder(folder):
    np.savez(folder / "1.npz", X=X, y=Y)
    assert data_format(folder) == "npz"
