"""Sections on a terminal."""

from typing import Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from shortlist.experiments.report.model import Cell, Section, Table, Value
from shortlist.experiments.report.prose import is_strong, to_plain

#: What stands before spreads and before the paper's numbers, and whether names wrap: widest first.
_LAYOUTS = ((" ", " ", False), (" ", "\n", False), ("\n", "\n", False), ("\n", "\n", True))


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
        line = to_plain(f"{remark.topic}: {remark.text}")
        console.print(Padding(Text(f"• {line}"), (0, 0, 0, 1)))


def show_table(table: Table, console: Console) -> None:
    """Print a table; a number is followed by the paper's and, signed, the difference.

    On a narrow terminal these stand beneath the number.
    """
    console.print()
    console.print(_fitting(table, console))
    for line in filter(None, [table.key, *table.notes]):
        console.print(Text(to_plain(line), style="dim"))


def _fitting(table: Table, console: Console) -> RichTable:
    """The table in the widest layout that cuts no number short, or else in the narrowest."""
    unlimited = console.options.update(width=10_000)
    for layout in _LAYOUTS:
        shown = _laid_out(table, *layout)
        if Measurement.get(console, unlimited, shown).minimum <= console.width:
            break
    return shown


def _laid_out(table: Table, before_spread: str, before_paper: str, wrapped: bool) -> RichTable:
    padding, title = (0, 1 if wrapped else 2, 0, 0), to_plain(table.title)
    shown = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=padding)
    shown.pad_edge = False
    columns = []
    for place, name in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        values = [cell for cell in cells if isinstance(cell, Value)]
        width = max((len(value.difference_text) for value in values), default=0)
        texts = [_text(c, table.tolerance, width, before_spread, before_paper) for c in cells]
        # Rich breaks lines between words unless it is told not to.
        whole = bool(values) or (place == 0 and not wrapped)
        lines = [Text(name), *(line for text in texts for line in text.split())]
        min_width = max(line.cell_len for line in lines) if whole else None
        side: Literal["left", "right"] = "left" if place < table.text_columns else "right"
        shown.add_column(Text(name), justify=side, no_wrap=whole, min_width=min_width)
        columns.append(texts)
    for number, row in enumerate(zip(*columns, strict=True)):
        if number in table.groups and number:
            shown.add_section()
        shown.add_row(*row)
    return shown


def _text(
    cell: Cell, tolerance: float | None, width: int, before_spread: str, before_paper: str
) -> Text:
    if isinstance(cell, str):
        return Text(to_plain(cell), style="bold" if is_strong(cell) else "")
    parts = [(cell.text(cell.ours) + cell.note, "bold green" if cell.best else "")]
    if cell.spread_text:
        parts.append((f"{before_spread}{cell.spread_text}", "dim"))
    if cell.p_text:
        parts.append((f"{before_paper}{cell.p_text}", "dim"))
    if cell.paper is not None:
        theirs = f"{before_paper}{cell.text(cell.paper):>4}"
        parts.append((theirs, "bold" if cell.paper_best else "dim"))
        far = cell.is_far(tolerance)
        parts.append((f" {cell.difference_text:>{width}}", "yellow" if far else "dim"))
    return Text.assemble(*parts)
