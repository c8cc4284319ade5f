"""What commands print, write and end with.

Results go to standard output, everything else to standard error. Exit codes are

0     done; also when training stopped short of its tolerance, which is a warning
1     it cannot be done here: out of memory or disk, a package is missing
2     wrong usage, unreadable or unsuitable data
130   interrupted with Ctrl-C; 143 and 129 by SIGTERM and SIGHUP, which are treated alike
141   the reader of the output has gone (as in ``shortlist predict ... | head``)
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shortlist._json import plain
from shortlist._text import escape_controls
from shortlist.cli.options import OutputOptions

if TYPE_CHECKING:
    from shortlist._compiling import CompileTimer
    from shortlist.datasets.how_read import Reading

DONE, FAILED, REFUSED, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141


def told_of_compilation(output: OutputOptions) -> AbstractContextManager[CompileTimer]:
    """Say so when numba starts to compile; the timer's seconds grow as it does."""
    from shortlist._compiling import compilation_told

    return compilation_told(output.say)


def print_json(command: str, value: dict[str, Any]) -> None:
    """Print a command's JSON object, as schema.json describes it.

    What JSON cannot express (NaN, infinities) becomes null.
    """
    entry = plain({"command": command, **value})
    text = json.dumps(entry, ensure_ascii=False, allow_nan=False, indent=2)
    standard_output().write(text + "\n")


def report(
    output: OutputOptions,
    command: str,
    facts: dict[str, Any],
    lines: Iterable[str],
    *,
    beside: str = "",
) -> None:
    """Print a command's result: as JSON, or lines for people unless it is to be quiet.

    ``beside`` is what the command makes: if that goes to standard output, lines go to standard
    error.
    """
    if output.as_json:
        print_json(command, facts)
        return
    for line in [] if output.quiet else lines:
        output.say(line) if is_standard_output(beside) else print_line(line)


def print_line(text: str = "") -> None:
    """Print a line for people; control characters in it are shown escaped."""
    sys.stdout.write(f"{escape_controls(text)}\n")


class _Terminal:
    """Standard output where it is a terminal: control characters from files do not reach it."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(escape_controls, text.split("\n"))))


def standard_output() -> Any:
    """Where to write data: as it is into a file or a pipe, escaped to a terminal."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text_columns: Sequence[int] = (0,),
    best: Iterable[tuple[int, int]] = (),
) -> None:
    """Print a table; numbers to the right, ``best`` cells (row, column) in bold."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marked = set(best)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(Text(name), justify="left" if number in text_columns else "right")
    for i, row in enumerate(rows):
        styles = ["bold green" if (i, j) in marked else "" for j in range(len(row))]
        table.add_row(*map(Text, map(escape_controls, row), styles))
    console = Console(highlight=False)
    if not console.is_terminal:
        # A file or a pipe has no width to fit into: a table is not to be cut there.
        console = Console(highlight=False, width=500, no_color=True)
    console.print(table)


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def number(value: float) -> str:
    """A number for people: six digits, or a dash where there is none."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def check_output(
    path: str,
    option: str = "-o",
    inputs: Iterable[str | None] = (),
    *,
    stdout: bool = True,
    as_json: bool = False,
) -> None:
    """Raise an error now, rather than after the work, if ``path`` cannot or must not be written.

    ``inputs`` are what the command reads: none of them may be replaced by its output. With
    ``stdout=False`` standard output is taken by the command's report, with ``as_json`` by JSON.
    """
    if is_standard_output(path):
        if not stdout:
            raise ValueError(f"{option} must be a file here; standard output takes the report")
        if as_json:
            raise ValueError(f"--json and {option} {path} would both write to standard output")
        return
    target = Path(os.path.realpath(path))
    for given in inputs:
        if given is not None and _would_be_lost(given, target):
            raise ValueError(
                f"{option} {path}: is also an input, and would be lost; choose another file"
            )
    if target.is_dir():
        raise ValueError(f"{option} {path}: is a directory, not a file")
    if is_device(target):
        return
    if target.exists() and not target.is_file():
        raise ValueError(f"{option} {path}: exists and is not a regular file")
    if not target.parent.is_dir():
        raise ValueError(f"{option} {path}: no such directory: {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{option} {path}: no permission to write in {target.parent}")


def _would_be_lost(given: str, target: Path) -> bool:
    """Whether an input is the same file as the output, or a folder of data that the output would
    lie in."""
    if not os.path.exists(given):
        return False
    if os.path.isdir(given):
        return os.path.realpath(given) == str(target.parent)
    return target.exists() and os.path.samefile(given, target)


def is_standard_output(path: str) -> bool:
    return path in ("-", "/dev/stdout", "/dev/fd/1")


def is_device(path: Path) -> bool:
    """Whether a path is something to write to that cannot be replaced, such as /dev/null."""
    return path.is_char_device() or path.is_fifo()


@contextmanager
def written_to(path: str) -> Iterator[str]:
    """Yield the name of a file to write, for ``path``.

    It is ``path`` itself if that is a file; the caller writes it whole or not at all. For standard
    output and devices it is a temporary file, which is copied there at the end.
    """
    if not is_standard_output(path) and not is_device(Path(path)):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "output")
        yield made
        with open(made, "rb") as file:
            if is_standard_output(path):
                shutil.copyfileobj(file, sys.stdout.buffer)
            else:
                with open(path, "wb") as device:
                    shutil.copyfileobj(file, device)


def save_somewhere(model: Any, path: str, reading: Reading) -> str:
    """Save a model, with how its training data was read, and return where.

    Where ``path`` cannot be written to, its disk being full, the first of this folder, the home
    folder and the folder for temporary files takes it, and the user is told.
    """
    import shortlist

    model.set_params(verbose=0)
    data = {"reading": reading.to_dict()}
    try:
        with written_to(path) as place:
            shortlist.save(model, place, data=data)
        return path
    except BrokenPipeError:  # the reader of standard output has gone
        raise
    except OSError as error:
        reason = error
    for other in _other_places(path):
        try:
            shortlist.save(model, other, data=data)
        except OSError:
            continue
        said = reason.strerror or str(reason)
        sys.stderr.write(f"shortlist: {path}: {said}; the model is saved in {other} instead\n")
        return str(other)
    raise reason


def exit_unless(saved: bool, interrupted: bool) -> None:
    """Exit unless training was not interrupted and its model, if any, is where it should be."""
    if interrupted or not saved:
        raise typer.Exit(INTERRUPTED if interrupted else FAILED)


def _other_places(path: str) -> Iterator[Path]:
    """In each of the other folders, a name that is not taken."""
    name = "model" if is_standard_output(path) else os.path.basename(path)
    for folder in (Path.cwd(), Path.home(), Path(tempfile.gettempdir())):
        names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(1)))
        yield next(folder / each for each in names if not os.path.lexists(folder / each))


def saved_line(path: str) -> str:
    """Where something was saved, and its size if it is a file."""
    if not os.path.isfile(path):
        return f"written to {path}"
    return f"saved in {path} ({readable_size(os.path.getsize(path))})"


def readable_size(n_bytes: int) -> str:
    from rich.filesize import decimal

    return decimal(n_bytes)
