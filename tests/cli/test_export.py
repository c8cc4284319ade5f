"""shortlist export: a file that answers as predict does."""

import csv
import io
import json
import os
import sys

import numpy as np
import pytest

from tests.cli.conftest import NAMES

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")


@pytest.mark.parametrize("k", [2, 3])
def test_the_file_answers_as_predict_does(command, files, named_model, k):
    ended = command("export", named_model, "-o", "model.onnx", "-k", k)
    assert (ended.code, ended.err) == (0, "")
    assert "model.onnx: " in ended.out
    assert f"entropy with C=1, shortlists of {k}" in ended.out
    assert "outputs: label, scores, topk_labels, topk_scores" in ended.out
    session = onnxruntime.InferenceSession("model.onnx")
    _, _, labels, scores = session.run(None, {"X": files.X.astype(np.float32)})
    shown = command("predict", named_model, files / "bare.csv", "--label", "none", "-k", k).out
    rows = list(csv.reader(io.StringIO(shown)))[1:]
    assert [row[:k] for row in rows] == labels.tolist()
    np.testing.assert_allclose([[float(s) for s in row[k:]] for row in rows], scores, atol=1e-5)


def test_json_and_quiet(command, model):
    ended = command("export", model, "-o", "m.onnx", "--json", "--dtype", "float64", "--opset", 15)
    told = json.loads(ended.out)
    assert (told["file"], told["opset"], told["metadata"]["k"]) == ("m.onnx", 15, "2")
    assert told["outputs"] == ["label", "scores", "topk_labels", "topk_scores"]
    assert onnxruntime.InferenceSession("m.onnx").get_inputs()[0].type == "tensor(double)"
    assert command("export", model, "-o", "m.onnx", "-q").out == ""


def test_the_model_itself_is_not_overwritten(command, model):
    before = os.stat(model)
    os.symlink(model, "link.onnx")
    for file in (model, "link.onnx"):
        ended = command("export", model, "-o", file)
        assert ended.code == 2
        assert "is also an input, and would be lost" in ended.err
    assert os.stat(model) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", 9], "k must lie between 1 and 4"),
        (["--opset", 3], "opset must be from 13"),
        (["-o", "nowhere/m.onnx"], "no such directory"),
    ],
)
def test_bad_options_are_one_line(command, model, options, message):
    ended = command("export", model, "-o", "m.onnx", *options)
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not os.path.exists("m.onnx")


def test_without_the_extra_the_message_says_what_to_install(command, model, monkeypatch):
    monkeypatch.delitem(sys.modules, "shortlist.onnx", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    ended = command("export", model, "-o", "m.onnx")
    assert ended.code == 1
    assert "needs onnx, which is not installed: pip install 'shortlist[onnx]'" in ended.err


def test_scaling_and_names_go_into_the_file(command, files):
    """Features are given as they are in the data; the graph scales them."""
    X = files.X * np.array([1000, 1, 0.01, 1, 1])
    np.savez("train.npz", X=X, y=files.y, target_names=NAMES)
    for kind in ("standard", "l2"):
        assert command("train", "train.npz", "-o", "m", "--scale", kind, "-q").code == 0
        assert command("export", "m", "-o", "m.onnx", "--dtype", "float64").code == 0
        (labels,) = onnxruntime.InferenceSession("m.onnx").run(["label"], {"X": X})
        predicted = command("predict", "m", "train.npz", "--no-scores").out.splitlines()[1:]
        assert predicted == [f"{label},{NAMES[label]}" for label in labels]
    told = json.loads(command("export", "m", "-o", "m.onnx", "--json").out)
    assert json.loads(told["metadata"]["class_names"])[2] == [2, "cat"]
