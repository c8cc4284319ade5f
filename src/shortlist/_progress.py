"""Progress for people: bars on a terminal, plain lines in a log.

Many tasks show their progress through :func:`progress_on`. One row stands for the whole, and one
for each task that runs::

    with progress_on(console, "letter", count=17) as progress:
        progress.begin("top-3 SVM")
        progress.note("top-3 SVM", "relative gap 1.2e-2")
        progress.finish("top-3 SVM")

A single piece of work, such as a fit, has a line of its own::

    with StatusLine(console) as line:
        line.show("softmax", ["epoch 7", "relative gap 1.2e-2"])

The fits of a search share one, within :func:`one_line_for_fits`, and :func:`tell_fit` writes to it.
:func:`byte_bar` is a bar for a download.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import TaskID

#: Seconds between two lines of a log, and between two states of a line on a terminal.
SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_STATES = 5.0, 0.25
#: The time left is told only after this share of the work, this many tasks and this many seconds.
#: Earlier guesses are usually wrong by a factor.
MIN_SHARE_TO_ESTIMATE, MIN_TASKS_TO_ESTIMATE, MIN_SECONDS_TO_ESTIMATE = 0.25, 3, 5.0


def progress_on(
    console: Console | None,
    title: str,
    *,
    count: int | None = None,
    total: float | None = None,
    remark: str = "",
) -> TaskProgress:
    """A progress display that suits the console; without a console nothing is shown.

    ``count`` is the number of tasks, ``total`` the sum of their weights (by default the same);
    None where they are not known. ``remark`` stands behind the title.
    """
    plan = TaskPlan(title, count, count if total is None else total, remark)
    if console is None:
        return TaskProgress(plan)
    return _Bars(plan, console) if console.is_terminal else _Lines(plan, console)


def is_trusted(share: float, n_steps: int, seconds: float) -> bool:
    """Whether a guess of the time left can be told, after this share of the work."""
    return (
        share >= MIN_SHARE_TO_ESTIMATE
        and n_steps >= MIN_TASKS_TO_ESTIMATE
        and seconds >= MIN_SECONDS_TO_ESTIMATE
    )


def duration(seconds: float) -> str:
    """A time for people: "8 s", "12 min" or "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class TaskPlan:
    """The title, number and cost of the tasks; see :func:`progress_on`."""

    title: str
    count: int | None
    total: float | None
    remark: str


class TaskProgress:
    """Counts what is finished and shows nothing. Its subclasses show it."""

    def __init__(self, plan: TaskPlan) -> None:
        self.plan = plan
        self.done, self.n_finished = 0.0, 0
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def begin(self, name: str) -> None:
        """A task runs from now on."""

    def note(self, name: str, text: str) -> None:
        """Say how far a running task is, in words."""

    def finish(self, name: str, weight: float = 1.0) -> None:
        """A task is done. Its weight is what it adds to the total."""
        self.done += weight
        self.n_finished += 1

    def seconds_left(self) -> float | None:
        """An estimate, or None as long as there is little to base it on."""
        elapsed = time.monotonic() - self.started
        total = self.plan.total
        if not total or not is_trusted(self.done / total, self.n_finished, elapsed):
            return None
        return elapsed * max(total - self.done, 0.0) / self.done

    def _counted(self) -> str:
        of = "" if self.plan.count is None else f" of {self.plan.count}"
        return f"{self.n_finished}{of} done"

    def _left(self) -> str:
        seconds = self.seconds_left()
        return "" if not seconds else f"about {duration(seconds)} left"


class _Bars(TaskProgress):
    """One bar for the whole and a row for each task that runs; gone when all is done."""

    def __init__(self, plan: TaskPlan, console: Console) -> None:
        super().__init__(plan)
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        # Only the names give way on a narrow terminal; rows never wrap.
        names = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self.rows = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=names),
            BarColumn(bar_width=10),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            expand=True,
        )
        self.running: dict[str, TaskID] = {}
        self.whole = self.rows.add_task(self._heading(), total=plan.total, left="")

    def __enter__(self) -> Self:
        self.rows.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.rows.stop()

    def begin(self, name: str) -> None:
        self.running[name] = self.rows.add_task(f"  {name}", total=None, left="")

    def note(self, name: str, text: str) -> None:
        self.rows.update(self.running[name], description=f"  {name}: {text}")

    def finish(self, name: str, weight: float = 1.0) -> None:
        super().finish(name, weight)
        if name in self.running:
            self.rows.remove_task(self.running.pop(name))
        self.rows.update(
            self.whole, completed=self.done, description=self._heading(), left=self._left()
        )

    def _heading(self) -> str:
        return f"{self.plan.title}: {', '.join(filter(None, [self._counted(), self.plan.remark]))}"


