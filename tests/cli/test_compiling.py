"""The command says when kernels compile, once, and how long it took."""

import time

from numba.core import event

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import told_of_compilation


def compile_twice():
    for _ in range(2):
        with event.trigger_event("numba:compile"):
            time.sleep(0.02)


def test_said_once_and_timed(capsys):
    with told_of_compilation(OutputOptions()) as timer:
        assert capsys.readouterr().err == ""  # nothing compiles yet
        compile_twice()
    assert capsys.readouterr().err.count("compiling for this machine") == 1
    spent = timer.seconds
    assert spent >= 0.04
    compile_twice()  # outside, it is no longer listening
    assert timer.seconds == spent
    assert capsys.readouterr().err == ""


def test_quiet_is_quiet(capsys):
    with told_of_compilation(OutputOptions(quiet=True)) as timer:
        compile_twice()
    assert timer.seconds >= 0.04
    assert capsys.readouterr() == ("", "")
