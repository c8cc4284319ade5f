"""Training that begins at the weights of a saved model."""

import json

import numpy as np
import pytest

import shortlist
from tests.cli.conftest import NAMES


def train(command, *args):
    ended = command("train", *args, "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_the_same_problem_is_solved_already(command, files, model):
    told = train(command, files / "data.svm", "-k", 2, "--warm-start", model, "-o", "again")
    assert told["epochs"] == 0
    loaded = shortlist.load("again")
    assert loaded.result_.relative_gap <= 1e-3
    assert not loaded.warm_start
    assert told["primal"] == pytest.approx(shortlist.load(model).result_.primal)


def test_another_cost_has_the_optimum_of_a_cold_start(command, files, model):
    args = [files / "data.svm", "-k", 2, "-C", 3, "-e", 1e-6]
    cold = train(command, *args, "-o", "cold")
    warm = train(command, *args, "-o", "warm", "--warm-start", model)
    assert warm["primal"] == pytest.approx(cold["primal"], rel=2e-6)
    assert warm["status"] == "converged"
    assert warm["epochs"] < cold["epochs"]


def test_data_is_read_as_that_of_the_model(command, files):
    command("train", files / "data.csv", "-o", "scaled", "--scale", "standard", "-q")
    other = files.write_csv("other.csv", [*"tsrqp", "label"], files.X[:, ::-1], NAMES[files.y])
    told = train(command, other, "--warm-start", "scaled", "-o", "again")
    assert told["epochs"] == 0
    evaluated = [command("evaluate", m, other, "--json").out for m in ("scaled", "again")]
    first, second = (json.loads(text)["accuracy"] for text in evaluated)
    assert first == second


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["data.svm", "-k", 1], "was trained with -k 2, and a warm start takes the same loss"),
        (["data.svm", "-k", 2, "--loss", "hinge"], "hinge is trained by its duals"),
        (["data.svm", "--kernel", "rbf", "-k", 2], "--warm-start does not go with --kernel"),
        (["X.npy", "--labels", "odd.npy", "-k", 2], "has labels that {model} has not: 7"),
        (["X.npy", "--labels", "few.npy", "-k", 2], "lacks labels that {model} has: 3"),
        (["wide.npy", "--labels", "y.npy", "-k", 2], "has 6 features where 5 are expected"),
    ],
)
def test_refusals(command, files, model, args, words):
    np.save(files / "odd.npy", np.where(files.y == 3, 7, files.y))
    np.save(files / "few.npy", np.where(files.y == 3, 0, files.y))
    np.save(files / "wide.npy", np.hstack([files.X, files.X[:, :1]]))
    named = [files / arg if arg.endswith((".npy", ".svm")) else arg for arg in map(str, args)]
    ended = command("train", *named, "--warm-start", model, "-o", "again")
    assert ended.code == 2
    assert words.format(model=model) in ended.err


def test_the_model_is_not_replaced(command, files, model):
    ended = command("train", files / "data.svm", "--warm-start", model, "-o", model)
    assert "is also an input, and would be lost" in ended.err
