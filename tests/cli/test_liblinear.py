"""What users of LIBLINEAR type."""

import pytest

import shortlist
from shortlist.cli.liblinear import LOSS_OF_TYPE, loss_of_type, with_weights_joined


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
