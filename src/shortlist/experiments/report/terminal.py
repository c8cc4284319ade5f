"""Sections on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from shortlist.experiments.report.markdown import to_plain
from shortlist.experiments.report.model import Cell, Section, Table, Value


def show(section: Section, console: Console) -> None:
    """Print a section: headlines, tables with the paper's numbers, and remarks."""
    console.print()
    console.rule(Text(section.title, style="bold"), align="left")
    for number, what in section.headlines:
        console.print(Text.assemble((number, "bold green"), "  ", what))
    for table in section.tables:
        if not table.fold:
            show_table(table, console)
    for remark in section.remarks:
        console.print(Padding(Text(f"• {to_plain(remark)}"), (0, 0, 0, 1)))


def show_table(table: Table, console: Console) -> None:
    """Print a table; a number is followed by the paper's and, signed, the difference.

    On a narrow terminal these stand beneath the number.
    """
    console.print()
    shown = _laid_out(table, " ")
    if Measurement.get(console, console.options, shown).minimum > console.width:
        shown = _laid_out(table, "\n")
    console.print(shown)
    for line in _legend(table):
        console.print(Text(line, style="dim"))


def _laid_out(table: Table, separator: str) -> RichTable:
    shown = RichTable(
        title=to_plain(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for place, column in enumerate(table.columns):
        shown.add_column(
            Text(column.name),
            justify="right" if column.numeric else "left",
            no_wrap=not place or any(isinstance(row[place], Value) for row in table.rows),
        )
    widths = [_difference_width(table, place) for place in range(len(table.columns))]
    for number, row in enumerate(table.rows):
        if number in table.groups and number:
            shown.add_section()
        cells = zip(row, widths, strict=True)
        shown.add_row(*(_text(cell, table.tolerance, width, separator) for cell, width in cells))
    return shown


def _difference_width(table: Table, place: int) -> int:
    cells = [row[place] for row in table.rows]
    return max((len(signed(cell)) for cell in cells if isinstance(cell, Value)), default=0)


def _text(cell: Cell, tolerance: float | None, width: int, separator: str) -> Text:
    if isinstance(cell, str):
        return Text(to_plain(cell))
    parts: list[tuple[str, str]] = [
        (cell.text(cell.ours) + cell.note, "bold green" if cell.best else "")
    ]
    if cell.deviation is not None:
        parts.append((f" ±{cell.text(cell.deviation)}", "dim"))
    if cell.paper is not None and cell.difference is not None:
        theirs = f"{separator}{cell.text(cell.paper):>4}"
        parts.append((theirs, "bold" if cell.paper_best else "dim"))
        far = tolerance is not None and round(abs(cell.difference), cell.digits) > tolerance
        parts.append((f" {signed(cell):>{width}}", "yellow" if far else "dim"))
    return Text.assemble(*parts)


def signed(value: Value) -> str:
    """The difference from the paper with its sign; zero has none."""
    if value.difference is None:
        return ""
    text = f"{value.difference:+.{value.digits}f}".replace("-", "−")
    return text[1:] if float(value.text(value.difference)) == 0 else text


def _legend(table: Table) -> Sequence[str]:
    lines = []
    if table.compares:
        lines.append("Each cell: ours, the paper's, the difference. Bold: best of its column.")
    return [*lines, *(to_plain(note) for note in table.notes)]
