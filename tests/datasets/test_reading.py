"""How a file was read: as plain data, and to read another file the same way."""

import json

import numpy as np
import pytest
from scipy import sparse

from shortlist.datasets import Reading, read_dataset, read_splits
from shortlist.errors import DataError


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def reading_of(path, **options):
    """Return a file's reading, having been through JSON as in a model file."""
    return json.loads(json.dumps(read_dataset(path, **options).reading.to_dict()))


def test_plain_data_and_back(tmp_path):
    path = write(tmp_path, "id,a,b,w,y\nn,1,,2,7\nm,2,3,1,8\n")
    data = read_dataset(
        path, id_column="id", weight_column="w", missing="mean", names=["seven", "eight"]
    )
    back = Reading.from_dict(json.loads(json.dumps(data.reading.to_dict())))
    assert back == data.reading
    assert back.class_names == ((7, "seven"), (8, "eight"))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"format": "csv"}, "lacks 'n_features'"),
        ({"format": "csv", "n_features": 0}, "n_features of a description of data cannot be 0"),
        ({"format": "csv", "n_features": True}, "n_features"),
        ({"format": "libsvm", "n_features": 10**12}, "n_features"),
        ({"format": "csv", "n_features": 1, "fill": [float("inf")]}, "fill"),
        ({"format": "csv", "n_features": 2, "code": 1}, "unknown entry 'code'"),
        ({"format": "csv", "n_features": 2, "feature_names": ["a"]}, "one entry a feature"),
        ({"format": "csv", "n_features": 1, "feature_names": [1]}, "feature_names"),
        ({"format": "libsvm", "n_features": 1, "index_base": 7}, "index_base"),
        ({"format": "csv", "n_features": 1, "class_names": [["a"]]}, "class_names"),
        ({"format": "csv", "n_features": 1, "missing": "guess"}, "missing"),
    ],
)
def test_descriptions_that_are_none(data, problem):
    with pytest.raises(ValueError, match=problem):
        Reading.from_dict(data)


# --- LibSVM text ---------------------------------------------------------------------------------


def test_the_index_base_is_that_of_the_training_file(tmp_path):
    train = reading_of(write(tmp_path, "0 0:1 1:9\n1 1:2 2:3\n", "train.svm"))
    assert (train["index_base"], train["index_base_from"]) == (0, "an index 0")
    test = write(tmp_path, "0 1:5\n1 2:6\n", "test.svm")
    assert read_dataset(test, dense=True).X.tolist() == [[5, 0], [0, 6]]  # guessed, and wrong
    data = read_dataset(test, like=train, dense=True)
    assert data.X.tolist() == [[0, 5, 0], [0, 0, 6]]
    assert data.reading.index_base == 0


def test_an_index_0_after_training_without_is_an_error(tmp_path):
    train = reading_of(write(tmp_path, "0 1:1\n1 2:2\n", "train.svm"))
    assert (train["index_base"], train["index_base_from"]) == (1, "no index 0")
    with pytest.raises(DataError, match="line 1: feature index 0 in a file whose features count"):
        read_dataset(write(tmp_path, "0 0:5\n", "test.svm"), like=train)


def test_a_base_that_is_given_is_said_to_be(tmp_path):
    reading = reading_of(write(tmp_path, "0 1:1\n1 2:2\n", "a.svm"), zero_based=True)
    assert (reading["index_base"], reading["index_base_from"]) == (0, "given")


def test_files_without_labels(tmp_path):
    train = reading_of(write(tmp_path, "0 1:1\n1 2:2\n", "train.svm"))
    bare = write(tmp_path, "1:5\nqid:3 2:6 # remark\n\n1:1 2:1\n", "bare.svm")
    for options in ({"label": None}, {"like": train}, {"like": train, "label": None}):
        data = read_dataset(bare, dense=True, **options)
        assert data.y is None
        assert data.X.tolist() == [[5, 0], [0, 6], [1, 1]]
    mixed = write(tmp_path, "1 1:5\n2:6\n", "mixed.svm")
    with pytest.raises(DataError, match="line 2: no label before the first feature"):
        read_dataset(mixed, like=train)
    assert read_dataset(mixed, label=None, dense=True).X.tolist() == [[5, 0], [0, 6]]


