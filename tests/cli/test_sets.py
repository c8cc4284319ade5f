"""Lists as long as needed are those of the library, around the saved model."""

import csv
import io
import json

import numpy as np
import pytest

import shortlist
from shortlist.conformal import ConformalShortlist
from tests.cli.conftest import NAMES

# The library is asked with arrays about a model that knows its columns' names.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture(scope="module")
def calibration(files):
    """More examples of the same classes, as a CSV file and as arrays."""
    random = np.random.default_rng(1)
    y = random.integers(0, 4, 200)
    X = random.normal(size=(200, 5)) + 2 * np.eye(5)[y]
    return files.write_csv("calibration.csv", [*"pqrst", "label"], X, NAMES[y]), X, NAMES[y]


@pytest.mark.parametrize(
    ("option", "value", "parameters"),
    [
        ("--coverage", 0.95, {"confidence_level": 0.95}),
        ("--average-size", 1.5, {"average_size": 1.5}),
    ],
)
def test_lists_of_different_lengths(
    command, files, named_model, calibration, option, value, parameters
):
    path, X, y = calibration
    asked = ("predict", named_model, files / "data.csv", option, value, "--calibrate", path)
    sets = ConformalShortlist(shortlist.load(named_model), **parameters).conformalize(X, y)
    expected = [labels.tolist() for labels in sets.predict_lists(files.X)]
    longest = max(map(len, expected))
    assert len(set(map(len, expected))) > 1

    ended = command(*asked)
    assert (ended.code, ended.err) == (0, "")
    rows = list(csv.reader(io.StringIO(ended.out)))
    numbers = range(1, longest + 1)
    assert rows[0] == [f"label_{i}" for i in numbers] + [f"score_{i}" for i in numbers]
    assert [[cell for cell in row[:longest] if cell] for row in rows[1:]] == expected
    assert [sum(map(bool, row[longest:])) for row in rows[1:]] == [len(one) for one in expected]

    entries = [json.loads(line) for line in command(*asked, "--json").out.splitlines()]
    assert [entry["labels"] for entry in entries] == expected
    assert all(entry["scores"] == sorted(entry["scores"], reverse=True) for entry in entries)

    bare = command(*asked, "--no-scores").out.splitlines()
    assert bare[0] == ",".join(rows[0][:longest])


def test_a_searched_model_and_a_named_part(command, files):
    assert command("cv", files / "parts.npz", "-o", "searched", "--ks", "1,2", "-q").code == 0
    X, y = files.X[:80], files.y[:80]
    np.savez("more.npz", X_val=X, y_val=y, X_test=files.X[80:], y_test=files.y[80:])
    ended = command(
        "predict", "searched", "more.npz", "--coverage", 0.9, "--calibrate", "more.npz", "--json"
    )
    assert ended.code == 0, ended.err
    sets = ConformalShortlist(shortlist.load("searched"), 0.9).conformalize(X, y)
    expected = [labels.tolist() for labels in sets.predict_lists(files.X[80:])]
    assert [json.loads(line)["labels"] for line in ended.out.splitlines()] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coverage", 0.9], "need --calibrate FILE"),
        (
            ["--calibrate", "calibration.csv"],
            "--calibrate goes with --coverage, --average-size or --proba",
        ),
        (["--coverage", 0.9, "--average-size", 2], "exclude each other"),
        (
            ["--coverage", 95, "--calibrate", "calibration.csv"],
            "--coverage must be between 0 and 1",
        ),
        (["--average-size", 5, "--calibrate", "calibration.csv"], "above 0 and at most 4"),
        (["--coverage", 0.9, "--calibrate", "calibration.csv", "-k", 2], "--k and --coverage"),
        (["--coverage", 0.9999, "--calibrate", "calibration.csv"], "needs at least 9999"),
        (["--coverage", 0.9, "--calibrate", "bare.csv", "--label", "none"], "has no labels"),
        (["--coverage", 0.9, "--calibrate", "data.svm"], "text"),
    ],
)
def test_refusals_in_a_line(command, files, named_model, calibration, options, message):
    options = [files / one if str(one).endswith((".csv", ".svm")) else one for one in options]
    ended = command("predict", named_model, files / "data.csv", *options)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_saved_sets_are_shown_but_do_not_predict(command, files, named_model, calibration):
    _, X, y = calibration
    sets = ConformalShortlist(shortlist.load(named_model)).conformalize(X, y)
    shortlist.save(sets, "sets")
    ended = command("info", "sets")
    assert ended.code == 0
    assert "ConformalShortlist" in ended.out
    assert ["model", "TopKClassifier"] in [line.split() for line in ended.out.splitlines()]
    refused = command("predict", "sets", files / "data.csv")
    assert refused.err == "shortlist: sets: holds a ConformalShortlist, not a classifier\n"
