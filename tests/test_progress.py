"""Progress on terminals and in logs."""

import io

import pytest
from rich.console import Console

from shortlist import _progress
from shortlist._progress import duration, progress_on


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    return clock


def log():
    return Console(file=io.StringIO(), width=60)


def terminal(width=80):
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def test_a_log_has_a_line_every_few_seconds_and_the_last_one(clock):
    console = log()
    with progress_on(console, "squares", count=40, remark="4 stored before") as progress:
        for number in range(40):
            progress.begin(f"unit {number}")
            clock.now += 1.0
            progress.finish(f"unit {number}")
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "squares: 4 stored before"
    assert lines[1] == "squares: unit 4 is finished; 5 of 40 done"
    assert len(lines) == 1 + 40 / 5
    assert lines[-1] == "squares: unit 39 is finished; 40 of 40 done"


def test_the_time_left_is_told_when_there_is_something_to_base_it_on(clock):
    progress = progress_on(None, "squares", count=10, total=20)
    told = []
    for number in range(10):
        clock.now += 6.0
        progress.finish(f"unit {number}", 2.0)
        told.append(progress.seconds_left())
    # After a quarter of the work and three tasks; then as long as the tasks before took.
    assert told[:2] == [None, None]
    assert told[2:] == pytest.approx([42.0 - 6.0 * n for n in range(8)])


def test_tasks_that_weigh_little_tell_little(clock):
    progress = progress_on(None, "squares", total=100)
    for _ in range(5):
        clock.now += 10.0
        progress.finish("one", 1.0)
    assert progress.seconds_left() is None


def test_notes_of_a_single_task_without_a_total(clock):
    console = log()
    with progress_on(console, "Training") as progress:
        progress.begin("softmax")
        for gap in ("1e-1", "1e-2", "1e-3"):
            progress.note("softmax", f"relative gap {gap}")
            clock.now += 4.0
    # Two of them are less than five seconds after a line; the last is kept for the end.
    assert console.file.getvalue().splitlines() == ["Training: softmax: relative gap 1e-3"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_bars_fit_the_terminal(width):
    console = terminal(width)
    with progress_on(console, "letter", count=3, total=6.0, remark="4 stored before") as progress:
        progress.begin("letter, truncated top-10 Ent, from several starts, draw 12")
        progress.note("letter, truncated top-10 Ent, from several starts, draw 12", "gap 0.1")
        progress.begin("b")
        progress.finish("b", 4.0)
        shown = [console.render_lines(progress.rows.get_renderable())]
    for line in shown[0]:
        assert sum(segment.cell_length for segment in line) <= width
    text = "\n".join("".join(segment.text for segment in line) for line in shown[0])
    assert text.count("\n") == 1  # the whole and one task; finished ones are gone
    if width >= 80:
        assert "letter: 1 of 3 done, 4 sto" in text


def test_bars_count_weights():
    with progress_on(terminal(), "letter", count=3, total=6.0) as progress:
        progress.finish("a", 1.0)
        progress.finish("b", 3.0)
        whole = progress.rows.tasks[0]
        assert (whole.total, whole.completed) == (6.0, 4.0)


def test_nothing_is_shown_without_a_console(capsys):
    with progress_on(None, "letter", count=1) as progress:
        progress.begin("a")
        progress.note("a", "half")
        progress.finish("a")
    assert capsys.readouterr() == ("", "")
    assert progress.n_finished == 1


def test_durations():
    assert [duration(s) for s in (8.4, 89.0, 95.0, 5399.0, 12_600.0)] == [
        *("8 s", "89 s", "2 min", "90 min", "3.5 h")
    ]
