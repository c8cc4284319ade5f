"""A model keeps how its data was read; other data is read the same way, and guesses are told."""

import json
import os
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy import sparse
from scipy.io import savemat

import shortlist
from shortlist import TopKClassifierCV
from shortlist.datasets import write_libsvm
from tests.cli.conftest import NAMES, shell

# Two classes that a single feature tells apart, far enough for an accuracy of 100%.
APART = "{label} {index}:{sign}5 {other}:1\n"


def named(X):
    """A table of the features' names, which the model was trained with."""
    return pandas.DataFrame(X, columns=[*"pqrst"])


def write_apart(path, first, labels=(1, 2)):
    """Write two classes apart in the feature numbered ``first`` + 1; none has number ``first``."""
    lines = []
    for i in range(10):
        label = labels[i % 2]
        sign = "-" if i % 2 else ""
        lines.append(APART.format(label=label, index=first + 1, sign=sign, other=first + 2))
    Path(path).write_text("".join(lines))
    return path


def accuracy(command, *args):
    ended = command("evaluate", *args, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["accuracy"]["test"]["top-1"]


@pytest.mark.parametrize("subcommand", ["train", "cv"])
def test_a_model_keeps_the_index_base(command, subcommand):
    """The test file has no index 0, and would be taken for one that counts from 1."""
    Path("train.svm").write_text("1 0:1 1:5\n2 0:1 1:-5\n" + "1 1:5 2:1\n2 1:-5 2:1\n" * 4)
    write_apart("test.svm", first=0)
    search = ["--Cs", "1,10", "-v", 2, "--ks", 1] if subcommand == "cv" else []
    assert command(subcommand, "train.svm", "-o", "m", *search).code == 0
    assert accuracy(command, "m", "test.svm") == 1.0
    predicted = command("predict", "m", "test.svm", "--no-scores").out.split()
    assert predicted == ["label_1", *["1", "2"] * 5]


def test_validation_data_has_the_index_base_of_the_training_data(command):
    Path("train.svm").write_text("1 0:1 1:5\n2 0:1 1:-5\n" * 5)
    write_apart("val.svm", first=0)
    ended = command("train", "train.svm", "--val", "val.svm", "-o", "m", "--json", "-q")
    assert json.loads(ended.out)["accuracy"]["validation"] == {"top-1": 1.0}


def test_a_guessed_base_that_other_data_contradicts_is_an_error(command):
    write_apart("train.svm", first=1)
    ended = command("train", "train.svm", "-o", "m")
    assert ended.err.splitlines()[0] == (
        "3 features; indices from 1 (guessed: there is no index 0)"
    )
    Path("test.svm").write_text("1 0:1 1:5\n")
    refused = command("evaluate", "m", "test.svm")
    assert refused.code == 2
    assert "test.svm, line 1: feature index 0 in a file whose features count from 1" in refused.err
    assert "read it with --index-base 0" in refused.err


def test_coordinates_are_not_taken_for_labels(command, tmp_path):
    Path("points.csv").write_text("x,y,group\n1,5,1\n2,6,2\n1,7,1\n2,8,2\n")
    refused = command("train", "points.csv", "-o", "m")
    assert refused.code == 2
    assert "which column holds the labels is not clear: 'y' beside 'x'" in refused.err
    ended = command("train", "points.csv", "--label", "group", "-o", "m")
    assert ended.err.splitlines()[0] == "labels: column 'group'; 2 features"
    assert shortlist.load("m").feature_names_in_.tolist() == ["x", "y"]
    # The column that was said is known from then on.
    assert accuracy(command, "m", "points.csv") == 1.0


def test_a_column_of_labels_that_looks_like_a_feature_stays_the_labels(command, files):
    """The test file has another column named label, and the model's own one elsewhere."""
    files.write_csv("digits.csv", ["digit", *"pqrst"], files.y, files.X)
    files.write_csv("other.csv", ["label", *"tsrqp", "digit"], files.y, files.X[:, ::-1], files.y)
    assert command("train", files / "digits.csv", "--label", "digit", "-o", "m", "-q").code == 0
    ended = command("evaluate", "m", files / "other.csv", "--json")
    same = command("evaluate", "m", files / "digits.csv", "--json")
    assert json.loads(ended.out)["accuracy"] == json.loads(same.out)["accuracy"]
    assert ended.err.splitlines() == [
        f"shortlist: {files / 'other.csv'}: columns in another order are matched by name",
        f"shortlist: {files / 'other.csv'}: columns that the model does not know are passed over: "
        "'label'",
    ]


def test_labels_to_predict_may_be_empty(command, files, named_model):
    empty = np.full(len(files.y), "")
    path = files.write_csv("unlabelled.csv", [*"pqrst", "label"], files.X, empty)
    ended = command("predict", named_model, path, "--no-scores", "-k", 1)
    expected = shortlist.load(named_model).predict(named(files.X)).tolist()
    assert ended.out.splitlines() == ["label_1", *expected]


def test_named_features_of_arrays_are_found_in_a_table(command, files):
    np.savez("train.npz", X=files.X, y=files.y, feature_names=np.array([*"pqrst"]))
    assert command("train", "train.npz", "-o", "m", "-q").code == 0
    turned = files.write_csv("numbers.csv", ["y", *"tsrqp"], files.y, files.X[:, ::-1])
    ended = command("evaluate", "m", turned, "--json")
    assert json.loads(ended.out)["accuracy"]["test"]["top-1"] == shortlist.load("m").score(
        named(files.X), files.y
    )
    assert "labels: column 'y' (guessed: by its name)" in ended.err


def test_names_of_classes_are_kept_and_shown(command, files):
    np.savez("train.npz", X=files.X, y=files.y, target_names=NAMES)
    write_libsvm("test.svm", files.X, files.y)
    assert command("train", "train.npz", "-o", "m", "-k", 2, "-q").code == 0
    lines = command("predict", "m", "test.svm", "--no-scores").out.splitlines()
    assert lines[0] == "label_1,label_2,name_1,name_2"
    labels = shortlist.load("m").predict_topk(files.X)
    assert lines[1:] == [f"{a},{b},{NAMES[a]},{NAMES[b]}" for a, b in labels]
    entry = json.loads(command("predict", "m", "test.svm", "--json").out.splitlines()[0])
    assert entry["names"] == NAMES[labels[0]].tolist()
    assert "2 (cat)" in command("evaluate", "m", "test.svm", "--classes", -1).out
    told = json.loads(command("evaluate", "m", "test.svm", "--json").out)
    assert [entry["name"] for entry in told["classes"]] == NAMES.tolist()
    assert "0 (ant), 1 (bee), 2 (cat), 3 (dog)" in command("info", "m").out
    pairs = [[i, name] for i, name in enumerate(NAMES.tolist())]
    assert json.loads(command("info", "m", "--json").out)["reading"]["class_names"] == pairs


def test_a_file_of_names(command, files, model):
    Path("names.txt").write_text("\n".join(NAMES) + "\n")
    Path("other.json").write_text(json.dumps({str(i): f"no. {i}" for i in range(4)}))
    Path("few.txt").write_text("ant\nbee\n")
    assert command("train", files / "data.svm", "--names", "names.txt", "-o", "m", "-q").code == 0
    first = command("predict", "m", files / "data.svm", "-k", 1, "--no-scores").out.splitlines()[1]
    label = shortlist.load("m").predict(files.X)[0]
    assert first == f"{label},{NAMES[label]}"
    # A file counts more than what the model keeps, and serves a model that keeps no names.
    for trained in ("m", model):
        ended = command("evaluate", trained, files / "data.svm", "--names", "other.json")
        assert "0 (no. 0)" in ended.out
    refused = command("train", files / "data.svm", "--names", "few.txt", "-o", "m")
    assert (refused.code, refused.err) == (
        2,
        "shortlist: few.txt: there are 2 names for 4 labels\n",
    )


def test_weights_names_and_missing_values_of_a_table(command, files):
    weight = np.arange(120) % 3
    ids = np.array([f"row {i}" for i in range(120)])
    cells = files.X.astype(str).astype(object)
    cells[::10, 0] = "NA"
    columns = ["who", "note", *"pqrst", "w", "label"]
    path = files.write_csv("people.csv", columns, ids, ids, cells, weight, NAMES[files.y])
    options = ["--id", "who", "--drop", "note", "--weight", "w"]
    refused = command("train", path, "-o", "m", *options)
    assert "line 2: column 'p' is 'NA', not a number" in refused.err
    assert command("train", path, "-o", "m", *options, "--missing", "mean", "-q").code == 0
    filled = files.X.copy()
    filled[::10, 0] = filled[np.arange(120) % 10 != 0, 0].mean()
    expected = shortlist.TopKClassifier(random_state=0).fit(
        filled, NAMES[files.y], sample_weight=weight
    )
    np.testing.assert_allclose(shortlist.load("m").coef_, expected.coef_, rtol=1e-9)
    # Predictions repeat the names; the means are those of training; other columns may be absent.
    Path("one.csv").write_text("t,s,r,q,p,who\n1,2,3,4,n/a,Zoë\n")
    (line,) = command("predict", "m", "one.csv", "--no-scores").out.splitlines()[1:]
    (label,) = expected.predict([[filled[0, 0], 4, 3, 2, 1]])
    assert line == f"Zoë,{label}"
    assert command("train", path, "-o", "m", *options, "--missing", "drop").err.splitlines()[1] == (
        f"{path}: 108 examples, 5 features, 4 classes, 12 more left out for missing values"
    )


def test_several_labels(command, tmp_path):
    """Examples of one or two of the labels 10, 20 and 30, in LibSVM's way to write them."""
    random = np.random.default_rng(0)
    Y = random.random((80, 3)) < 0.5
    X = np.hstack([4.0 * Y, random.normal(size=(80, 2))])
    lines = []
    for labels, row in zip(Y, X, strict=True):
        listed = ",".join(str(10 * (j + 1)) for j in np.flatnonzero(labels))
        lines.append(f"{listed} " + " ".join(f"{j}:{value}" for j, value in enumerate(row)))
    Path("several.svm").write_text("\n".join(lines) + "\n")
    Path("bare.svm").write_text("\n".join(line.split(" ", 1)[1] for line in lines) + "\n")
    ended = command("train", "several.svm", "-o", "m", "--loss", "hinge", "-C", 0.01, "--json")
    assert ended.err.splitlines()[0] == (
        "several labels an example, 3 in all; 5 features; indices from 0 (there is an index 0)"
    )
    loaded = shortlist.load("m")
    assert loaded.multilabel_
    assert json.loads(ended.out)["accuracy"]["training"]["top-1"] == loaded.score(X, Y)
    rows = command("predict", "m", "bare.svm", "-k", 2, "--no-scores").out.splitlines()[1:]
    assert rows == [f"{10 * (a + 1)},{10 * (b + 1)}" for a, b in loaded.predict_topk(X, 2)]
    told = json.loads(command("evaluate", "m", "several.svm", "--json", "-k", 2).out)
    best = loaded.predict_topk(X, 2)
    for column, entry in enumerate(told["classes"]):
        mine = Y[:, column]
        assert (entry["label"], entry["n_samples"]) == (10 * (column + 1), mine.sum())
        assert entry["topk"] == pytest.approx((best[mine] == column).any(axis=1).mean())
    assert told["accuracy"]["test"]["top-1"] == pytest.approx(loaded.score(X, Y))
    args = ["--loss", "hinge", "--json", "-q", "-v", 2]
    one = json.loads(command("train", "several.svm", *args, "-C", 0.01).out)
    ended = command("cv", "several.svm", *args, "--Cs", "0.01,1", "--ks", "1,2", "-o", "chosen")
    searched = TopKClassifierCV(
        "hinge", Cs=[0.01, 1.0], ks=(1, 2), cv=2, max_extensions=0, random_state=0
    ).fit(X, Y)
    table = json.loads(ended.out)["table"]
    np.testing.assert_allclose(table["mean_top2"], searched.cv_results_["mean_top2"])
    assert one["accuracy"]["cross-validation"]["top-1"] == pytest.approx(table["mean_top1"][0])
    told = json.loads(command("evaluate", "chosen", "several.svm", "--json").out)
    assert told["accuracy"]["test"]["top-2"] == pytest.approx(
        searched.model_for(2).set_params(k=2).score(X, Y)
    )
    Path("strange.svm").write_text("10,40 0:1\n")
    assert "label 40 is none of the model's" in command("evaluate", "m", "strange.svm").err


@pytest.mark.parametrize("kind", ["standard", "minmax", "l2"])
def test_scaling_is_kept_in_the_model(command, files, kind):
    """The oracle is a pipeline of scikit-learn's own scalers."""
    from sklearn import preprocessing
    from sklearn.pipeline import make_pipeline

    scaler = {
        "standard": preprocessing.StandardScaler(),
        "minmax": preprocessing.MinMaxScaler(),
        "l2": preprocessing.Normalizer(),
    }[kind]
    X = files.X * np.array([1000, 1, 0.01, 1, 1])
    path = files.write_csv("uneven.csv", [*"pqrst", "y"], X, files.y)
    hinted = command("train", path, "-o", "m")
    assert hinted.err.splitlines()[2].startswith("hint: values of column 'p' are around ")
    ended = command("train", path, "-o", "m", "--scale", kind, "--val", path, "--json")
    assert ended.err.splitlines()[0].endswith(f"5 features; scaled: {kind}")
    assert "hint" not in ended.err
    expected = make_pipeline(scaler, shortlist.TopKClassifier(random_state=0)).fit(X, files.y)
    accuracy_there = expected.score(X, files.y)
    accuracies = json.loads(ended.out)["accuracy"]
    assert accuracies["validation"] == accuracies["training"] == {"top-1": accuracy_there}
    few = files.write_csv("few.csv", [*"pqrst"], X[:7])
    predicted = command("predict", "m", few, "--no-scores").out.split()[1:]
    assert predicted == expected.predict(X[:7]).astype(str).tolist()


def test_sparse_data_is_scaled_without_a_shift(command):
    Path("wide.svm").write_text("1 1:500 900:1\n2 2:-200 900:1\n1 1:400\n2 2:-300\n" * 3)
    assert command("train", "wide.svm", "-o", "m", "--scale", "minmax", "-q").code == 0
    scaling = shortlist.load("m").data_["reading"]["scaling"]
    assert (scaling["kind"], scaling["shift"]) == ("minmax", None)
    assert scaling["factor"][:2] == [1 / 500, 1 / 300]
    assert accuracy(command, "m", "wide.svm") == 1.0


FORMATS = ["csr.npz", "a.mat", "a.feather", "shards"]


@pytest.mark.parametrize("source", FORMATS)
def test_further_formats(command, files, source):
    """Each gives the model of the LibSVM file."""
    options = []
    if source == "csr.npz":
        sparse.save_npz(source, sparse.csr_matrix(files.X))
        Path("labels.txt").write_text("\n".join(map(str, files.y)))
        options = ["--labels", "labels.txt"]
    elif source == "a.mat":
        savemat(source, {"X": files.X, "y": files.y})
    elif source == "a.feather":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import feather

        columns = {**dict(zip("pqrst", files.X.T, strict=True)), "y": files.y}
        feather.write_feather(pyarrow.table(columns), source)
    else:
        Path("shards").mkdir()
        for number, rows in enumerate(np.array_split(np.arange(120), 3)):
            np.savez(f"shards/{number}.npz", X=files.X[rows], y=files.y[rows])
    assert command("train", source, *options, "-o", "m", "-q").code == 0
    expected = shortlist.TopKClassifier(random_state=0).fit(files.X, files.y)
    np.testing.assert_allclose(shortlist.load("m").coef_, expected.coef_, rtol=1e-9)
    ended = command("predict", "m", source, "--no-scores")
    assert ended.out.split()[1:] == expected.predict(files.X).astype(str).tolist()


def test_outputs_that_are_no_files(command, files, model, tmp_path):
    text = command("predict", model, files / "data.svm")
    assert shell("predict", model, files / "data.svm", "-o", "/dev/stdout").out == text.out
    silent = command("predict", model, files / "data.svm", "-o", os.devnull)
    assert (silent.code, silent.out, silent.err) == (0, "", "")
    with open(tmp_path / "m", "wb") as file:
        ended = shell("train", files / "data.svm", "-k", 2, "-o", "-", stdout=file)
    assert ended.code == 0
    assert "within" in ended.err
    np.testing.assert_array_equal(shortlist.load(tmp_path / "m").coef_, shortlist.load(model).coef_)
    ended = command("train", files / "data.svm", "-k", 2, "-o", os.devnull)
    assert ended.out.endswith(f"written to {os.devnull}\n")


def test_predictions_for_a_matrix_that_has_its_labels_as_a_column(command, files):
    np.save("Xy.npy", np.column_stack([files.X, files.y]))
    np.save("X.npy", files.X)
    assert command("train", "Xy.npy", "--label", -1, "-o", "m", "-q").code == 0
    assert command("predict", "m", "Xy.npy").out == command("predict", "m", "X.npy").out != ""


def test_lists_in_a_column_are_in_their_order(command, files):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    feather.write_feather(
        pyarrow.table({"embedding": list(files.X), "label": NAMES[files.y]}), "a.feather"
    )
    assert command("train", "a.feather", "-o", "m", "-q").code == 0
    ended = command("predict", "m", "a.feather")
    assert (ended.code, ended.err) == (0, "")


def test_sparse_text_with_more_features_than_the_table_of_a_model(command, named_model):
    Path("wide.svm").write_text("1 1:1 9:1\n")
    ended = command("predict", named_model, "wide.svm")
    assert ended.code == 2
    assert "line 1: feature index 9 is beyond the 5 features expected" in ended.err


@pytest.mark.parametrize(("name", "drop"), [("", "0"), ("id", "id")])
def test_a_column_that_numbers_the_examples_is_told(command, name, drop):
    rows = [f"{i},{i % 3},{'ab'[i % 2]}" for i in range(10)]
    Path("a.csv").write_text("\n".join([f"{name},size,label", *rows]) + "\n")
    told = command("train", "a.csv", "-o", "m").err
    assert f"taken for a feature: --drop {drop} leaves it out" in told
    assert "hint" not in command("train", "a.csv", "--drop", drop, "-o", "m").err
