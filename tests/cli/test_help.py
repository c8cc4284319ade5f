"""Help and version: quick, without what only a command needs, and true to the library."""

import pytest

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

    from shortlist.cli.unfold import _manual, words_of

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
    from shortlist.cli import data, options, reading
    from shortlist.datasets.columns import MISSING_POLICIES
    from shortlist.datasets.containers import SPLIT_NAMES
    from shortlist.datasets.downloads import SOURCES
    from shortlist.datasets.read import FORMATS
    from shortlist.metrics import TIE_POLICIES

    assert sorted(options.LossName) == losses.names()
    assert set(reading.Format) == set(FORMATS)
    assert set(reading.Split) == set(SPLIT_NAMES)
    assert set(reading.Missing) == set(MISSING_POLICIES)
    assert set(options.Ties) == set(TIE_POLICIES)
    assert set(data.EMBEDDED + data.DOWNLOADED) == set(SOURCES)


def test_every_parameter_of_the_estimator_is_an_option():
    from shortlist import TopKClassifier
    from shortlist.cli.checkpoints import CheckpointOptions
    from shortlist.cli.options import (
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