def test_several_labels_are_an_indicator(tmp_path):
    path = write(tmp_path, "1,2 3:0.5\n7 1:1\n 2:3\n2,1,2 1:1\n", "several.svm")
    data = read_dataset(path, dense=True)
    assert sparse.issparse(data.y)
    assert data.y.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert data.reading.classes == (1, 2, 7)
    assert data.n_classes == 3
    # A file of single labels is read as the training file was, with its columns.
    single = write(tmp_path, "2 1:1\n7 1:2\n", "single.svm")
    like = read_dataset(single, like=data.reading.to_dict())
    assert like.y.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(DataError, match="line 1: label 5 is none of the model's"):
        read_dataset(write(tmp_path, "5 1:1\n", "other.svm"), like=data.reading)


def test_several_labels_train_a_model(tmp_path):
    from shortlist import TopKClassifier

    path = write(
        tmp_path, "".join(f"{i % 3},{3 + i % 2} {1 + i % 5}:1\n" for i in range(30)), "a.svm"
    )
    X, y = read_dataset(path)
    model = TopKClassifier("smooth_hinge").fit(X, y)
    assert model.predict_topk(X, k=2).shape == (30, 2)


# --- tables --------------------------------------------------------------------------------------


def test_columns_are_matched_by_name(tmp_path):
    train = reading_of(write(tmp_path, "a,b,digit\n1,2,3\n4,5,6\n"))
    other = write(tmp_path, "extra,digit,b,a\nword,3,20,10\n", "other.csv")
    data = read_dataset(other, like=train)
    assert data.X.tolist() == [[10, 20]]
    assert data.y.tolist() == [3]
    assert data.feature_names == ("a", "b")
    # What was read like the first is as good an example for a third.
    again = read_dataset(other, like=data.reading)
    assert again.X.tolist() == [[10, 20]]
    assert data.reading.drop == ("extra",)


def test_missing_columns_are_named(tmp_path):
    train = reading_of(write(tmp_path, "a,b,c,digit\n1,2,0,3\n"))
    with pytest.raises(DataError, match=r"other\.csv: lacks the columns 'b', 'c'"):
        read_dataset(write(tmp_path, "a,z,digit\n1,2,3\n", "other.csv"), like=train)
    with pytest.raises(DataError, match=r"other\.csv: lacks the columns 'a', 'b', 'c'"):
        read_dataset(write(tmp_path, "p,q,r,s,t\n1,2,3,4,5\n", "other.csv"), like=train)


def test_labels_may_be_absent(tmp_path):
    train = reading_of(write(tmp_path, "a,b,digit\n1,2,3\n"))
    data = read_dataset(write(tmp_path, "b,a\n1,2\n", "other.csv"), like=train)
    assert data.y is None
    assert data.X.tolist() == [[2, 1]]


def test_a_name_that_is_there_twice(tmp_path):
    path = write(tmp_path, "a,a,digit\n1,2,3\n")
    train = reading_of(path)
    assert read_dataset(path, like=train).X.tolist() == [[1, 2]]
    with pytest.raises(DataError, match="two columns of the same name, so names do not tell"):
        read_dataset(write(tmp_path, "a,digit,a\n1,3,2\n", "other.csv"), like=train)


def test_names_of_columns_that_are_numbers(tmp_path):
    train = reading_of(write(tmp_path, "1,2,3\n4,5,6\n"), header=True)
    data = read_dataset(write(tmp_path, "2,1,9\n50,40,0\n", "other.csv"), like=train)
    assert data.X.tolist() == [[40, 50]]
    assert read_dataset(write(tmp_path, "7,8\n", "other.csv"), like=train).X.tolist() == [[7, 8]]


def test_coordinates_are_no_labels_for_a_model_that_has_them_as_features(tmp_path):
    train = reading_of(write(tmp_path, "x,y,group\n1,2,3\n4,5,6\n"), label="group")
    data = read_dataset(write(tmp_path, "y,x\n1,2\n", "other.csv"), like=train)
    assert data.X.tolist() == [[2, 1]]
    assert data.y is None


