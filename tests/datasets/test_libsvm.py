"""LibSVM text: what is read, and what one-line error a bad file gives."""

import bz2
import gzip
import io
import lzma
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from shortlist.datasets import read_dataset, read_libsvm, write_libsvm
from shortlist.errors import DataError

TEXT = """\
# a comment line
3 1:0.5 4:-2
1 2:1e3 # a remark

+2.0 qid:7 1:1 3:.25
"""
X_TEXT = np.array([[0.5, 0, 0, -2], [0, 1000, 0, 0], [1, 0, 0.25, 0]])


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(TEXT)
    return path


def write(tmp_path, text):
    path = tmp_path / "data.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reads_comments_qid_blank_lines_and_whole_float_labels(data):
    X, y = read_libsvm(data, dense=True)
    np.testing.assert_array_equal(X, X_TEXT)
    assert y.tolist() == [3, 1, 2]
    assert y.dtype == np.int64


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_reads_compressed_files(tmp_path, suffix, compress):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(compress(TEXT.encode()))
    np.testing.assert_array_equal(read_dataset(path, dense=True).X, X_TEXT)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_reads_standard_input(monkeypatch, compress):
    stdin = io.TextIOWrapper(io.BytesIO(compress(TEXT.encode())))
    monkeypatch.setattr(sys, "stdin", stdin)
    np.testing.assert_array_equal(read_dataset("-", dense=True).X, X_TEXT)


def test_names_the_line_on_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:1\nx 1:2\n")))
    with pytest.raises(DataError, match=r"^standard input, line 2: label 'x' is not a number "):
        read_dataset("-")


def test_windows_line_ends_and_no_final_line_end(tmp_path):
    X, y = read_libsvm(write(tmp_path, b"1 1:2\r\n2 1:3"), dense=True)
    assert X.tolist() == [[2], [3]]
    assert y.tolist() == [1, 2]


def test_zero_based_is_found_or_given(tmp_path):
    path = write(tmp_path, "1 0:5 2:6\n")
    data = read_libsvm(path, dense=True)
    assert data.zero_based is True
    assert data.X.tolist() == [[5, 0, 6]]
    path = write(tmp_path, "1 1:5 2:6\n")
    assert read_libsvm(path, dense=True).X.tolist() == [[5, 6]]
    assert read_libsvm(path, dense=True).zero_based is False
    assert read_libsvm(path, dense=True, zero_based=True).X.tolist() == [[0, 5, 6]]


def test_index_zero_is_an_error_where_indices_count_from_one(tmp_path):
    with pytest.raises(DataError, match="line 2: feature index 0 in a file whose features count"):
        read_libsvm(write(tmp_path, "1 1:1\n1 0:1\n"), zero_based=False)


def test_a_narrower_file_is_filled_with_zeros(data):
    X = read_libsvm(data, n_features=6, dense=True).X
    np.testing.assert_array_equal(X, np.hstack([X_TEXT, np.zeros((3, 2))]))


def test_a_wider_file_loses_its_unknown_features_with_a_warning(data):
    with pytest.warns(UserWarning, match=r"data\.svm: 2 values of features beyond number 2"):
        X = read_libsvm(data, n_features=2, dense=True).X
    np.testing.assert_array_equal(X, X_TEXT[:, :2])


def test_a_wider_file_can_be_refused(data):
    with pytest.raises(DataError, match=r"data\.svm, line 5: feature index 3 is beyond the 2"):
        read_libsvm(write_first_line_narrow(data), n_features=2, extra_features="error")


def write_first_line_narrow(path):
    path.write_text(TEXT.replace("4:-2", "2:-2"))
    return path


def test_examples_without_features(tmp_path):
    X, y = read_libsvm(write(tmp_path, "1\n2\n"))
    assert X.shape == (2, 1)
    assert y.tolist() == [1, 2]


def test_dense_only_where_it_is_no_larger(tmp_path):
    assert isinstance(read_libsvm(write(tmp_path, "1 1:1 2:2\n1 1:1 2:2\n")).X, np.ndarray)
    assert sparse.issparse(read_libsvm(write(tmp_path, "1 1:1 200:2\n")).X)


def test_float32(data):
    assert read_libsvm(data, dtype=np.float32).X.dtype == np.float32
    with pytest.raises(ValueError, match="float64 or float32"):
        read_libsvm(data, dtype=np.int64)


def test_float_labels_where_they_are_wanted(tmp_path):
    path = write(tmp_path, "1.5 1:1\n-2 1:2\n")
    assert read_libsvm(path, label_type="float").y.tolist() == [1.5, -2.0]


