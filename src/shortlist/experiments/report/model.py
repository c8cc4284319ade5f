"""The parts of a report as plain data, without a word on how they look.

Texts are Markdown in a small way, as :mod:`~shortlist.experiments.report.prose` says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from shortlist.plots.charts import Panel


@dataclass(frozen=True)
class Value:
    """A number of ours, beside the paper's where there is one.

    ``spread`` is what its table says: a standard error, or a standard deviation over repetitions.
    ``p_value`` belongs to a difference. ``best`` marks the best of a column, ``paper_best`` what
    the paper prints in bold; ``note`` is a mark that a table's note explains. ``signed`` numbers
    are differences themselves.
    """

    ours: float
    paper: float | None = None
    spread: float | None = None
    p_value: float | None = None
    best: bool = False
    paper_best: bool = False
    digits: int = 1
    note: str = ""
    signed: bool = False

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.ours - self.paper

    @property
    def printed(self) -> float:
        """The number as it is printed: what rounds to the same is the same."""
        return round(self.ours, self.digits)

    def text(self, number: float | None) -> str:
        """A number for people, with as many digits as the value has."""
        if not _is_number(number):
            return "–"
        return self.signed_text(number) if self.signed else f"{number:.{self.digits}f}"

    def signed_text(self, number: float) -> str:
        """A number with its sign; a number that rounds to zero has none."""
        text = f"{number:+.{self.digits}f}".replace("-", "−")
        return text[1:] if float(f"{number:.{self.digits}f}") == 0 else text

    @property
    def spread_text(self) -> str:
        """The spread, with ± before it; empty where there is none."""
        return f"±{self.spread:.{self.digits}f}" if _is_number(self.spread) else ""

    @property
    def p_text(self) -> str:
        if not _is_number(self.p_value):
            return ""
        return "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"

    @property
    def difference_text(self) -> str:
        """The difference from the paper, signed; empty where there is none."""
        difference = self.difference
        return self.signed_text(difference) if _is_number(difference) else ""

    def is_far(self, tolerance: float | None) -> bool:
        """Whether the difference from the paper, as printed, exceeds the tolerance."""
        if tolerance is None or self.difference is None:
            return False
        return round(abs(self.difference), self.digits) > tolerance


def _is_number(number: float | None) -> TypeGuard[float]:
    return number is not None and math.isfinite(number)


Cell = Value | str
Rows = Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings. The first ``text_columns`` hold text, the others numbers.

    ``groups`` holds the numbers of rows that begin a new group; ``fold`` hides a table of details
    until it is asked for; ``tolerance`` is the difference from the paper beyond which a number is
    pointed out; ``spread`` says what stands behind ±.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Rows
    caption: str = ""
    notes: Sequence[str] = ()
    groups: Sequence[int] = ()
    fold: bool = False
    tolerance: float | None = None
    spread: str = "standard error"
    text_columns: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                told = f"a row has {len(row)} cells for {len(self.columns)} columns"
                raise ValueError(f"table {self.name!r}: {told}")

    @property
    def values(self) -> list[Value]:
        return [cell for row in self.rows for cell in row if isinstance(cell, Value)]

    @property
    def key(self) -> str:
        """How to read a cell, where there is more in it than one number."""
        parts = []
        if any(value.spread is not None for value in self.values):
            parts.append(f"±: {self.spread}.")
        if any(value.paper is not None for value in self.values):
            parts.append("Each cell: ours, then the paper’s number and the difference.")
            parts.append("**Bold**: the best of its column, ours and the paper’s.")
        return " ".join(parts)


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with a title and a caption."""

    name: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()


@dataclass(frozen=True)
class Remark:
    """Something to know about the numbers: what it is about, and what there is to say."""

    topic: str
    text: str


@dataclass(frozen=True)
class Section:
    """An experiment's outcome.

    A headline is a number, as text, and what it is. ``remarks`` say what differs from the paper and
    why, ``protocol`` how the numbers were made. ``result`` is a dataclass or several, for
    results.json.
    """

    name: str
    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    figures_first: bool = False
    headlines: Sequence[tuple[str, str]] = ()
    remarks: Sequence[Remark] = ()
    protocol: Sequence[str] = ()
    result: Any = None


@dataclass(frozen=True)
class Report:
    """Sections with what they were made on."""

    title: str
    sections: Sequence[Section]
    environment: dict[str, str]
    #: Experiments left out: name and reason.
    skipped: Sequence[tuple[str, str]] = ()
