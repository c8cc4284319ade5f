"""Labels are exact or refused, in every format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.datasets import read_dataset, read_libsvm
from shortlist.datasets.labels import check_labels, parse_labels
from shortlist.errors import DataError

BEYOND_DOUBLES = 2**53 + 1


def parse(*texts, label_type="auto"):
    return parse_labels(texts, range(1, len(texts) + 1), label_type, "file")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", BEYOND_DOUBLES),
        ("9007199254740993.0", BEYOND_DOUBLES),
        ("+9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("007", 7),
        ("1e3", 1000),
        ("12.50e1", 125),
        (".0", 0),
        ("-0.0", 0),
        ("0e99999999999999", 0),
        ("9007199254740993000e-3", BEYOND_DOUBLES),
    ],
)
def test_whole_numbers_are_exact(text, value):
    y = parse(text)
    assert y.dtype == np.int64
    assert y.tolist() == [value]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_every_64_bit_integer_stays_itself(values):
    assert parse(*map(str, values)).tolist() == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9223372036854775808", "is beyond 64-bit integers"),
        ("-9223372036854775809", "is beyond 64-bit integers"),
        ("1e300", "is beyond 64-bit integers"),
        ("1e99999999999999999999", "is beyond 64-bit integers"),
        ("9" * 5000, "is beyond 64-bit integers"),
        ("1.5", "is not an integer"),
        ("1e-5", "is not an integer"),
        ("nan", "is not finite"),
        ("-Infinity", "is not finite"),
        ("1_0", "is not a number"),
        ("٣", "is not a number"),
    ],
)
def test_other_numbers_are_refused_with_the_line(text, problem):
    with pytest.raises(DataError, match=rf"^file, line 2: label .* {problem}"):
        parse("1", text)
    # As text every label stays as it is written.
    assert parse("1", text, label_type="str").tolist() == ["1", text]


def test_floats_where_they_are_asked_for():
    assert parse("1.5", "2", label_type="float").tolist() == [1.5, 2.0]
    with pytest.raises(DataError, match="'9007199254740993' cannot be held as a float"):
        parse("9007199254740993", label_type="float")
    with pytest.raises(DataError, match="is not finite"):
        parse("1e400", label_type="float")


def test_text_formats_do_not_merge_classes(tmp_path):
    svm, csv = tmp_path / "a.svm", tmp_path / "a.csv"
    svm.write_text("9007199254740993 1:1\n9007199254740992 1:2\n")
    csv.write_text("1,9007199254740993\n2,9007199254740992\n")
    for path in (svm, csv):
        assert read_dataset(path).y.tolist() == [BEYOND_DOUBLES, BEYOND_DOUBLES - 1]


def test_labels_as_text_in_libsvm(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("01 1:1\n1 1:2\nü 1:3\n")
    assert read_libsvm(path, label_type="str").y.tolist() == ["01", "1", "ü"]
    with pytest.raises(ValueError, match="label_type must be one of 'int', 'float', 'str'"):
        read_libsvm(path, label_type="auto")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.array([1, 2**63], np.uint64), "row 2: label 9223372036854775808 is beyond 64-bit"),
        (np.array([1, 1e300]), r"row 2: label 1e\+300 is beyond 9007199254740992, up to which"),
        (np.array([2.0**53 + 2]), "is beyond 9007199254740992"),
        (np.array([2**24 + 2], np.float32), "is beyond 16777216, up to which float32"),
        (np.array([b"\xff"]), "the labels are not UTF-8 text"),
        (np.array([0x110000], "u4").view("U1"), "the labels hold something that is not text"),
        (np.array([0xD800], "u4").view("U1"), "the labels hold something that is not text"),
    ],
)
def test_arrays_of_labels_that_are_refused(values, problem):
    with pytest.raises(DataError, match=problem):
        check_labels(values, len(values), "file")


def test_arrays_of_labels_keep_their_values():
    for values in (
        np.array([2**63 - 1, 0], np.uint64),
        np.array([-(2.0**53), 2.0**53]),
        np.array([2**24], np.float32),
        np.array([127, -128], np.int8),
    ):
        y = check_labels(values, len(values), "file")
        assert y.dtype == np.int64
        assert y.tolist() == [int(value) for value in values.tolist()]
    big_endian = np.array(["ü", "b"]).astype(">U3")
    assert check_labels(big_endian, 2, "file").tolist() == ["ü", "b"]
    assert check_labels(np.array([True, False]), 2, "file").dtype == bool


def test_parquet_labels_are_exact_or_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import decimal

    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [BEYOND_DOUBLES, -1]}), path)
    assert read_dataset(path).y.tolist() == [BEYOND_DOUBLES, -1]
    parquet.write_table(pa.table({"a": [1.0], "y": pa.array([2**64 - 1], pa.uint64())}), path)
    with pytest.raises(DataError, match="is beyond 64-bit integers"):
        read_dataset(path)
    parquet.write_table(pa.table({"a": [1.0], "y": [decimal.Decimal("1.5")]}), path)
    with pytest.raises(DataError, match="are neither numbers nor text"):
        read_dataset(path)
