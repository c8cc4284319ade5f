"""The table of losses as Markdown, from the registry; rewrites it in files that show it.

    python docs/losses_table.py README.md

A file shows the table between the lines ``<!-- losses -->`` and ``<!-- /losses -->``. If there is a
table already, its columns are kept, so a file may show fewer than there are.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from shortlist import losses

BEGIN, END = "<!-- losses -->", "<!-- /losses -->"
_REGION = re.compile(f"{BEGIN}\n(.*?){END}", re.DOTALL)
# Columns of names and formulas are set in code type; their stars and bars are not Markdown.
_CODE = frozenset({"loss", "formula", "torch"})


def markdown(columns: Sequence[str] | None = None) -> str:
    """The table with these columns, all of them by default."""
    rows = losses.table()
    shown = list(rows[0]) if columns is None else list(columns)
    unknown = set(shown) - set(rows[0])
    if unknown:
        raise ValueError(
            f"the table of losses has no column {sorted(unknown)[0]!r}; it has {', '.join(rows[0])}"
        )
    lines = [_line(shown), _line(["---"] * len(shown))]
    lines += [_line([_cell(name, row[name]) for name in shown]) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(column: str, text: str) -> str:
    text = text.replace("|", r"\|")
    return f"`{text}`" if column in _CODE and text not in ("", "none") else text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def shown_in(text: str) -> str | None:
    """What a text has between the markers, or None if it has no markers."""
    found = _REGION.search(text)
    return found.group(1) if found else None


def columns_of(table: str) -> list[str] | None:
    """The header of a Markdown table, or None if there is none."""
    header = table.strip().partition("\n")[0]
    if not header.startswith("|"):
        return None
    return [cell.strip() for cell in header.strip("| ").split("|")]


def up_to_date(text: str) -> str:
    """The text with the table between the markers made anew."""
    shown = shown_in(text)
    if shown is None:
        raise ValueError(f"no lines {BEGIN} and {END}")
    table = markdown(columns_of(shown))
    return _REGION.sub(lambda _: f"{BEGIN}\n{table}{END}", text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(up_to_date(file.read_text(encoding="utf-8")), encoding="utf-8")
