"""Training, validation and test examples from one file, from two, and from a folder."""

import numpy as np
import pytest

from shortlist.datasets import DataError, read_parts

X = np.arange(80.0).reshape(20, 4)
Y = np.arange(20) % 2


def write(folder, split, rows):
    np.save(folder / f"{split}.npy", X[rows])
    np.save(folder / f"{split}.labels.npy", Y[rows])


def test_one_unnamed_set_is_halved_class_by_class(tmp_path):
    np.savez(tmp_path / "all.npz", X=X, y=Y)
    splits = read_parts(tmp_path / "all.npz", random_state=0)
    assert splits.val is None
    for part in (splits.train, splits.test):
        assert np.bincount(part.y).tolist() == [5, 5]
    both = np.concatenate([splits.X_train, splits.X_test])
    assert (both[np.argsort(both[:, 0])] == X).all()
    again = read_parts(tmp_path / "all.npz", random_state=0)
    assert (again.X_train == splits.X_train).all()


def test_test_examples_of_another_file(tmp_path):
    np.savez(tmp_path / "one.npz", X=X[:12], y=Y[:12])
    np.savez(tmp_path / "two.npz", X=X[12:], y=Y[12:])
    splits = read_parts(tmp_path / "one.npz", tmp_path / "two.npz")
    assert (splits.X_train == X[:12]).all()
    assert (splits.X_test == X[12:]).all()


def test_a_folder_has_a_file_for_each_part(tmp_path):
    write(tmp_path, "train", slice(0, 10))
    with pytest.raises(DataError, match="holds no part 'test', only train"):
        read_parts(tmp_path)
    write(tmp_path, "test", slice(10, 20))
    splits = read_parts(tmp_path, scale="l2")
    assert np.linalg.norm(splits.X_test, axis=1) == pytest.approx(1)
    assert (splits.y_test == Y[10:]).all()
    (tmp_path / "test.labels.npy").unlink()
    with pytest.raises(DataError, match=r"test\.npy: holds no labels: put them into test"):
        read_parts(tmp_path)
