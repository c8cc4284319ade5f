"""Help and version: quick, without what only a command needs, and true to the library."""

import re

import numpy as np
import pytest
from sklearn.model_selection import check_cv

from shortlist import __version__
from tests.cli.conftest import shell

COMMANDS = [
    "train",
    "cv",
    "predict",
    "evaluate",
    "info",
    "export",
    "features",
    "reproduce",
    "bench",
    "warm",
]


def test_help_lists_every_command():
    ended = shell("--help")
    assert (ended.code, ended.err) == (0, "")
    for name in COMMANDS:
        assert f" {name} " in ended.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(command, name):
    ended = command(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"Usage: shortlist {name}" in ended.out


def test_version(command):
    assert command("--version").out == f"shortlist {__version__}\n"


def test_help_without_arguments(command):
    ended = command()
    assert (ended.code, ended.err) == (2, "")
    assert ended.out == command("--help").out


def test_help_shows_options_in_groups_and_texts_as_they_are(command):
    text = command("cv", "--help").out
    for heading in ("Arguments:", "Search:", "The model:", "Reading DATA:", "Output:", "Options:"):
        assert f"\n{heading}\n" in text
    assert text.isascii()  # 0.01:100:5 has no emoji in it
    assert "\n    shortlist cv letter --Cs 0.01:100:5 --val letter\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_entry_of_the_manual_is_an_option_and_says_something():
    """An option without an entry would be an error on import."""
    from dataclasses import fields, is_dataclass
    from importlib import import_module
    from inspect import signature

    from shortlist.cli.declare import _manual, words_of

    used, shared = {}, set()
    for name in COMMANDS:
        function = getattr(import_module(f"shortlist.cli.{name}"), name)
        for parameter in signature(function, eval_str=True).parameters.values():
            kind = parameter.annotation
            names = [f.name for f in fields(kind)] if is_dataclass(kind) else [parameter.name]
            owner = kind if is_dataclass(kind) else function
            own = set(names) & set(_manual()[owner.__name__])
            used.setdefault(owner.__name__, set()).update(own)
            shared |= set(names) - own
            for each in names:
                words = words_of(owner, each)
                assert words.text.endswith((".", ".)"))
                assert words.flags or words.placeholder
    used["shared"] = shared
    assert used == {s: set(_manual()[s]) - {"heading"} for s in _manual().sections()}


def test_choices_are_those_of_the_library():
    from shortlist import losses
    from shortlist.cli import options
    from shortlist.cli.declare import words_of, words_of_option
    from shortlist.cli.train import train
    from shortlist.datasets.downloads import SOURCES

    assert sorted(options.LossName) == losses.names()
    # What --help lists: losses, and data sets by name.
    assert set(losses.names()) <= words_in(words_of_option("loss").text)
    assert set(SOURCES) <= words_in(words_of(train, "data").text)


def words_in(text):
    return set(re.findall(r"\w+", text))


def test_defaults_of_a_search_are_those_of_the_class():
    """What --help says of them is true, and nothing of it is repeated in the code."""
    from shortlist import TopKClassifierCV
    from shortlist.cli.cv import SearchOptions
    from shortlist.cli.declare import words_of
    from shortlist.estimators.cv_grid import grid_of

    assert SearchOptions().parameters() == {"refine": 0, "n_jobs": 1}
    usual = TopKClassifierCV()
    assert usual.refine == 0
    first, last, count = words_of(SearchOptions, "costs").text.split()[-1].rstrip(".").split(":")
    costs = np.geomspace(float(first), float(last), int(count))
    np.testing.assert_allclose(grid_of(usual.Cs), costs)
    assert words_of(SearchOptions, "folds").text.endswith(f" {check_cv(None).get_n_splits()}.")
    assert words_of(SearchOptions, "repeats").text.endswith(f" {usual.repeats}.")
    assert f"Without it: {usual.max_extensions}," in words_of(SearchOptions, "extensions").text
    listed = ", ".join(map(str, usual.ks))
    assert f"Without it: {listed} and" in words_of(SearchOptions, "ks").text


def test_every_parameter_of_the_estimator_is_an_option():
    from shortlist import TopKClassifier
    from shortlist.cli.options import (
        CheckpointOptions,
        LossOptions,
        OutputOptions,
        ShapeOptions,
        SolverOptions,
        estimator_parameters,
    )

    given = estimator_parameters(LossOptions(), ShapeOptions(), SolverOptions(), OutputOptions())
    estimator = TopKClassifier(**given)
    kept = CheckpointOptions(checkpoint="kept").parameters(OutputOptions(), ())
    # Features are scaled when they are read; --warm-start names a file.
    elsewhere = {"C", "class_weight", "memory_limit", "normalize", "warm_start"}
    assert {*given, *kept, *elsewhere} == set(estimator.get_params())
    for name, default in TopKClassifier().get_params().items():
        if name not in ("random_state", "verbose"):
            assert getattr(estimator, name) == default