class _Lines(TaskProgress):
    """A line every few seconds, and one at the end."""

    def __init__(self, plan: TaskPlan, console: Console) -> None:
        super().__init__(plan)
        self.line = StatusLine(console)

    def __enter__(self) -> Self:
        if self.plan.remark:
            self.line.write(f"{self.plan.title}: {self.plan.remark}")
        return self

    def __exit__(self, *error: Any) -> None:
        self.line.close()

    def note(self, name: str, text: str) -> None:
        self.line.show(self.plan.title, [f"{name}: {text}"])

    def finish(self, name: str, weight: float = 1.0) -> None:
        super().finish(name, weight)
        state = ", ".join(filter(None, [self._counted(), self._left()]))
        self.line.show(self.plan.title, [f"{name} is finished; {state}"])


class StatusLine:
    """How far a single piece of work is, in one line.

    On a terminal the line is rewritten in place a few times a second. A log gets a new line every
    few seconds. In both the last state is written when the work ends.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        on_terminal = console.is_terminal
        self.pause = SECONDS_BETWEEN_STATES if on_terminal else SECONDS_BETWEEN_LINES
        # A terminal shows the first state at once. A log does not: short work would fill two lines.
        self.last_written = time.monotonic() - (self.pause if on_terminal else 0.0)
        self.kept_back = ""
        self.live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def show(self, title: str, parts: Sequence[str]) -> None:
        """Show a state. Where the terminal is too narrow, the last parts are left out."""
        text = self._fitting(title, parts)
        now = time.monotonic()
        if now - self.last_written < self.pause:
            self.kept_back = text
            return
        self.last_written, self.kept_back = now, ""
        self.write(text)

    def close(self) -> None:
        """Write what was kept back and go on below the line."""
        if self.kept_back:
            self.write(self.kept_back)
            self.kept_back = ""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def write(self, text: str) -> None:
        """Show a text now."""
        if not self.console.is_terminal:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)
            return
        from rich.live import Live
        from rich.text import Text

        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False)
            self.live.start()
        self.live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _fitting(self, title: str, parts: Sequence[str]) -> str:
        text = f"{title}: {parts[0]}"
        for part in parts[1:]:
            longer = f"{text}, {part}"
            if self.console.is_terminal and len(longer) > self.console.width:
                break
            text = longer
        return text


def tell(text: str) -> None:
    """Write a line on standard error."""
    sys.stderr.write(f"{text}\n")


# The line that the fits of a search share, and the lock of the threads that they run in.
_shared: StatusLine | None = None
_lock = threading.Lock()


@contextmanager
def one_line_for_fits(verbose: int) -> Iterator[None]:
    """Within the body :func:`tell_fit` rewrites one line, where standard error is a terminal."""
    global _shared
    if verbose != 1 or not sys.stderr.isatty():  # from 2 on every fit has a line that it rewrites
        yield
        return
    from rich.console import Console

    with StatusLine(Console(stderr=True)) as line:
        _shared = line
        try:
            yield
        finally:
            _shared = None


def tell_fit(title: str, parts: Sequence[str]) -> None:
    """Tell what a fit of a search has reached."""
    with _lock:
        if _shared is None:
            tell(f"{title}: {', '.join(parts)}")
        else:
            _shared.show(title, parts)


class _ByteBar:
    """A rich progress bar with the methods that pooch calls."""

    def __init__(self, display: Any, task: Any) -> None:
        self._display, self._task = display, task

    @property
    def total(self) -> int:
        return int(self._display.tasks[0].total or 0)

    @total.setter
    def total(self, total: int) -> None:
        self._display.update(self._task, total=total)

    def update(self, amount: int) -> None:
        self._display.advance(self._task, amount)

    def reset(self) -> None:
        self._display.update(self._task, completed=0)

    def close(self) -> None:
        self._display.refresh()


@contextmanager
def byte_bar(name: str, progress: bool | None) -> Iterator[Any]:
    """Yield a bar for a download, or False; None asks whether a person is watching."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as display:
        yield _ByteBar(display, display.add_task(name, total=None))
