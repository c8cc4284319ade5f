"""The parts of a report as plain data, without a word on how they look.

Texts are Markdown in a small way: paragraphs with **strong**, *emphasis*, `code` and
[links](#anchor), nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Value:
    """A number of ours, beside the paper's where there is one.

    ``deviation`` is a standard deviation over repetitions; ``best`` marks the best of a column,
    ``paper_best`` what the paper prints in bold; ``note`` is a mark that a table's note explains.
    ``signed`` numbers are differences themselves.
    """

    ours: float
    paper: float | None = None
    deviation: float | None = None
    best: bool = False
    paper_best: bool = False
    digits: int = 1
    note: str = ""
    signed: bool = False

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.ours - self.paper

    def text(self, number: float | None) -> str:
        """A number for people, with as many digits as the value has."""
        if number is None or not math.isfinite(number):
            return "–"
        return self.signed_text(number) if self.signed else f"{number:.{self.digits}f}"

    def signed_text(self, number: float) -> str:
        """The same with its sign; what rounds to zero has none."""
        text = f"{number:+.{self.digits}f}".replace("-", "−")
        return text[1:] if float(f"{number:.{self.digits}f}") == 0 else text

    @property
    def difference_text(self) -> str:
        """The difference from the paper, signed; empty where there is none."""
        return "" if self.difference is None else self.signed_text(self.difference)


Cell = Value | str


@dataclass(frozen=True)
class Column:
    """A column's heading; numbers stand to the right."""

    name: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns.

    ``groups`` holds the numbers of rows that begin a new group; ``fold`` hides a table of details
    until it is asked for; ``tolerance`` is the difference from the paper beyond which a number is
    pointed out.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    notes: Sequence[str] = ()
    groups: Sequence[int] = ()
    fold: bool = False
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name!r}: a row has {len(row)} cells for "
                    f"{len(self.columns)} columns"
                )

    @property
    def compares(self) -> bool:
        """Whether any cell has a number of the paper's beside it."""
        return any(
            isinstance(cell, Value) and cell.paper is not None for row in self.rows for cell in row
        )


@dataclass(frozen=True)
class Series:
    """A curve. Equal ``color`` numbers mean kinship; ``dash`` tells kin apart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: int = 0
    dash: int = 0
    markers: bool = False
    faint: bool = False
    steps: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over common axes. Limits left out follow from the data."""

    x_label: str
    y_label: str
    series: Sequence[Series]
    title: str = ""
    x_log: bool = False
    y_log: bool = False
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    #: Horizontal lines: height and name, which is empty where the axis says it.
    levels: Sequence[tuple[float, str]] = ()
    #: Whether x counts something, so that ticks are whole numbers.
    x_whole: bool = False


@dataclass(frozen=True)
class Figure:
    """One or several charts side by side with a caption, or a picture drawn by matplotlib.

    ``draw`` returns a matplotlib figure for the files; without it the charts are drawn.
    """

    name: str
    caption: str
    charts: Sequence[Chart] = ()
    draw: Callable[[], Any] | None = None
    alternative: str = ""


@dataclass(frozen=True)
class Section:
    """An experiment's outcome."""

    name: str
    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    #: Whether the figures come before the tables.
    figures_first: bool = False
    #: Headlines: a number, as text, and what it is.
    headlines: Sequence[tuple[str, str]] = ()
    #: Remarks after the tables: differences from the paper and why.
    remarks: Sequence[str] = ()
    #: How the numbers were made.
    protocol: Sequence[str] = ()
    #: Everything else worth keeping, as plain data.
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """Sections with what they were made on."""

    title: str
    sections: Sequence[Section]
    environment: dict[str, str]
    #: Experiments left out: name and reason.
    skipped: Sequence[tuple[str, str]] = ()
