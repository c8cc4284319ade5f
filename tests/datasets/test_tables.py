"""CSV and Parquet: where the label is, what the header is, and errors that name line or row."""

import builtins
import gzip
import io
import sys

import numpy as np
import pytest

from shortlist.datasets import read_dataset
from shortlist.errors import DataError

X = [[0.5, -1.0, 3.0], [2.0, 0.25, 1e-3], [7.0, 8.0, 9.0]]


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


NAMED = "a,label,b,c\n0.5,3,-1,3\n2,1,.25,1e-3\n\n7,3,8,9\n"
PLAIN = "0.5,-1,3,3\n2,.25,1e-3,1\n7,8,9,3\n"


def test_label_by_its_usual_name_or_any_other(tmp_path):
    path = write(tmp_path, NAMED)
    for options in ({}, {"label": "label"}, {"label": 1}, {"label": -3}):
        data = read_dataset(path, **options)
        assert data.X.tolist() == X
        assert data.y.tolist() == [3, 1, 3]
        assert data.feature_names == ("a", "b", "c")


def test_without_a_header_the_last_column_is_the_label(tmp_path):
    data = read_dataset(write(tmp_path, PLAIN))
    assert data.X.tolist() == X
    assert data.y.tolist() == [3, 1, 3]
    assert data.feature_names is None


def test_label_in_another_column(tmp_path):
    data = read_dataset(write(tmp_path, "3,1,2\n4,5,6\n"), label=0)
    assert data.X.tolist() == [[1, 2], [5, 6]]
    assert data.y.tolist() == [3, 4]


def test_data_without_labels(tmp_path):
    data = read_dataset(write(tmp_path, "1,2\n3,4\n"), label=None)
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y is None


def test_labels_as_words_with_or_without_a_header(tmp_path):
    data = read_dataset(write(tmp_path, 'x,y,kind\n1,2,"cat, small"\n3,4,dog\n'), label="kind")
    assert data.y.tolist() == ["cat, small", "dog"]
    data = read_dataset(write(tmp_path, "1,2,cat\n3,4,dog\n"))
    assert data.y.tolist() == ["cat", "dog"]
    assert data.n_samples == 2


def test_label_types(tmp_path):
    path = write(tmp_path, "1,01\n2,2.0\n")
    assert read_dataset(path).y.tolist() == [1, 2]
    assert read_dataset(path, label_type="str").y.tolist() == ["01", "2.0"]
    with pytest.raises(DataError, match="line 1: label 'cat' is not a number"):
        read_dataset(write(tmp_path, "1,cat\n"), label_type="int")
    with pytest.raises(ValueError, match="label_type"):
        read_dataset(path, label_type="float")


def test_tabs_semicolons_spaces_byte_order_mark_and_windows_line_ends(tmp_path):
    assert read_dataset(write(tmp_path, "1\t2\n3\t4\n", "data.tsv")).y.tolist() == [2, 4]
    assert read_dataset(write(tmp_path, "1;2\n3;4\n"), delimiter=";").y.tolist() == [2, 4]
    data = read_dataset(write(tmp_path, b"\xef\xbb\xbfa, label\r\n1, 2\r\n3, 4\r\n"))
    assert data.feature_names == ("a",)
    assert data.y.tolist() == [2, 4]


def test_compressed_and_standard_input(tmp_path, monkeypatch):
    path = write(tmp_path, gzip.compress(PLAIN.encode()), "data.csv.gz")
    assert read_dataset(path).X.tolist() == X
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert read_dataset("-", format="csv").X.tolist() == X


def test_header_that_is_given(tmp_path):
    path = write(tmp_path, "1,2,3\n4,5,6\n")
    assert read_dataset(path, header=True).X.tolist() == [[4, 5]]
    assert read_dataset(path, header=True).feature_names == ("1", "2")
    with pytest.raises(DataError, match=r"line 1: column 0 \(the first is 0\) is 'a'"):
        read_dataset(write(tmp_path, "a,b\n1,2\n"), header=False)


BAD_CSV = [
    ("", "holds no examples"),
    ("\n\n", "holds no examples"),
    ("a,b,label\n", "holds no examples, only a header"),
    ("1,2,3\n4,5\n", "line 2: has 2 columns where 3 are expected"),
    ("1,2,3\n4,5,6,7\n", "line 2: has 4 columns where 3 are expected"),
    ("a,b,y\n1,2,3\n\n4,x,6\n", r"line 4: column 'b' is 'x', not a number"),
    ("1,2,3\n4,,6\n", r"line 2: column 1 \(the first is 0\) is empty"),
    ("1,2,3\n4,1_0,6\n", r"line 2: column 1 \(the first is 0\) is '1_0', not a number"),
    ("1,2,3\nnan,5,6\n", r"line 2: column 0 \(the first is 0\) is nan, not finite"),
    ("1,2,3\n4,-inf,6\n", r"line 2: column 1 \(the first is 0\) is -inf, not finite"),
    ("1,2,3\n4,5,six\n", "line 2: label 'six' is not a number, unlike others here"),
    ("1,2,3\n4,5,6.5\n", "line 2: label '6.5' is not an integer"),
    ("1,2,3\n4,5,nan\n", "line 2: label 'nan' is not finite"),
    ("1,2,3\n4,5,\n", "line 2: the label is empty"),
    ("1,x,3\n4,5,6\n", "line 1: is neither all names nor all numbers"),
    ("1\n2\n", "line 1: has one column, so no features"),
    (b"1,2\n\xff\xfe,3\n", "is not UTF-8 text"),
    ('a,y\n"1,2\n', "line"),
]


