"""The JSON of the commands: described by one schema, with the same keys."""

import pytest

from tests.cli.schema import SCHEMA, check


def test_train(command, files):
    ended = command(
        "train", files / "data.svm", "--val", files / "data.svm", "-o", "m", "-q", "--json"
    )
    told = check("train", ended.out)
    assert told["command"] == "train"
    assert set(told["accuracy"]) == {"training", "validation"}
    ended = command("train", files / "data.svm", "-k", 2, "-v", 2, "-q", "--json")
    told = check("train -v", ended.out)
    assert set(told["accuracy"]["cross-validation"]) == set(told["folds"]) == {"top-1", "top-2"}


def test_search_and_its_evaluation(command, files):
    args = ["--Cs", "0.001,1", "--ks", "1,2", "--val", files / "data.svm"]
    told = check("cv", command("cv", files / "data.svm", *args, "-o", "m", "-q", "--json").out)
    evaluated = check("evaluate", command("evaluate", "m", files / "data.svm", "--json").out)
    assert told["chosen"]["top-2"] == evaluated["chosen"]["top-2"]
    assert told["accuracy"]["validation"]["top-2"] == evaluated["accuracy"]["test"]["top-2"]
    # The table for people says whose figures they are, too.
    C = told["chosen"]["top-2"]["C"]
    lines = command("evaluate", "m", files / "data.svm", "-q", "--ks", 2).out.splitlines()
    assert any(line.rstrip().endswith(f"entropy, k=1, C={C:.4g}") for line in lines)


def test_evaluation_has_the_ks_and_classes_that_are_asked_for(command, files, named_model):
    args = ["evaluate", named_model, files / "data.csv", "--json"]
    told = check("evaluate", command(*args, "--ks", "1,3", "--classes", 2).out)
    assert list(told["accuracy"]["test"]) == list(told["chosen"]) == ["top-1", "top-3"]
    everything = check("evaluate", command(*args, "--classes", -1).out)
    assert len(everything["classes"]) == 4
    ordered = sorted(everything["classes"], key=lambda entry: (entry["topk"], entry["top1"]))
    assert sorted(told["classes"], key=ordered.index) == ordered[:2]
    assert check("evaluate", command(*args, "--classes", 0).out)["classes"] == []


def test_predictions(command, files, named_model):
    ended = command("predict", named_model, files / "data.csv", "--json")
    for line in ended.out.splitlines():
        assert set(check("predict", line)) == {"labels", "scores"}


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("info without a model", ["info", "--json", "-q"]),
        ("reproduce without a name", ["reproduce", "--json", "-q"]),
    ],
)
def test_what_needs_no_model(command, kind, args):
    check(kind, command(*args).out)


def test_info_and_export(command, model):
    assert check("info", command("info", model, "--json", "-q").out)["model"] == model
    ended = command("export", model, "-o", "m.onnx", "--json", "-q")
    assert check("export", ended.out)["model"] == model


def test_compiling_ahead(command, model, monkeypatch):
    """Nothing is compiled here, which takes long; a model has been trained before."""
    from shortlist.cli.warm import _Fit

    monkeypatch.setattr(_Fit, "run", lambda _: None)
    told = check("warm", command("warm", "--loss", "softmax", "--json", "-q").out)
    assert told["kernels"] > 0


def test_the_schema_describes_every_command():
    from shortlist.cli.app import app

    described = {kind.split()[0] for kind in SCHEMA["$defs"]}
    assert {command.callback.__name__ for command in app.registered_commands} <= described
