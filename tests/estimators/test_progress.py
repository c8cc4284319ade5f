"""Progress for people: lines in a log, one live line on a terminal, silence by default."""

import io
import re

import numpy as np
import pytest

from shortlist import TopKClassifier, _progress
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
    monkeypatch.setattr(_progress, "time", clock)
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


def states(stream):
    """What a stream showed, one state after the other, without the terminal's codes."""
    text = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", stream.getvalue())
    return [line for line in re.split(r"[\r\n]+", text) if line]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_fit_tells_of_its_last_epoch(terminal, monkeypatch):
    stream = stderr(monkeypatch, terminal)
    model = TopKClassifier("smooth_hinge", k=2, C=0.5, verbose=1, random_state=0)
    model.fit(*make_data())
    lines = states(stream)
    assert all(line.startswith("smooth_hinge k=2 C=0.5: epoch ") for line in lines)
    result = model.result_
    told = f"epoch {round(result.epochs, 1):g}, relative gap {result.relative_gap:.1e}, "
    assert told in lines[-1]
    assert lines[-1].endswith(" s, goal 1e-03")
    # On a terminal the line is written over: a single one is left behind.
    assert stream.getvalue().count("\n") == (1 if terminal else len(lines))


def test_a_path_tells_of_every_C(monkeypatch):
    stream = stderr(monkeypatch, terminal=False)
    TopKClassifier(verbose=1, random_state=0).fit_path(*make_data(), [0.1, 1.0])
    assert "entropy k=1 C=0.1: " in stream.getvalue()
    assert "entropy k=1 C=1: " in stream.getvalue()


def test_the_truncated_entropy_shows_its_objective(monkeypatch):
    stream = stderr(monkeypatch, terminal=False)
    model = TopKClassifier("truncated_entropy", k=2, verbose=1, random_state=0).fit(*make_data())
    assert f"objective {model.result_.primal:.6g}" in stream.getvalue().splitlines()[-1]


def test_a_log_gets_a_line_every_five_seconds_and_the_last(monkeypatch, clock):
    stream = stderr(monkeypatch, terminal=False)
    with with_progress(1, "title", None) as told:
        for epoch in range(1, 121):
            clock.now = epoch * 0.1
            told(moment(epoch))
    shown = [int(epoch) for epoch in re.findall(r"epoch (\d+)", stream.getvalue())]
    assert shown == [50, 100, 120]


def test_a_terminal_gets_four_states_a_second_on_one_line(monkeypatch, clock):
    stream = stderr(monkeypatch, terminal=True)
    with with_progress(1, "title", None) as told:
        for epoch in range(1, 101):
            clock.now = epoch * 0.02
            told(moment(epoch))
    assert 8 <= stream.getvalue().count("\r") <= 10  # in two seconds
    assert stream.getvalue().count("\n") == 1
    assert states(stream)[0] == "title: epoch 1, 1.0 s"
    assert states(stream)[-1] == "title: epoch 100, 100.0 s"


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal(columns, monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = stderr(monkeypatch, terminal=True)
    with with_progress(1, "truncated_entropy k=10 C=1e+05", None) as told:
        for epoch, gap in ((1000, 0.5), (2000, 0.25), (3000, 0.125), (4000, 0.01)):
            clock.now += 1.0
            told(moment(epoch, gap))
    assert all(len(line) <= columns for line in states(stream))
    assert stream.getvalue().count("\n") == 1
    last = "epoch 4000, relative gap 1.0e-02, 4000.0 s"
    assert states(stream)[-1].endswith("epoch 4…" if columns == 40 else last)


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
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\n\x1b[?25h")  # and shows the cursor again


def seconds_left(monkeypatch, clock, *moments):
    """What is said of the time left, after each moment."""
    stream = stderr(monkeypatch, terminal=True)
    with with_progress(1, "title", None) as told:
        for progress in moments:
            clock.now += 1.0
            told(progress)
    found = [re.search(r"about (.*) left", line) for line in states(stream)]
    return [match and match.group(1) for match in found][: len(moments)]


def test_seconds_left_suppose_a_constant_rate(monkeypatch, clock):
    """From 1e-1 to 1e-2 took 20 seconds, and so will 1e-2 to 1e-3."""
    moments = [moment(1, 0.1, 10.0), moment(2, 0.05, 16.0), moment(3, 0.01, 30.0)]
    late = Progress(4, 1000, 35.0, 1e-3, moments[-1].last, np.zeros((2, 2)))
    told = seconds_left(monkeypatch, clock, *moments, late)
    # Three evaluations and a quarter of the way have to be known.
    assert told == [None, None, "20 s", "15 s"]


@pytest.mark.parametrize(
    "gaps",
    [(None, None, None), (1.0, 1.0, 1.5), (0.1, 0.01, 5e-4), (0.5, 0.5, 0.49), (0.1, 0.2, 0.4)],
)
def test_no_promise_without_a_rate(gaps, monkeypatch, clock):
    moments = [moment(epoch, gap, 10.0 * epoch) for epoch, gap in enumerate(gaps, 1)]
    assert seconds_left(monkeypatch, clock, *moments) == [None, None, None]


def test_no_promise_in_the_first_seconds(monkeypatch, clock):
    moments = [moment(epoch, 0.5**epoch, 0.1 * epoch) for epoch in range(1, 9)]
    assert set(seconds_left(monkeypatch, clock, *moments)) == {None}


@pytest.mark.parametrize("verbose", [0, 1])
def test_the_users_callback_is_called_and_answered_for(verbose, monkeypatch):
    stderr(monkeypatch, terminal=False)
    with with_progress(verbose, "title", lambda progress: progress.epoch) as told:
        assert told(moment(7)) == 7
