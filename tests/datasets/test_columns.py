"""What a table's columns are taken for: given, guessed and said, or refused."""

import numpy as np
import pytest

from shortlist.datasets import read_dataset
from shortlist.errors import DataError

TABLE = "id,a,junk,label,b,w\nr1,1,x,3,2,0.5\nr2,4,y,1,5,2\nr3,7,z,3,8,1\n"


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.fixture(params=["csv", "parquet", "feather"])
def table(request, tmp_path):
    """Return a function that writes columns as a file of each format."""

    def save(columns):
        if request.param == "csv":
            rows = zip(*columns.values(), strict=True)
            cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
            lines = [",".join(map(str, columns)), *map(",".join, cells)]
            return write(tmp_path, "\n".join(lines) + "\n")
        pa = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        path = tmp_path / f"data.{request.param}"
        stored = pa.table({name: list(column) for name, column in columns.items()})
        if request.param == "parquet":
            parquet.write_table(stored, path)
        else:
            feather.write_feather(stored, path)
        return path

    return save


COLUMNS = {
    "id": ["r1", "r2", "r3"],
    "a": [1.0, 4.0, 7.0],
    "junk": ["x", "y", "z"],
    "label": [3, 1, 3],
    "b": [2.0, 5.0, 8.0],
    "w": [0.5, 2.0, 1.0],
}


def test_columns_with_other_uses_are_no_features(table):
    data = read_dataset(table(COLUMNS), drop=["junk"], id_column="id", weight_column="w")
    assert data.X.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert data.y.tolist() == [3, 1, 3]
    assert data.ids.tolist() == ["r1", "r2", "r3"]
    assert data.weight.tolist() == [0.5, 2, 1]
    assert data.feature_names == ("a", "b")
    assert data.reading.describe() == (
        "labels: column 'label' (guessed: by its name); 2 features; names: column 'id'; "
        "weights: column 'w'; left out: 'junk'"
    )


def test_columns_by_number(tmp_path):
    path = write(tmp_path, TABLE.partition("\n")[2])
    data = read_dataset(path, label=3, drop=[2], id_column=0, weight_column=-1)
    assert data.X.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert data.reading.label == 3
    assert data.reading.drop == (2,)


def test_the_label_is_said_to_be_guessed(tmp_path):
    named = read_dataset(write(tmp_path, "a,Target,b\n1,2,3\n"))
    assert (named.reading.label, named.reading.label_guess) == ("Target", "by its name")
    last = read_dataset(write(tmp_path, "a,b,digit\n1,2,3\n"))
    assert (last.reading.label, last.reading.label_guess) == ("digit", "the last column")
    assert last.reading.describe().startswith("labels: column 'digit' (guessed: the last column)")
    given = read_dataset(write(tmp_path, "a,b,digit\n1,2,3\n"), label="digit")
    assert (given.reading.label, given.reading.label_guess) == ("digit", None)
    assert given.reading.describe() == "labels: column 'digit'; 2 features"


@pytest.mark.parametrize("header", ["x,y,group", "X,Y,group", "group,x,y,z"])
def test_coordinates_are_not_labels(tmp_path, header):
    path = write(tmp_path, f"{header}\n{','.join('123456'[: header.count(',') + 1])}\n")
    with pytest.raises(DataError, match=r"is not clear: 'y' beside 'x' may be a coordinate.*group"):
        read_dataset(path)
    assert read_dataset(path, label="group").n_features == header.count(",")


def test_a_label_beside_coordinates(tmp_path):
    data = read_dataset(write(tmp_path, "x,y,label\n1,2,3\n"))
    assert data.feature_names == ("x", "y")
    assert data.y.tolist() == [3]


def test_two_columns_that_may_hold_the_labels(tmp_path):
    with pytest.raises(DataError, match="columns 'label' and 'class' may both hold the labels"):
        read_dataset(write(tmp_path, "a,label,class\n1,2,3\n"))


def test_one_column_for_two_uses(tmp_path):
    with pytest.raises(DataError, match="column 'a' is given more than one use"):
        read_dataset(write(tmp_path, "a,b,y\n1,2,3\n"), id_column="a", drop=["a"])


def test_columns_that_are_not_there(tmp_path):
    path = write(tmp_path, TABLE)
    for options in ({"drop": ["gone"]}, {"id_column": "gone"}, {"weight_column": "gone"}):
        with pytest.raises(DataError, match=r"has no column 'gone' \(columns: id, a, junk"):
            read_dataset(path, **options)


