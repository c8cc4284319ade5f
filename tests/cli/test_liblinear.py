"""What users of LIBLINEAR type."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import shortlist
from shortlist.cli.options import LOSS_OF_TYPE, loss_of_type, with_weights_joined


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["-w1", "2"], ["-w", "1=2"]),
        (["-w-1", "0.5", "-w", "a=2"], ["-w", "-1=0.5", "-w", "a=2"]),
        (["-wa=2", "-wbalanced", "--weight", "w"], ["-wa=2", "-wbalanced", "--weight", "w"]),
        (["-w7"], ["-w", "7="]),
    ],
)
def test_weights_of_classes(given, meant):
    assert with_weights_joined(given) == meant


def test_types_are_losses_with_one_label_each():
    for number, name in LOSS_OF_TYPE.items():
        assert loss_of_type(number) == name
        assert name in shortlist.losses.names()


def test_a_model_trained_in_liblinears_words(command, files):
    ended = command(
        *["train", files / "data.svm", "-s", 4, "-c", 0.1, "-B", -1, "-w1", 2, "-q", "-o", "m"]
    )
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    model = shortlist.load("m")
    assert (model.loss, model.C, model.fit_intercept) == ("hinge", 0.1, False)
    assert model.class_weight == {1: 2.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-s", 1], "-s 1: the squared hinge is not offered here; choose one of 0, 3, 4, 7, or"),
        (["-s", 6], "regularisation by the 1-norm is not offered here"),
        (["-s", 99], "LIBLINEAR has no such type"),
        (["-s", 4, "--loss", "hinge"], "-s and --loss exclude each other"),
        (["-w9", 2], "the data has no label '9'"),
        (["-w1"], "--class-weight must be balanced or LABEL=WEIGHT"),
    ],
)
def test_what_has_no_counterpart(command, files, options, message):
    ended = command("train", files / "data.svm", "-o", "m", *options)
    assert ended.code == 2
    assert message in ended.err


def trained_by_liblinear(number, X, y, bias, weights):
    """Weights (m, d) and intercepts of LIBLINEAR itself, as scikit-learn calls it."""
    options = {
        "C": 0.3,
        "fit_intercept": bias > 0,
        "intercept_scaling": max(bias, 1.0),
        "class_weight": weights,
        "tol": 1e-10,
        "max_iter": 100_000,
        "random_state": 0,
    }
    if number in (0, 7):
        binary = LogisticRegression(solver="liblinear", dual=number == 7, **options)
        model = OneVsRestClassifier(binary).fit(X, y)
        of_each = model.estimators_
        return (
            np.concatenate([one.coef_ for one in of_each]),
            np.concatenate([np.broadcast_to(one.intercept_, 1) for one in of_each]),
        )
    how = {"multi_class": "crammer_singer"} if number == 4 else {"loss": "hinge"}
    model = LinearSVC(**how, **options).fit(X, y)
    return model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))


def trained_here(command, data, *options):
    ended = command(
        *["train", data, "-c", 0.3, "-e", 1e-9, "--max-epochs", 5000, "--json", "-o", "m", *options]
    )
    assert ended.code == 0, ended.err
    return shortlist.load("m"), json.loads(ended.out), ended.err


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("number", LOSS_OF_TYPE)
def test_solutions_are_those_of_liblinear(command, files, number, bias):
    model, told, _ = trained_here(command, files / "data.svm", "-s", number, "-B", bias)
    W, b = trained_by_liblinear(number, files.X, files.y, bias, None)
    # 1-strong convexity: weights lie within sqrt(2 gap) of the optimum.
    np.testing.assert_allclose(model.coef_, W, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-3 * max(bias, 1))
    constant = b / bias if bias > 0 else 0 * b
    loss = shortlist.losses.get(LOSS_OF_TYPE[number])
    losses = loss.value(files.X @ W.T + b, files.y).sum()
    theirs = 0.5 * (W**2).sum() + 0.5 * (constant**2).sum() + 0.3 * losses
    assert told["primal"] == pytest.approx(theirs, rel=1e-6)


def test_weights_of_classes_are_those_of_liblinear(command, files):
    model, _, said = trained_here(command, files / "data.svm", "-s", 4, "-w1", 2.5)
    W, b = trained_by_liblinear(4, files.X, files.y, 1, {1: 2.5})
    np.testing.assert_allclose(model.coef_, W, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-3)
    assert "note" not in said


@pytest.mark.parametrize("number", [0, 3])
def test_weights_of_two_classes_are_those_of_liblinear(command, files, number):
    two = files.y < 2
    shortlist.datasets.write_libsvm("two.svm", files.X[two], files.y[two])
    model, _, said = trained_here(command, "two.svm", "-s", number, "-w1", 2.5)
    W, b = trained_by_liblinear(number, files.X[two], files.y[two], 1, {1: 2.5})
    np.testing.assert_allclose(model.coef_, W, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-3)
    assert "note" not in said


def test_weights_that_mean_something_else_are_noted(command, files):
    """LIBLINEAR weighs a class in its own comparison with the rest only."""
    model, _, said = trained_here(command, files / "data.svm", "-s", 3, "-w1", 2.5)
    assert "note: -w weighs a class's examples against all other classes; LIBLINEAR's -s 3" in said
    W, _ = trained_by_liblinear(3, files.X, files.y, 1, {1: 2.5})
    assert np.abs(model.coef_ - W).max() > 0.1
    # As scikit-learn's own weights do: one classifier for each class, of all weighted examples.
    binary = LinearSVC(C=0.3, loss="hinge", tol=1e-10, max_iter=100_000, random_state=0)
    for label in range(4):
        weight = np.where(files.y == 1, 2.5, 1.0)
        binary.fit(files.X, files.y == label, sample_weight=weight)
        np.testing.assert_allclose(model.coef_[label], binary.coef_[0], atol=1e-3)
