"""Help and version: quick, without what only a command needs, and true to the library."""

import resource
import subprocess
import sys

import pytest

from shortlist import __version__
from tests.cli.conftest import environment, shell

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


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from shortlist.cli.run import run\n"
        "assert run(['--help']) == 0 and run(['train', '--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'torch', 'matplotlib', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment()
    )
    assert ended.stderr.strip() == "[]"


def test_help_takes_under_half_a_second_of_work():
    def seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    shell("--help")  # bytecode is compiled on first use
    before = seconds()
    for _ in range(3):
        shell("--help")
    assert (seconds() - before) / 3 < 0.5


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
    kept = CheckpointOptions(checkpoint="kept").parameters(OutputOptions())
    # A command makes one fit: there is nothing to start warm from.
    assert {*given, *kept, "C", "class_weight", "warm_start"} == set(estimator.get_params())
    for name, default in TopKClassifier().get_params().items():
        if name not in ("random_state", "verbose"):
            assert getattr(estimator, name) == default
