"""Progress on terminals and in logs."""

import io

from rich.console import Console

from shortlist.experiments.progress import Bars, Lines, reporter_for
from shortlist.experiments.store import Unit
from shortlist.experiments.workers import Silent


def work(parameters, payload, tick):
    return {}


UNITS = [Unit(f"unit {x}", {"x": x}, work, weight=x + 1.0) for x in range(3)]


def told(reporter):
    reporter.begin("squares", UNITS, 4)
    reporter.advance(UNITS[0], 0.5)
    reporter.advance(UNITS[0], 0.2)  # late news changes nothing
    reporter.finish(UNITS[0], 1.5)
    reporter.finish(UNITS[2], 2.5)
    reporter.end()
    return reporter


def test_the_reporter_suits_the_console():
    assert isinstance(reporter_for(None), Silent)
    assert isinstance(reporter_for(Console(file=io.StringIO())), Lines)
    assert isinstance(reporter_for(Console(file=io.StringIO(), force_terminal=True)), Bars)


def test_lines_for_logs():
    console = Console(file=io.StringIO(), width=60)
    told(Lines(console))
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "squares: 4 units from before, 3 to compute"
    assert lines[1].startswith("unit 0: 1.5 s (1 of 3, about ")
    assert lines[2].startswith("unit 2: 2.5 s (2 of 3, about ")


def test_of_many_short_units_a_log_names_the_last():
    console = Console(file=io.StringIO(), width=60)
    lines = Lines(console)
    lines.begin("squares", UNITS, 0)
    for unit in UNITS:
        lines.finish(unit, 0.01)
    assert console.file.getvalue().startswith("unit 2: 0.0 s (3 of 3)")


def test_bars_count_weights():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    bars = told(Bars(console))
    whole = bars.progress.tasks[0]
    assert whole.total == 6.0
    assert whole.completed == 1.0 + 3.0
    assert "2 of 3, 4 from before" in whole.description
    assert len(bars.progress.tasks) == 1  # bars of finished units are gone
