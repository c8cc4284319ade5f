"""Sections on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from shortlist.experiments.report.model import Cell, Section, Table, Value
from shortlist.experiments.report.text import is_strong, to_plain


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
        console.print(
            Padding(Text(f"• {to_plain(f'{remark.topic}: {remark.text}')}"), (0, 0, 0, 1))
        )


def show_table(table: Table, console: Console) -> None:
    """Print a table; a number is followed by the paper's and, signed, the difference.

    On a narrow terminal these stand beneath the number.
    """
    console.print()
    console.print(next(_fitting(table, console)))
    for line in filter(None, [table.key, *table.notes]):
        console.print(Text(to_plain(line), style="dim"))


@dataclass(frozen=True)
class _Layout:
    """What stands between a number and its spread, and before the paper's number."""

    before_spread: str = " "
    before_paper: str = " "
    names_wrap: bool = False


#: From the widest to the narrowest.
_LAYOUTS = (
    _Layout(),
    _Layout(before_paper="\n"),
    _Layout(before_spread="\n", before_paper="\n"),
    _Layout(before_spread="\n", before_paper="\n", names_wrap=True),
)


def _fitting(table: Table, console: Console) -> Iterator[RichTable]:
    """Yield the table in the layouts that cut no number short; the narrowest in any case."""
    for layout in _LAYOUTS:
        shown = _laid_out(table, layout)
        unlimited = console.options.update(width=10_000)
        needed = Measurement.get(console, unlimited, shown).minimum
        if needed <= console.width or layout is _LAYOUTS[-1]:
            yield shown


def _laid_out(table: Table, layout: _Layout) -> RichTable:
    shown = RichTable(
        title=to_plain(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1 if layout.names_wrap else 2, 0, 0),
    )
    texts = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        texts.append(_column_texts(cells, table.tolerance, layout))
        numbers = any(isinstance(cell, Value) for cell in cells)
        whole = numbers or (place == 0 and not layout.names_wrap)
        shown.add_column(
            Text(column.name),
            justify="right" if column.numeric else "left",
            no_wrap=whole,
            # Unless it is told, rich takes for granted that lines may be broken between words.
            min_width=max(text.cell_len for text in (Text(column.name), *_lines(texts[-1])))
            if whole
            else None,
        )
    for number, row in enumerate(zip(*texts, strict=True)):
        if number in table.groups and number:
            shown.add_section()
        shown.add_row(*row)
    return shown


def _column_texts(cells: Sequence[Cell], tolerance: float | None, layout: _Layout) -> list[Text]:
    width = max((len(cell.difference_text) for cell in cells if isinstance(cell, Value)), default=0)
    return [_text(cell, tolerance, width, layout) for cell in cells]


def _lines(texts: Sequence[Text]) -> Iterator[Text]:
    for text in texts:
        yield from text.split()


def _text(cell: Cell, tolerance: float | None, width: int, layout: _Layout) -> Text:
    if isinstance(cell, str):
        return Text(to_plain(cell), style="bold" if is_strong(cell) else "")
    parts: list[tuple[str, str]] = [
        (cell.text(cell.ours) + cell.note, "bold green" if cell.best else "")
    ]
    if cell.spread_text:
        parts.append((f"{layout.before_spread}{cell.spread_text}", "dim"))
    if cell.p_text:
        parts.append((f"{layout.before_paper}{cell.p_text}", "dim"))
    if cell.paper is not None:
        theirs = f"{layout.before_paper}{cell.text(cell.paper):>4}"
        parts.append((theirs, "bold" if cell.paper_best else "dim"))
        far = cell.is_far(tolerance)
        parts.append((f" {cell.difference_text:>{width}}", "yellow" if far else "dim"))
    return Text.assemble(*parts)
