"""Training: the model is the library's own, whatever the format, and LIBLINEAR's options."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import shortlist
from shortlist import TopKClassifier
from tests.cli.conftest import NAMES, shell, start


def fitted(X, y, **parameters):
    return TopKClassifier(**{"k": 2, "random_state": 0, **parameters}).fit(X, y)


def test_a_saved_model_is_the_one_the_library_trains(files, model):
    loaded = shortlist.load(model)
    expected = fitted(files.X, files.y)
    np.testing.assert_allclose(loaded.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(loaded.intercept_, expected.intercept_, rtol=1e-9)
    assert loaded.verbose == 0


@pytest.mark.parametrize(
    "source", [["data.svm.gz"], ["parts.npz"], ["X.npy", "--labels", "y.npy"]], ids=lambda s: s[0]
)
def test_formats(command, files, source):
    args = [files / part if "." in part else part for part in source]
    assert command("train", *args, "-o", "m", "-k", 2, "-q").code == 0
    rows = slice(80) if source[0] == "parts.npz" else slice(None)  # of several parts, train
    expected = fitted(files.X[rows], files.y[rows])
    np.testing.assert_allclose(shortlist.load("m").coef_, expected.coef_, rtol=1e-9)


def test_standard_input_and_text_labels(files, tmp_path):
    text = Path(files / "data.csv").read_text()
    path = tmp_path / "m"
    ended = shell("train", "-", "--format", "csv", "-o", path, "-k", 2, input=text)
    assert ended.code == 0
    first, second = ended.err.splitlines()[:2]
    assert first == "labels: column 'label' (guessed: by its name); 5 features"
    assert second == "standard input: 120 examples, 5 features, 4 classes"
    assert "within" in ended.out
    assert f"saved in {path}" in ended.out
    loaded = shortlist.load(path)
    assert loaded.classes_.tolist() == NAMES.tolist()
    assert loaded.feature_names_in_.tolist() == [*"pqrst"]


def test_json_tells_what_the_certificate_says(command, files):
    ended = command("train", files / "data.svm", "-o", "m", "-k", 2, "--json", "-q")
    told = json.loads(ended.out)
    loaded = shortlist.load("m")
    assert told["status"] == "converged"
    assert told["primal"] == loaded.result_.primal
    assert told["relative_gap"] == loaded.result_.relative_gap <= 1e-3
    assert told["accuracy"]["training"]["top-2"] == loaded.score(files.X, files.y)
    assert told["model"] == "m"
    assert ended.err == ""


def test_liblinear_options(command, files):
    """-c, -e and -B mean the same; a bias of zero or less is none."""
    args = ["train", files / "data.svm", "-k", 2, "-q", "-o", "m"]
    assert command(*args, "-c", 0.25, "-e", 1e-6, "-B", 2).code == 0
    loaded = shortlist.load("m")
    assert (loaded.C, loaded.tol, loaded.intercept_scaling) == (0.25, 1e-6, 2.0)
    assert loaded.result_.relative_gap <= 1e-6
    for none in (["-B", "-1"], ["-B", "0"], ["--no-intercept"]):
        assert command(*args, *none).code == 0
        loaded = shortlist.load("m")
        assert not loaded.fit_intercept
        assert not loaded.intercept_.any()


def test_class_weights(command, files):
    args = ["train", files / "data.csv", "-k", 2, "-q", "-o", "m"]
    assert command(*args, "--class-weight", "dog=3", "--class-weight", "bee=0.5").code == 0
    expected = fitted(files.X, NAMES[files.y], class_weight={"dog": 3.0, "bee": 0.5})
    np.testing.assert_allclose(shortlist.load("m").coef_, expected.coef_, rtol=1e-9)
    assert command(*args, "--class-weight", "balanced").code == 0
    assert shortlist.load("m").class_weight == "balanced"


def test_validation_data_is_read_in_the_order_of_the_training_columns(command, files):
    X, y = files.X[::-1], NAMES[files.y[::-1]]
    other = files.write_csv("other.csv", ["label", *"tsrqp"], y, X[:, ::-1])
    ended = command("train", files / "data.csv", "-k", 2, "-o", "m", "--val", other, "--json", "-q")
    accuracy = json.loads(ended.out)["accuracy"]
    assert accuracy["validation"] == accuracy["training"]


def test_bad_validation_data_is_found_before_training(command, files, tmp_path):
    ended = command("train", files / "data.svm", "-k", 2, "-o", "m", "--val", files / "parts.npz")
    assert ended.code == 2
    expected = f"shortlist: {files / 'parts.npz'}: holds no part 'val', only train, test\n"
    assert ended.err == expected
    assert list(tmp_path.iterdir()) == []


def test_not_converged_is_a_warning(command, files):
    ended = command("train", files / "data.svm", "-o", "m", "-k", 2, "--max-epochs", 1, "-e", 1e-12)
    assert ended.code == 0
    warning = ended.err.splitlines()[-1]
    assert warning.startswith("shortlist: warning: not converged after 1 epochs")
    assert "not converged" in ended.out
    assert shortlist.load("m").result_.status == "max_epochs"


def test_a_memory_limit_keeps_the_features_on_disk(command, files, tmp_path):
    shards = tmp_path / "shards"
    shards.mkdir()
    for number, rows in enumerate((slice(0, 50), slice(50, 120))):
        np.savez(shards / f"{number}.npz", X=files.X[rows], y=files.y[rows])
    ended = command("train", str(shards), "-o", files / "model", "--memory-limit", "8GB")
    assert ended.code == 0
    assert "memory limit 8GB: rows and duals in memory" in ended.err
    whole = TopKClassifier(random_state=0).fit(files.X, files.y)
    np.testing.assert_array_equal(shortlist.load(files / "model").coef_, whole.coef_)
    for wrong in (
        ["-v", "3", "--memory-limit", "8GB"],
        ["-o", files / "other", "--ray", "auto"],
        ["-o", files / "other", "--kernel", "rbf", "--workers", "2"],
    ):
        refused = command("train", str(shards), *wrong)
        assert refused.code == 2
        assert wrong[-2] in refused.err
    limited = ["--workers", "2", "--memory-limit", "8GB"]
    for data, reason in (
        (["letter"], "letter is a data set by name"),
        (["-", "--format", "csv"], "standard input is read once"),
        ([str(shards), "--scale", "standard"], "--scale takes its numbers from all examples"),
    ):
        refused = command("train", *data, "-o", files / "other", *limited)
        assert refused.code == 2
        assert f"the workers read DATA themselves, but {reason}" in refused.err


def test_cross_validation_makes_no_model(command, files, tmp_path):
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    ended = command("train", files / "data.svm", "-k", 2, "-v", 3, "--json", "-q")
    told = json.loads(ended.out)
    estimator = TopKClassifier(k=2, random_state=0)
    expected = cross_val_score(estimator, files.X, files.y, cv=StratifiedKFold(3))
    np.testing.assert_allclose(told["folds"]["top-2"], expected)
    mean = told["accuracy"]["cross-validation"]["top-2"]
    np.testing.assert_allclose(mean, expected.mean())
    assert list(tmp_path.iterdir()) == []
    ended = command("train", files / "data.svm", "-k", 2, "-v", 3, "-q")
    assert ended.out.startswith("3-fold cross-validation accuracy: top-1 ")


# A line of progress after a tenth of a second of training, not after five.
IMPATIENT = """
from shortlist import _progress
_progress.SECONDS_BETWEEN_LINES = 0.1
from shortlist.cli import main
main()
"""


def test_interrupted_training_saves_the_model_so_far(tmp_path):
    path = tmp_path / "m"
    slow = ["--loss", "hinge", "-k", 5, "-C", 1e5, "-e", 1e-14, "--max-epochs", 10**7]
    process = start("train", "letter", "-o", path, *slow, how=("-c", IMPATIENT))
    for line in process.stderr:
        if "epoch" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"the model reached so far is saved in {path}" in err
    assert err.endswith("shortlist: interrupted\n")
    assert "Traceback" not in err
    loaded = shortlist.load(path)
    assert loaded.result_.status == "interrupted"
    assert loaded.coef_.any()


def test_kernels(command, files):
    kernel = ["--kernel", "rbf", "--gamma", 0.1]
    ended = command(
        *["train", files / "data.svm", "--loss", "hinge", "-C", 10, *kernel, "-q", "-o", "m"]
    )
    assert (ended.code, ended.err) == (0, "")
    model = shortlist.load("m")
    assert (type(model).__name__, model.kernel, model.gamma_) == (
        "KernelTopKClassifier",
        "rbf",
        0.1,
    )
    first = command("predict", "m", files / "data.svm").out.splitlines()[1].split(",")[0]
    assert first == str(model.predict(files.X[:1])[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--degree", 2], "--degree goes with --kernel"),
        (["--kernel", "rbf", "--gamma", "wide"], "--gamma must be a number, scale or auto"),
        (["--kernel", "rbf", "--memory-limit", "4GB"], "--memory-limit is for linear scores"),
    ],
)
def test_options_of_kernels(command, files, options, message):
    ended = command("train", files / "data.csv", "-o", "m", *options)
    assert ended.code == 2
    assert message in ended.err


def test_a_reader_of_progress_that_leaves_does_not_end_training(files, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = shell("train", files / "data.csv", "-o", tmp_path / "m", stderr=writing)
    finally:
        os.close(writing)
    assert ended.code == 0
    assert "saved in" in ended.out
    assert shortlist.load(tmp_path / "m").result_.status == "converged"
