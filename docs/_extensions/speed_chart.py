"""The directive {speed-chart}: the README's table of ratios as a chart, an SVG element of the page.

It is drawn from the table at every build, so that the two cannot differ.
"""

import math
import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

README = Path(__file__).parents[2] / "README.md"
#: Units of the picture: its width, the height of a row and of a line of text, and the space for a
#: bar's number. Names stand above their bars, so that they can be read on a phone.
WIDTH, ROW, LINE, NUMBER = 400, 42, 18, 140


class Row(NamedTuple):
    """A row of the table: how many times as fast as the fastest peer."""

    data: str
    loss: str
    ratio: float
    peer: str


def rows_of(readme: str) -> list[Row]:
    """The rows of the README's table of speed."""
    section = re.search(r"^## Speed\n(.*?)^## ", readme, re.M | re.S)
    if section is None:
        raise ValueError("the README has no section Speed")
    rows: list[Row] = []
    for line in section[1].splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"[\d.]+", cells[2]):
            # An empty cell means the data of the row above.
            data = cells[0] or rows[-1].data
            peer = re.sub(r"^[\d.*]+ ", "", cells[4])
            rows.append(Row(data, cells[1], float(cells[2]), peer))
    return rows


def svg(rows: list[Row]) -> str:
    """Bars from 1 to the right where we are faster, to the left where the peer is."""
    logs = [math.log2(row.ratio) for row in rows]
    low, high = min(-1.0, *logs), max(1.0, *logs)
    unit = (WIDTH - NUMBER) / (high - low)
    one = -low * unit
    height = ROW * len(rows) + 30
    parts = [
        f'<svg class="speed" viewBox="0 0 {WIDTH} {height}" role="img" fill="currentColor" '
        'aria-label="Bars of the ratios in the table">'
    ]
    for number, (row, log) in enumerate(zip(rows, logs, strict=True)):
        top = ROW * number + LINE
        left, right = sorted((one, one + log * unit))
        name = "won" if log >= 0 else "lost"
        parts += [
            f'<text x="0" y="{top - 5}">{escape(f"{row.data}, {row.loss}")}</text>',
            f'<rect class="{name}" x="{left:.1f}" y="{top}" width="{right - left:.1f}" '
            f'height="{LINE}"/>',
            f'<text x="{right + 5:.1f}" y="{top + 14}">{row.ratio:g} × {escape(row.peer)}</text>',
            f'<path d="M{one:.1f} {top - 2}v{LINE + 4}" stroke="currentColor"/>',
        ]
    parts += [
        f'<text x="{one:.1f}" y="{height - 8}" text-anchor="middle">as fast as the peer</text>',
        "</svg>",
    ]
    return "".join(parts)


class SpeedChart(SphinxDirective):
    def run(self):
        self.env.note_dependency(str(README))
        return [nodes.raw("", svg(rows_of(README.read_text(encoding="utf-8"))), format="html")]


def setup(app):
    app.add_directive("speed-chart", SpeedChart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