def test_text_that_is_no_feature_is_hinted_at(tmp_path):
    hint = (
        r"no feature\? drop=\('c',\) leaves it out; the labels\? label='c' in place of column 'y'"
    )
    with pytest.raises(DataError, match=hint):
        read_dataset(write(tmp_path, "a,y,c\n1,2,red\n"))
    with pytest.raises(DataError, match=r"line 3: column 'c' is 'red', not a number$"):
        read_dataset(write(tmp_path, "a,y,c\n1,2,3\n1,2,red\n"))


def test_a_dropped_column_says_nothing_of_labels(tmp_path):
    data = read_dataset(write(tmp_path, "a,b,label\n1,2,3\n"), drop=["label"])
    assert (data.reading.label, data.reading.label_guess) == ("b", "the last column")


def test_semicolons_are_hinted_at(tmp_path):
    with pytest.raises(DataError, match="separated by ';': delimiter=';'"):
        read_dataset(write(tmp_path, "1;2;3\n4;5;6\n"))


@pytest.mark.parametrize(
    ("text", "options", "hint"),
    [
        ("a;b;y\n0,5;1,2;1\n", {"delimiter": ";"}, r"'a' is '0,5', .*decimal comma\? write 0\.5"),
        ("0,5;1,2;1\n", {"delimiter": ";"}, r"line 1: column 0 .*decimal comma\? write 0\.5"),
        ("0,5;1,2;1\n", {}, "'5;1' is not a number.*separated by ';'"),
        ("0,5;1,2;1\n", {"header": False}, "'5;1', not a number.*separated by ';'"),
    ],
)
def test_decimal_commas_are_hinted_at(tmp_path, text, options, hint):
    with pytest.raises(DataError, match=hint):
        read_dataset(write(tmp_path, text), **options)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_none(table, weight):
    path = table({"a": [1.0, 2.0], "w": [1.0, weight], "y": [0, 1]})
    with pytest.raises(
        DataError, match=r"(line 3|row 2): the weight is .*, not a number from 0 on"
    ):
        read_dataset(path, weight_column="w")


# --- missing values ------------------------------------------------------------------------------

GAPS = {"a": [1.0, None, 3.0, 8.0], "b": [4.0, 5.0, None, 0.0], "y": [0, 1, 0, 1]}


def test_missing_values_are_errors(table):
    with pytest.raises(DataError, match=r"(line 3|row 2): column (1 \(a\)|'a') is empty"):
        read_dataset(table(GAPS))


def test_missing_values_become_means(table):
    data = read_dataset(table(GAPS), missing="mean")
    assert data.X.tolist() == [[1, 4], [4, 5], [3, 3], [8, 0]]
    assert data.reading.fill == (4.0, 3.0)
    assert data.left_out == 0


def test_examples_with_missing_values_are_left_out(table):
    data = read_dataset(
        table({**GAPS, "name": ["p", "q", "r", "s"]}), missing="drop", id_column="name"
    )
    assert data.X.tolist() == [[1, 4], [8, 0]]
    assert data.y.tolist() == [0, 1]
    assert data.ids.tolist() == ["p", "s"]
    assert data.left_out == 2


def test_words_for_missing_values(tmp_path):
    path = write(tmp_path, "a,b,y\n1,NA,0\nNaN,?,1\nnull, n/a ,0\n3,5,1\n")
    assert read_dataset(path, missing="drop").X.tolist() == [[3, 5]]
    with pytest.raises(DataError, match=r"line 2: column 'b' is 'NA', not a number"):
        read_dataset(path)
    with pytest.raises(DataError, match=r"line 2: column 'b' is 'x', not a number"):
        read_dataset(write(tmp_path, "a,b,y\n1,x,0\n"), missing="drop")


def test_means_and_omissions_that_leave_nothing(tmp_path):
    path = write(tmp_path, "a,b,y\n1,,0\n2,,1\n")
    with pytest.raises(DataError, match="column 'b' has no value at all"):
        read_dataset(path, missing="mean")
    with pytest.raises(DataError, match="every example has a missing value"):
        read_dataset(path, missing="drop")
    with pytest.raises(ValueError, match="missing must be one of error, mean, drop"):
        read_dataset(path, missing="zero")


def test_infinite_values_are_never_missing(tmp_path):
    with pytest.raises(DataError, match=r"line 2: column 'a' is inf, not finite"):
        read_dataset(write(tmp_path, "a,b,y\ninf,2,0\n3,4,1\n"), missing="mean")


def test_gaps_in_the_first_line_of_a_table_without_names(tmp_path):
    data = read_dataset(write(tmp_path, "1,,0\n3,4,1\n"), missing="mean")
    np.testing.assert_array_equal(data.X, [[1, 4], [3, 4]])
