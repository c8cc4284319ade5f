"""The one door: formats by name, options passed on, and what importing costs."""

import subprocess
import sys

import numpy as np
import pytest

from shortlist import datasets
from shortlist.datasets import LabeledData, load_letter, read_dataset
from shortlist.datasets.read import FORMATS, data_format
from shortlist.errors import DataError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.svm", "libsvm"),
        ("letter.scale", "libsvm"),
        ("letter.scale.tr", "libsvm"),
        ("news20.t.scale.bz2", "libsvm"),
        ("-", "libsvm"),
        ("a.CSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.tsv.xz", "csv"),
        ("a.npy", "npy"),
        ("a.npz", "npz"),
        ("a.mat", "mat"),
        ("dir.csv/a.parquet", "parquet"),
    ],
)
def test_format_by_name(name, expected):
    assert data_format(name) == expected
    assert expected in FORMATS


def test_format_that_is_given(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1,2\n3,4\n")
    assert read_dataset(path, format="csv").y.tolist() == [2, 4]
    with pytest.raises(DataError, match=r"line 1: label '1,2' holds a comma.*format='csv'"):
        read_dataset(path)
    with pytest.raises(ValueError, match="format must be one of libsvm, csv"):
        read_dataset(path, format="xml")


def test_standard_input_is_text():
    with pytest.raises(DataError, match="standard input: npz cannot be read from standard input"):
        read_dataset("-", format="npz")


def test_label_of_libsvm_text(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2\n")
    assert read_dataset(path, label=None).y is None
    with pytest.raises(DataError, match="labels in front"):
        read_dataset(path, label="kind")


def test_unknown_options_are_type_errors(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2\n")
    with pytest.raises(TypeError, match="delimiter"):
        read_dataset(path, delimiter=";")


def test_data_unpacks_and_shows_itself():
    data = LabeledData(np.ones((3, 2)), np.array([1, 2, 1]), source="here")
    X, y = data
    assert X is data.X
    assert y is data.y
    assert repr(data) == "LabeledData(here: 3 x 2, 2 classes)"
    assert repr(LabeledData(np.ones((3, 2)), None)) == "LabeledData(in memory: 3 x 2, no labels)"


def test_splits_say_what_they_lack():
    letter = load_letter()
    assert letter.part("val") is letter.val
    without = datasets.DataSplits("mine", letter.train)
    with pytest.raises(AttributeError, match="mine has no 'test' part, only train"):
        _ = without.X_test
    assert not hasattr(without, "y_val")
    with pytest.raises(ValueError, match="split must be one of"):
        letter.part("dev")


def test_public_names_exist():
    for name in datasets.__all__:
        assert getattr(datasets, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'load_mnist'"):
        _ = datasets.load_mnist


def test_importing_is_light():
    code = (
        "import sys, shortlist.datasets\n"
        "heavy = ('numba', 'torch', 'pandas', 'pyarrow', 'matplotlib', 'rich', 'sklearn')\n"
        "print([m for m in heavy if m in sys.modules])\n"
        "shortlist.datasets.load_letter(), shortlist.datasets.read_csv\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