BAD_LINES = {
    "abc 1:1": "label 'abc' is not a number",
    "1.5 1:1": "label '1.5' is not an integer",
    "nan 1:1": "label 'nan' is not finite",
    "1,,2 1:1": "a label between commas is empty",
    "1,x 1:1": "label 'x' is not a number",
    "1:0.5 2:1": "no label before the first feature (label=None reads",
    "1 1_0:1": "feature index '1_0' is not an integer",
    "1 1:1_0": "value '1_0' of feature 1 is not a number",
    "1e300 1:1": "label '1e300' is beyond 64-bit integers (label_type='str' takes",
    "9223372036854775808 1:1": "label '9223372036854775808' is beyond 64-bit integers",
    "1e99999999999 1:1": "label '1e99999999999' is beyond 64-bit integers",
    "1e99999999999999999999 1:1": "label '1e99999999999999999999' is beyond 64-bit integers",
    "1 1:1 2": "'2' is not an index:value pair",
    "1 1:1 2:": "value '' of feature 2 is not a number",
    "1 1:1 x:2": "feature index 'x' is not an integer",
    "1 1:one": "value 'one' of feature 1 is not a number",
    "1 1:nan": "value 'nan' of feature 1 is not finite",
    "1 1:-inf": "value '-inf' of feature 1 is not finite",
    "1 2:1 1:1": "feature index 1 follows 2: indices must ascend",
    "1 2:1 2:1": "feature index 2 follows 2: indices must ascend",
    "1 -3:1": "feature index -3 is out of range",
    "1 99999999999:1": "feature index 99999999999 is out of range",
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.items())
def test_a_bad_line_is_named(tmp_path, line, problem):
    path = write(tmp_path, f"1 1:1\n\n# remark\n{line}\n2 1:1\n")
    with pytest.raises(DataError) as caught:
        read_libsvm(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 4: {problem}")
    assert "\n" not in message
    assert caught.value.line == 4
    assert caught.value.path == str(path)


def test_long_tokens_are_cut(tmp_path):
    with pytest.raises(DataError) as caught:
        read_libsvm(write(tmp_path, "x" * 10_000))
    assert len(str(caught.value)) < 300


def test_binary_rubbish(tmp_path):
    with pytest.raises(DataError, match="line 1: label"):
        read_libsvm(write(tmp_path, bytes(range(128, 256))))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n"])
def test_an_empty_file(tmp_path, text):
    with pytest.raises(DataError, match=r"data\.svm: holds no examples$"):
        read_libsvm(write(tmp_path, text))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"gone\.svm: no such file$"):
        read_libsvm(tmp_path / "gone.svm")


def test_a_directory(tmp_path):
    with pytest.raises(DataError, match="is a directory"):
        read_dataset(tmp_path)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions work otherwise here")
def test_a_file_without_permission(data):
    data.chmod(0)
    root = os.geteuid() == 0
    if root:  # no file is closed to root: be nobody for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(DataError, match=r"data\.svm: no permission to read this file$"):
            read_libsvm(data)
    finally:
        if root:
            os.seteuid(0)


def test_a_refused_open_is_told_as_no_permission(data, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(DataError, match=r"data\.svm: no permission to read this file$"):
        read_libsvm(data)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_an_archive_cut_short(tmp_path, suffix, compress):
    whole = compress("".join(f"{i} 1:{i / 7}\n" for i in range(20_000)).encode())
    for size in (len(whole) // 2, len(whole) - 5):
        path = tmp_path / f"data{suffix}"
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="the archive is cut short or damaged") as caught:
            read_libsvm(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_damaged_archive(tmp_path, suffix, compress):
    whole = bytearray(compress("".join(f"{i} 1:{i / 7}\n" for i in range(20_000)).encode()))
    middle = len(whole) // 2
    whole[middle : middle + 40] = bytes(40)
    path = tmp_path / f"data{suffix}"
    path.write_bytes(whole)
    with pytest.raises(DataError):
        read_libsvm(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_text_that_only_claims_to_be_compressed(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_text(TEXT)
    with pytest.raises(DataError, match=f"is not a {suffix} archive, despite its name"):
        read_libsvm(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"extra_features": "keep"},
        {"zero_based": "maybe"},
        {"dense": "perhaps"},
        {"n_features": 0},
    ],
)
def test_refused_options(data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        read_libsvm(data, **wrong)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-50, 50),
            st.dictionaries(
                st.integers(0, 30),
                st.floats(allow_nan=False, allow_infinity=False, width=32),
                max_size=8,
            ),
        ),
        min_size=1,
        max_size=12,
    ),
    zero_based=st.booleans(),
    suffix=st.sampled_from(["", ".gz", ".bz2", ".xz"]),
)
def test_what_is_written_is_read_back(tmp_path_factory, rows, zero_based, suffix):
    X = np.zeros((len(rows), 31))
    for i, (_, features) in enumerate(rows):
        for j, value in features.items():
            X[i, j] = value
    y = np.array([label for label, _ in rows])
    path = tmp_path_factory.mktemp("libsvm") / f"data{suffix}"
    write_libsvm(path, X, y, zero_based=zero_based)
    data = read_libsvm(path, n_features=31, zero_based=zero_based, dense=True)
    np.testing.assert_allclose(data.X, X, rtol=1e-15)
    np.testing.assert_array_equal(data.y, y)


def test_writing_leaves_nothing_behind_when_it_fails(tmp_path):
    path = tmp_path / "out.svm"
    path.write_text("old")
    with pytest.raises(ValueError):
        write_libsvm(path, np.ones((2, 2)), np.ones(3))
    assert [p.name for p in tmp_path.iterdir()] == ["out.svm"]
    assert path.read_text() == "old"