def test_tables_without_names_go_by_place(tmp_path):
    train = reading_of(write(tmp_path, "label,a,b\n1,2,3\n"))
    same = read_dataset(write(tmp_path, "7,8,9\n", "other.csv"), like=train)
    assert same.y.tolist() == [7]
    assert same.X.tolist() == [[8, 9]]
    bare = read_dataset(write(tmp_path, "8,9\n", "other.csv"), like=train)
    assert bare.y is None
    assert bare.X.tolist() == [[8, 9]]
    with pytest.raises(
        DataError, match="has 4 columns without names, where the model's data had 3"
    ):
        read_dataset(write(tmp_path, "1,2,3,4\n", "other.csv"), like=train)
    nameless = reading_of(write(tmp_path, "5,1,2\n6,3,4\n"), label=0)
    again = read_dataset(write(tmp_path, "7,8,9\n", "other.csv"), like=nameless)
    assert again.y.tolist() == [7]
    assert read_dataset(write(tmp_path, "8,9\n", "other.csv"), like=nameless).y is None


def test_other_uses_and_missing_values_are_kept(tmp_path):
    train = reading_of(
        write(tmp_path, "id,a,b,w,y\nn,1,,2,7\nm,3,4,1,8\n"),
        id_column="id",
        weight_column="w",
        missing="mean",
        label_type="str",
    )
    path = write(tmp_path, "b,id,a,y\n9,first,NA,7\n", "other.csv")
    data = read_dataset(path, like=train)
    assert data.X.tolist() == [[2, 9]]  # the training data's mean of "a"
    assert data.ids.tolist() == ["first"]
    assert data.y.tolist() == ["7"]
    assert data.weight is None


def test_another_format_is_read_the_same_way(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    columns = {"b": [2.0, 5.0], "digit": [3, 6], "a": [1.0, 4.0]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    feather.write_feather(pa.table(columns), tmp_path / "a.feather")
    np.savez(
        tmp_path / "a.npz",
        X=np.array([[2.0, 1.0], [5.0, 4.0]]),
        y=[3, 6],
        feature_names=np.array(["b", "a"]),
    )
    train = reading_of(write(tmp_path, "a,b,digit\n1,2,3\n4,5,6\n"))
    for name in ("a.parquet", "a.feather", "a.npz"):
        data = read_dataset(tmp_path / name, like=train)
        assert data.X.tolist() == [[1, 2], [4, 5]], name
        assert data.y.tolist() == [3, 6]


def test_embeddings_are_matched_entry_by_entry(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        pa.table({"e": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}), tmp_path / "a.parquet"
    )
    train = reading_of(tmp_path / "a.parquet")
    again = read_dataset(tmp_path / "a.parquet", like=train)
    assert again.X.tolist() == [[1, 2], [3, 4]]
    csv = write(tmp_path, "y,e[1],e[0]\n1,20,10\n", "b.csv")
    assert read_dataset(csv, like=train).X.tolist() == [[10, 20]]


def test_arrays_must_have_the_features(tmp_path):
    train = reading_of(write(tmp_path, "a,b,digit\n1,2,3\n"))
    np.savez(tmp_path / "a.npz", X=np.ones((2, 3)), y=[1, 2])
    with pytest.raises(DataError, match="has 3 features where 2 are expected"):
        read_dataset(tmp_path / "a.npz", like=train)
    np.savez(tmp_path / "b.npz", X=np.ones((2, 2)))
    assert read_splits(tmp_path / "b.npz", like=train)["all"].y is None
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    assert read_dataset(tmp_path / "b.npy", like=train).y is None


def test_the_readings_class_names_go_with_it(tmp_path):
    train = reading_of(write(tmp_path, "a,y\n1,0\n2,1\n"), names=["no", "yes"])
    data = read_dataset(write(tmp_path, "a,y\n1,1\n2,1\n", "other.csv"), like=train)
    assert data.reading.class_names == ((0, "no"), (1, "yes"))


def test_data_in_a_line(tmp_path):
    path = write(tmp_path, "0 1:1\n1 2:1\n1 4:2\n", "data.svm")
    told = f"{path}: 3 examples, 4 features (25.00% nonzero), 2 classes"
    assert read_dataset(path).describe() == told
    gaps = write(tmp_path, "a,label\n1,x\n,x\n")
    told = f"{gaps}: 1 example, 1 feature, 1 class, 1 more left out for missing values"
    assert read_dataset(gaps, missing="drop").describe() == told
