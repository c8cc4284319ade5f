"""Predictions and accuracies are the library's own, for the data's columns in their order."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import shortlist
from shortlist.metrics import topk_accuracy_curve
from shortlist.probabilities import TemperatureScaling
from tests.cli.conftest import NAMES, shell, start

# The library is asked with arrays about a model that knows its columns' names.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_on_standard_output(files, model):
    ended = shell("predict", model, files / "data.svm", "--k", 3)
    assert (ended.code, ended.err) == (0, "")
    rows = rows_of(ended.out)
    labels = np.array([[int(row[f"label_{i}"]) for i in (1, 2, 3)] for row in rows])
    scores = np.array([[float(row[f"score_{i}"]) for i in (1, 2, 3)] for row in rows])
    loaded = shortlist.load(model)
    np.testing.assert_array_equal(labels, loaded.predict_topk(files.X, k=3))
    expected = -np.sort(-loaded.decision_function(files.X), axis=1)[:, :3]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_json_lines_in_a_file(command, files, named_model):
    ended = command("predict", named_model, files / "data.csv", "--json", "-o", "out.jsonl")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    entries = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    loaded = shortlist.load(named_model)
    assert [e["labels"] for e in entries] == loaded.predict_topk(files.X).tolist()
    assert all(e["scores"][0] >= e["scores"][1] for e in entries)


@pytest.mark.parametrize("source", ["bare.csv", "X.npy", "data.csv", "data.svm"])
def test_labels_are_neither_needed_nor_looked_at(command, files, model, named_model, source):
    trained = model if source in ("X.npy", "data.svm") else named_model
    ended = command("predict", trained, files / source, "--no-scores", "-k", 1)
    expected = shortlist.load(trained).predict(files.X).astype(str).tolist()
    assert ended.out.splitlines() == ["label_1", *expected]


def test_unlabelled_csv_from_standard_input(files, named_model):
    text = Path(files / "bare.csv").read_text()
    ended = shell("predict", named_model, "-", "--format", "csv", "--no-scores", input=text)
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 121


def test_columns_in_another_order_are_matched_by_name(command, files, named_model):
    other = files.write_csv("turned.csv", [*"tsrqp"], files.X[:, ::-1])
    turned = command("predict", named_model, other)
    assert turned.err == f"shortlist: {other}: columns in another order are matched by name\n"
    assert turned.out == command("predict", named_model, files / "bare.csv").out


def test_a_missing_column_is_named(command, files, named_model):
    other = files.write_csv("strange.csv", [*"pqrsz"], files.X)
    ended = command("predict", named_model, other)
    assert ended.code == 2
    assert ended.err == f"shortlist: {other}: lacks the column 't'\n"


def test_probabilities_where_the_loss_has_them(command, files, model):
    assert command("train", files / "data.svm", "-o", "soft", "-q").code == 0
    rows = rows_of(command("predict", "soft", files / "data.svm", "--proba", "-k", 4).out)
    shares = np.array([[float(row[f"probability_{i}"]) for i in (1, 2, 3, 4)] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)
    refused = command("predict", model, files / "data.svm", "--proba")
    assert refused.code == 2
    assert "gives scores but no probabilities" in refused.err


def test_a_reader_that_leaves_is_no_error(files, model):
    """As in ``shortlist predict ... | head -1``, with more output than a pipe holds."""
    long = files.folder / "long.svm"
    long.write_text(Path(files / "data.svm").read_text() * 100)
    process = start("predict", model, long)
    assert process.stdout.readline().startswith("label_1")
    process.stdout.close()
    err = process.stderr.read()
    assert (process.wait(60), err) == (141, "")


def test_help_to_a_reader_that_has_left():
    read, write = os.pipe()
    os.close(read)
    process = start("train", "--help", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, "")


def test_the_curve_and_the_classes(command, files, model):
    ended = command("evaluate", model, files / "parts.npz", "--json")
    told = json.loads(ended.out)
    X, y = files.X[80:], files.y[80:]  # of several parts, test
    loaded = shortlist.load(model)
    curve = topk_accuracy_curve(y, loaded.decision_function(X), labels=loaded.classes_)
    np.testing.assert_allclose(list(told["accuracy"]["test"].values()), curve)
    assert told["k"] == 2
    predicted = loaded.predict(X)
    listed = loaded.predict_topk(X)
    for entry in told["classes"]:
        mine = y == entry["label"]
        assert entry["n_samples"] == mine.sum()
        assert entry["top1"] == pytest.approx((predicted[mine] == entry["label"]).mean())
        assert entry["topk"] == pytest.approx((listed[mine] == entry["label"]).any(axis=1).mean())
        wrong = predicted[mine & (predicted != y)]
        if len(wrong):
            assert entry["mistakes"] == np.bincount(wrong).max()
            assert entry["mistakes"] == (wrong == entry["mistaken_for"]).sum()
        else:
            assert (entry["mistaken_for"], entry["mistakes"]) == (None, 0)
    assert [entry["label"] for entry in told["classes"]] == sorted(set(y.tolist()))


def test_tables_for_people(command, files, named_model):
    ended = command("evaluate", named_model, files / "data.csv", "--ks", "1,3", "--classes", -1)
    assert ended.code == 0
    assert "data.csv: 120 examples, 5 features, 4 classes" in ended.out
    lines = [line.split() for line in ended.out.splitlines()]
    curve = [line for line in lines if line and line[0] in ("1", "2", "3")]
    assert [line[0] for line in curve] == ["1", "3"]
    loaded = shortlist.load(named_model)
    right = (loaded.predict(files.X) == NAMES[files.y]).mean()
    assert curve[0][1] == f"{100 * right:.2f}"
    assert sorted(line[0] for line in lines if line and line[0] in NAMES) == sorted(NAMES)
    without = command("evaluate", named_model, files / "data.csv", "--classes", 0)
    assert "mistaken" not in without.out


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic", "expected"])
def test_tie_policies_are_those_of_the_metrics(files, ties):
    from shortlist.cli.ranking import rank_labels
    from shortlist.datasets.containers import LabeledData

    class Rounded:
        """Scores with many ties."""

        classes_ = np.arange(4)

        def decision_function(self, X):
            return np.round(X[:, :4])

    data = LabeledData(files.X, files.y)
    ranking = rank_labels(Rounded(), data, ties)
    with pytest.warns(shortlist.metrics.TieWarning) if ties == "optimistic" else _nothing():
        expected = topk_accuracy_curve(files.y, np.round(files.X[:, :4]), ties=ties)
    np.testing.assert_allclose([ranking.accuracy(k) for k in range(1, 5)], expected)
    between = np.round(files.X[:, :4])
    assert ranking.decided_by_ties(1) == pytest.approx(
        np.mean(
            [
                (row[label] == row.max()) and (row == row.max()).sum() > 1
                for row, label in zip(between, files.y, strict=True)
            ]
        )
    )


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_labels_the_model_does_not_know_are_errors(command, files, model):
    from shortlist.datasets import write_libsvm

    y = np.where(files.y == 3, 7, files.y)
    write_libsvm(files / "unknown.svm", files.X, y)
    ended = command("evaluate", model, files / "unknown.svm", "--json")
    told = json.loads(ended.out)
    assert told["n_unknown_labels"] == (files.y == 3).sum()
    assert told["accuracy"]["test"]["top-4"] == pytest.approx((files.y != 3).mean())
    assert "have labels that the model does not know" in ended.err


def test_text_against_numbers_is_refused(command, files, model):
    ended = command("evaluate", model, files / "data.csv")
    assert ended.code == 2
    assert "labels are text, but the model's are numbers" in ended.err


def test_blocks_of_scores_are_joined(files, model, monkeypatch):
    from shortlist.cli import models

    loaded = shortlist.load(model)
    monkeypatch.setattr(models, "_SCORES_PER_BLOCK", 28)  # 7 rows of 4 classes
    blocks = list(models.score_blocks(loaded, files.X))
    assert [rows.stop - rows.start for rows, _ in blocks] == [7] * 17 + [1]
    joined = np.vstack([scores for _, scores in blocks])
    np.testing.assert_allclose(joined, loaded.decision_function(files.X), rtol=1e-12)


def test_the_entry_point_is_installed():
    import shutil
    import sys

    script = shutil.which("shortlist", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the package is not installed with its command")
    ended = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert ended.stdout == f"shortlist {shortlist.__version__}\n"


def test_probabilities_of_any_loss_are_fitted_to_other_examples(command, files, model):
    data = files / "data.svm"
    ended = command("predict", model, data, "--proba")
    assert ended.code == 2
    assert "--calibrate FILE" in ended.err
    ended = command("predict", model, data, "--proba", "--calibrate", data, "-k", 3, "-q")
    lines = [line.split(",") for line in ended.out.splitlines()]
    assert lines[0] == [f"{word}_{i}" for word in ("label", "probability") for i in (1, 2, 3)]
    scaled = TemperatureScaling(shortlist.load(model)).fit(files.X, files.y)
    expected = np.sort(scaled.predict_proba(files.X), axis=1)[:, :0:-1]
    np.testing.assert_allclose(np.array(lines[1:])[:, 3:].astype(float), expected, rtol=1e-6)


STRANGE = np.array(["=1+1", "\x1b[31mred", "plain", "@sum"])


def test_formulas_are_defused_only_if_asked(command, files):
    path = files.write_csv("strange.csv", [*"pqrst", "label"], files.X, STRANGE[files.y])
    assert command("train", path, "-o", "m", "-q").code == 0
    as_is = command("predict", "m", path, "--no-scores")
    labels = shortlist.load("m").predict(files.X).tolist()
    assert as_is.out.splitlines()[1:] == labels
    assert as_is.err == ""
    asked = command("predict", "m", path, "--no-scores", "--spreadsheet")
    changed = [f"'{label}" if label[0] in "=@" else label for label in labels]
    assert asked.out.splitlines()[1:] == changed
    count = sum(label[0] in "=@" for label in labels)
    assert asked.err == f"shortlist: a ' was put before {count} fields that begin like a formula\n"


def test_control_characters_do_not_reach_a_terminal(command, files, monkeypatch, capsys):
    path = files.write_csv("strange.csv", [*"pqrst", "label"], files.X, STRANGE[files.y])
    assert command("train", path, "-o", "m", "-q").code == 0
    assert "\x1b[31mred" in command("predict", "m", path, "--no-scores").out
    assert "\\x1b[31mred" in command("evaluate", "m", path, "--classes", -1).out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for arguments in (["predict", "m", path], ["predict", "m", path, "--json"]):
        shown = command(*arguments).out
        assert "red" in shown
        assert "\x1b" not in shown