@pytest.mark.parametrize(("text", "problem"), BAD_CSV)
def test_bad_csv(tmp_path, text, problem):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=problem) as caught:
        read_dataset(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_line_numbers_count_quoted_line_ends(tmp_path):
    with pytest.raises(DataError, match="line 4: column 'a'"):
        read_dataset(write(tmp_path, 'a,y\n1,"two\nlines"\nx,3\n'))


def test_columns_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"has no column 'kind' \(columns: a, label, b, c\)"):
        read_dataset(write(tmp_path, NAMED), label="kind")
    with pytest.raises(DataError, match="has no column 7, only 0 to 3"):
        read_dataset(write(tmp_path, NAMED), label=7)


def test_expected_number_of_features(tmp_path):
    assert read_dataset(write(tmp_path, NAMED), n_features=3).n_features == 3
    with pytest.raises(DataError, match="has 3 features where 5 are expected"):
        read_dataset(write(tmp_path, NAMED), n_features=5)


def test_float32_csv(tmp_path):
    assert read_dataset(write(tmp_path, NAMED), dtype=np.float32).X.dtype == np.float32


def test_large_csv_equals_numpys_reader(tmp_path):
    values = np.random.default_rng(0).normal(size=(500, 21))
    values[:, -1] = np.arange(500) % 7
    path = tmp_path / "data.csv"
    np.savetxt(path, values, delimiter=",")
    data = read_dataset(path)
    np.testing.assert_array_equal(data.X, np.loadtxt(path, delimiter=",")[:, :-1])
    assert data.y.tolist() == (np.arange(500) % 7).tolist()


# --- Parquet ---------------------------------------------------------------------------------

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402


@pytest.fixture
def parquet(tmp_path):
    def save(**columns):
        path = tmp_path / "data.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)
        return path

    return save


def test_parquet_columns(parquet):
    path = parquet(a=[1.0, 2.0], label=[3, 4], b=pa.array([5, 6], pa.int16()), c=[True, False])
    data = read_dataset(path)
    assert data.X.tolist() == [[1, 5, 1], [2, 6, 0]]
    assert data.y.tolist() == [3, 4]
    assert data.feature_names == ("a", "b", "c")
    assert read_dataset(path, label="b").y.tolist() == [5, 6]
    assert read_dataset(path, label=None).y is None
    assert read_dataset(path, label=None).n_features == 4


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
def test_parquet_embeddings(parquet, kind):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    types = {
        "fixed": pa.list_(pa.float32(), 3),
        "list": pa.list_(pa.float32()),
        "large": pa.large_list(pa.float32()),
    }
    column = pa.array(values.tolist(), types[kind])
    data = read_dataset(parquet(embedding=column, y=["a", "b", "a", "c"]))
    np.testing.assert_array_equal(data.X, values)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == ["a", "b", "a", "c"]
    assert data.feature_names == ("embedding[0]", "embedding[1]", "embedding[2]")


def test_parquet_categories_as_labels(parquet):
    labels = pa.array(["x", "y", "x"]).dictionary_encode()
    assert read_dataset(parquet(a=[1.0, 2.0, 3.0], y=labels)).y.tolist() == ["x", "y", "x"]


BAD_PARQUET = [
    ({"a": ["u", "v"], "y": [1, 2]}, "column 'a' is of type string, not numbers"),
    ({"a": [1.0, None], "y": [1, 2]}, "row 2: column 'a' is empty"),
    ({"a": [1.0, 2.0], "y": [1, None]}, "row 2: column 'y' is empty"),
    ({"a": [1.0, float("nan")], "y": [1, 2]}, "row 2: feature 0 is nan"),
    ({"a": [1.0, 2.0], "y": [1.0, 2.5]}, "row 2: label 2.5 is not an integer"),
    ({"a": [[1.0], [2.0, 3.0]], "y": [1, 2]}, "row 2: column 'a' holds lists of different lengths"),
    ({"a": [[1.0], [None]], "y": [1, 2]}, "holds lists with empty entries"),
    ({"y": [1, 2]}, "has no feature columns"),
    ({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, "holds no examples"),
]


@pytest.mark.parametrize(("columns", "problem"), BAD_PARQUET)
def test_bad_parquet(parquet, columns, problem):
    path = parquet(**columns)
    with pytest.raises(DataError, match=problem) as caught:
        read_dataset(path)
    assert str(caught.value).startswith(str(path))


def test_auto_takes_no_label_where_all_columns_are_the_features(tmp_path, parquet):
    features = "a,b,c\n0.5,-1,3\n2,.25,1e-3\n7,8,9\n"
    for text in (features, features.partition("\n")[2]):
        path = write(tmp_path, text)
        bare = read_dataset(path, n_features=3)
        assert bare.y is None
        assert bare.X.tolist() == X
    with pytest.raises(DataError, match="has 2 features where 3 are expected"):
        read_dataset(write(tmp_path, "a,y,c\n1,2,3\n"), n_features=3)  # y is a label by its name
    wide = parquet(embedding=[[1.0, 2.0], [3.0, 4.0]], extra=[5.0, 6.0])
    assert read_dataset(wide, n_features=3).X.tolist() == [[1, 2, 5], [3, 4, 6]]
    assert read_dataset(wide, n_features=3).y is None
    assert read_dataset(wide, n_features=2).y.tolist() == [5, 6]


def test_parquet_cut_short(parquet):
    path = parquet(a=[1.0, 2.0], y=[1, 2])
    whole = path.read_bytes()
    for size in (0, 4, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="is not a complete Parquet file") as caught:
            read_dataset(path)
        assert "\n" not in str(caught.value)


def test_parquet_without_pyarrow_names_the_extra(parquet, monkeypatch):
    path = parquet(a=[1.0], y=[1])
    real_import = builtins.__import__

    def without_pyarrow(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(ImportError, match=r"pip install 'shortlist\[data\]'"):
        read_dataset(path)
