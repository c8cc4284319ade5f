"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shortlist._json import plain
from shortlist.cli.options import OutputOptions

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData


def say(output: OutputOptions, message: str) -> None:
    """Tell the user what happens, on standard error, unless it is to be quiet."""
    if not output.quiet:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def say_data(output: OutputOptions, data: LabeledData) -> None:
    """Tell how DATA was read, with what was guessed, and how much there is."""
    from shortlist.cli.data import describe_data, how_read

    say(output, f"{how_read(data).describe()}\n{describe_data(data)}")


def print_json(value: Any) -> None:
    """Print one JSON value; what JSON cannot express (NaN, infinities) becomes null."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def print_line(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")


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
        table.add_row(
            *(
                Text(cell, style="bold green" if (i, j) in marked else "")
                for j, cell in enumerate(row)
            )
        )
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


def check_output(path: str, option: str = "-o", inputs: Iterable[str | None] = ()) -> None:
    """Raise an error now, rather than after the work, if ``path`` cannot or must not be written.

    ``inputs`` are what the command reads: none of them may be replaced by its output.
    """
    target = Path(os.path.realpath(path))
    for given in inputs:
        if given is not None and os.path.exists(given) and os.path.realpath(given) == str(target):
            raise ValueError(f"{option} {path}: is what is read here, and would be lost")
    if path == "-":
        raise ValueError(f"{option} must be a file here; standard output takes the report")
    if target.is_dir():
        raise ValueError(f"{option} {path}: is a directory, not a file")
    if target.exists() and not target.is_file():
        raise ValueError(f"{option} {path}: exists and is not a regular file")
    if not target.parent.is_dir():
        raise ValueError(f"{option} {path}: no such directory: {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{option} {path}: no permission to write in {target.parent}")


def size_of(path: str) -> str:
    return readable_size(os.path.getsize(path))


def readable_size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
