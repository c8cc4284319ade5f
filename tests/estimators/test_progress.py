"""Progress for people: lines in a log, one live line on a terminal, silence by default."""

import io
import re

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.estimators import progress as module
from shortlist.estimators.progress import with_progress
from shortlist.solvers import Evaluation, Progress
from tests.solvers.problems import make_data


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when told to."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def stderr(monkeypatch, terminal):
    stream = Stream(terminal)
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def moment(epoch, relative_gap=None, seconds=None):
    last = None
    seconds = float(epoch) if seconds is None else seconds
    if relative_gap is not None:
        last = Evaluation(epoch, seconds, 1.0, 1.0 - relative_gap)
    return Progress(epoch, 1000, seconds, 1e-3, last, np.zeros((2, 2)))


def test_silence_by_default(capsys):
    TopKClassifier().fit(*make_data())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_fit_tells_of_its_last_epoch(terminal, monkeypatch):
    stream = stderr(monkeypatch, terminal)
    model = TopKClassifier("smooth_hinge", k=2, C=0.5, verbose=1, random_state=0)
    model.fit(*make_data())
    text = stream.getvalue()
    lines = [line for line in re.split(r"\r\x1b\[2K|\n", text) if line]
    assert all(line.startswith("smooth_hinge k=2 C=0.5: epoch ") for line in lines)
    gap = f"relative gap {model.result_.relative_gap:.2e} at epoch {model.result_.epochs:.1f}"
    assert gap in lines[-1]
    assert "target 1e-03" in lines[-1]
    assert text.endswith("\n")
    assert text.startswith("\r\x1b[2K") == terminal
    assert text.count("\n") == (1 if terminal else len(lines))


def test_a_path_tells_of_every_C(monkeypatch):
    stream = stderr(monkeypatch, terminal=False)
    TopKClassifier(verbose=1, random_state=0).fit_path(*make_data(), [0.1, 1.0])
    assert "entropy k=1 C=0.1: " in stream.getvalue()
    assert "entropy k=1 C=1: " in stream.getvalue()


def test_the_truncated_entropy_shows_its_objective(monkeypatch):
    stream = stderr(monkeypatch, terminal=False)
    model = TopKClassifier("truncated_entropy", k=2, verbose=1, random_state=0).fit(*make_data())
    assert f"objective {model.result_.primal:.6g}" in stream.getvalue().splitlines()[-1]


def test_a_log_gets_a_line_every_two_seconds_and_the_last(monkeypatch, clock):
    stream = stderr(monkeypatch, terminal=False)
    with with_progress(1, "title", None) as told:
        for epoch in range(1, 51):
            clock.now = epoch * 0.1
            told(moment(epoch))
    shown = [int(epoch) for epoch in re.findall(r"epoch (\d+)", stream.getvalue())]
    assert shown == [1, 21, 41, 50]


def test_a_terminal_gets_ten_a_second_on_one_line(monkeypatch, clock):
    stream = stderr(monkeypatch, terminal=True)
    with with_progress(1, "title", None) as told:
        for epoch in range(1, 101):
            clock.now = epoch * 0.02
            told(moment(epoch))
    text = stream.getvalue()
    assert 18 <= text.count("\r") <= 22
    assert text.count("\n") == 1
    assert text.endswith("epoch 100.0, 100.0 s\n")


def test_nothing_to_tell_writes_nothing(monkeypatch):
    for terminal in (False, True):
        stream = stderr(monkeypatch, terminal)
        with with_progress(1, "title", None):
            pass
        assert stream.getvalue() == ""


def test_an_error_leaves_the_cursor_on_a_new_line(monkeypatch):
    stream = stderr(monkeypatch, terminal=True)

    def fail(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), with_progress(1, "title", fail) as told:
        told(moment(1))
    assert stream.getvalue().endswith("\n")


def test_seconds_left_suppose_a_constant_rate(monkeypatch, clock):
    """From 1 to 1e-1 took 4 seconds: to 1e-3 it takes 12, of which 7 are left after 5."""
    stream = stderr(monkeypatch, terminal=False)
    last = Evaluation(4.0, 4.0, 1.0, 0.9)
    with with_progress(1, "title", None) as told:
        told(Progress(5.0, 1000, 5.0, 1e-3, last, np.zeros((2, 2))))
    assert "relative gap 1.00e-01 at epoch 4.0, target 1e-03, about 7 s left" in stream.getvalue()


@pytest.mark.parametrize("relative_gap", [None, 1.0, 1.5, 5e-4, 0.0])
def test_no_promise_without_a_rate(relative_gap, monkeypatch, clock):
    stream = stderr(monkeypatch, terminal=False)
    with with_progress(1, "title", None) as told:
        told(moment(3, relative_gap))
    assert "epoch 3" in stream.getvalue()
    assert "left" not in stream.getvalue()


@pytest.mark.parametrize("verbose", [0, 1])
def test_the_users_callback_is_called_and_answered_for(verbose, monkeypatch):
    stderr(monkeypatch, terminal=False)
    with with_progress(verbose, "title", lambda progress: progress.epoch) as told:
        assert told(moment(7)) == 7
