"""Names of classes, from a file of their own or from the data file."""

import json

import numpy as np
import pytest
from scipy import sparse

from shortlist.datasets import read_class_names, read_dataset, read_splits
from shortlist.datasets.names import pair_names
from shortlist.errors import DataError


def test_one_name_a_line(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("pin_change\n Düne \n\n", encoding="utf-8")
    assert read_class_names(path) == ["pin_change", "Düne"]


def test_a_json_object(tmp_path):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"131": "pin_change", "2": "ü"}))
    assert read_class_names(path) == {"131": "pin_change", "2": "ü"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "holds no names"),
        (b"a\n\nb\n", "line 2: the name is empty"),
        (b"{", "is not a JSON object of names"),
        (b'{"1": 2}', "the name of '1' is 2, not text"),
        (b"ant\xff", "is not UTF-8 text"),
        (b"{" + b'"a":{' * 100_000, "is not a JSON object of names"),
    ],
)
def test_files_of_names_that_are_none(tmp_path, content, problem):
    path = tmp_path / "names"
    path.write_bytes(content)
    with pytest.raises(DataError, match=problem):
        read_class_names(path)


def test_names_are_put_to_labels(tmp_path):
    data = tmp_path / "a.csv"
    data.write_text("1,131\n2,7\n3,131\n")
    names = tmp_path / "names.txt"
    names.write_text("seven\npin_change\n")
    read = read_dataset(data, names=names)
    assert read.reading.class_names == ((7, "seven"), (131, "pin_change"))
    assert read.target_names == ("seven", "pin_change")
    names.write_text('{"131": "pin_change", "7": "seven", "9": "nine"}')
    pairs = read_dataset(data, names=names).reading.class_names
    assert dict(pairs) == {131: "pin_change", 7: "seven", "9": "nine"}
    names.write_text("only one\n")
    with pytest.raises(DataError, match=r"names\.txt: there are 1 names for 2 labels"):
        read_dataset(data, names=names)
    names.write_text('{"131": "pin_change"}')
    with pytest.raises(DataError, match=r"names\.txt: there is no name for label 7"):
        read_dataset(data, names=names)


@pytest.mark.parametrize(
    ("labels", "names", "first", "expected"),
    [
        ([0, 1, 2], "abc", 0, [(0, "a"), (1, "b"), (2, "c")]),
        ([5, 9], "ab", 0, [(5, "a"), (9, "b")]),
        ([0, 2], "abc", 0, [(0, "a"), (1, "b"), (2, "c")]),
        ([1, 3], "abc", 0, [(1, "a"), (2, "b"), (3, "c")]),  # 3 cannot count from 0
        ([1, 2], "abc", 1, [(1, "a"), (2, "b"), (3, "c")]),
        (["x", "y"], "ab", 0, [("x", "a"), ("y", "b")]),
    ],
)
def test_which_name_is_whose(labels, names, first, expected):
    assert pair_names(labels, list(names), first) == tuple(expected)


@pytest.mark.parametrize("labels", [[0, 7], [-1, 1], ["x", "y"], []])
def test_names_that_tell_nothing(labels):
    with pytest.raises(ValueError, match=r"there are 3 names for \d labels"):
        pair_names(labels, list("abc"))


def test_names_within_an_npz_are_kept_for_all_parts(tmp_path):
    path = tmp_path / "a.npz"
    X = np.ones((3, 2))
    arrays = {"X_train": X, "y_train": [0, 1, 2], "X_test": X, "y_test": [2, 2, 2]}
    np.savez(path, **arrays, target_names=np.array(["a", "b", "c"]))
    for part in read_splits(path).values():
        assert part.reading.class_names == ((0, "a"), (1, "b"), (2, "c"))
    np.savez(path, **arrays, target_names=np.array([10, 11, 12]))
    assert read_splits(path)["test"].reading.class_names == ((0, "10"), (1, "11"), (2, "12"))


def test_names_that_are_no_text(tmp_path):
    path = tmp_path / "a.npz"
    for names in (np.array([0x110000, 0x41], "u4").view("U1"), np.array([b"\xff", b"a"])):
        np.savez(path, X=np.ones((2, 2)), y=[0, 1], target_names=names)
        with pytest.raises(
            DataError, match=r"a\.npz: the names 'target_names' (hold some|are not)"
        ):
            read_dataset(path)
    np.savez(path, X=np.ones((2, 2)), y=[0, 1], target_names=np.array([1j, 2j]))
    with pytest.raises(DataError, match="the names 'target_names' are not text"):
        read_dataset(path)


def test_scipys_own_files(tmp_path):
    """scipy.sparse.save_npz has no labels: they come from a file of their own."""
    X = sparse.random(6, 5, density=0.4, format="csr", random_state=0)
    y = np.array([1, 0, 2, 1, 0, 2])
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "y.txt").write_text("ant\nbee\nant\n\nbee\nant\nbee\n")
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "X.npz", X.asformat(kind))
        data = read_dataset(tmp_path / "X.npz", labels=tmp_path / "y.npy")
        assert sparse.isspmatrix_csr(data.X)
        assert (data.X != X).nnz == 0
        assert data.y.tolist() == y.tolist()
        words = read_dataset(tmp_path / "X.npz", labels=tmp_path / "y.txt").y
        assert words.tolist() == ["ant", "bee", "ant", "bee", "ant", "bee"]
        assert read_dataset(tmp_path / "X.npz", label=None).y is None
    with pytest.raises(DataError, match=r"holds no labels 'y': give their file \(labels\)"):
        read_dataset(tmp_path / "X.npz")
    sparse.save_npz(tmp_path / "X.npz", X.tobsr())
    with pytest.raises(DataError, match="its format is 'bsr': save it as CSR"):
        read_dataset(tmp_path / "X.npz", label=None)
    np.save(tmp_path / "y.npy", y[:5])
    sparse.save_npz(tmp_path / "X.npz", X)
    with pytest.raises(DataError, match=r"y\.npy: has 6 examples but 5 labels"):
        read_dataset(tmp_path / "X.npz", labels=tmp_path / "y.npy")
