"""A report as files in a folder: tables, figures, all data, and the page.

The page is one HTML file that needs nothing else: no network, no scripts, no further files.
"""

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shortlist._files import atomic_write
from shortlist._json import plain
from shortlist.experiments import paper
from shortlist.experiments.report.model import Report, Table, Value
from shortlist.experiments.report.prose import templates, to_html, to_plain
from shortlist.plots import charts

PAGE = "report.html"
DATA = "results.json"
TEMPLATE = "report.html.j2"


def write(report: Report, folder: Path) -> list[Path]:
    """Write everything; returns the files, the page first. A section's files bear its name."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str | bytes] = {}
    pictures: dict[str, list[str]] = {}
    for section in report.sections:
        for table in section.tables:
            files[f"{section.name}-{table.name}.csv"] = table_csv(table)
        for figure in section.figures if charts.have_matplotlib() else ():
            identity, drawn = f"{section.name}-{figure.name}", charts.draw_panels(figure.panels)
            files[f"{identity}.png"] = charts.picture_file(drawn, "png")
            files[f"{identity}.svg"] = charts.picture_file(drawn, "svg")
            panels = enumerate(figure.panels)
            pictures[identity] = [charts.inline_svg(p, f"{identity}-{n}") for n, p in panels]
    data = report_data(report)
    files[DATA] = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
    files = {PAGE: page(report, pictures), **files}
    for name, contents in files.items():
        with atomic_write(folder / name) as part:
            part.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return [folder / name for name in files]


def page(report: Report, pictures: Mapping[str, list[str]]) -> str:
    """The page. ``pictures`` holds the SVG elements of each figure by "section-figure".

    A figure without pictures says that it needs matplotlib.
    """
    from markupsafe import Markup

    environment = templates(autoescape=True)
    # to_html escapes what it is given; nothing else is marked as safe but our own pictures.
    environment.filters["markdown"] = lambda text: Markup(to_html(text))
    template = environment.get_template(TEMPLATE)
    return template.render(report=report, pictures=pictures, numbers=_numbers(report), paper=paper)


def table_csv(table: Table) -> str:
    """Comma-separated values; a compared column is followed by the paper's and the difference."""
    parts = [_parts_of(table, place) for place in range(len(table.columns))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        f"{to_plain(column)} {name}".rstrip()
        for column, names in zip(table.columns, parts, strict=True)
        for name in names
    )
    for row in table.rows:
        writer.writerow(
            _csv_entry(cell, attribute)
            for cell, names in zip(row, parts, strict=True)
            for attribute in names.values()
        )
    return text.getvalue()


def report_data(report: Report) -> dict[str, Any]:
    """All of a report's numbers as plain data for JSON."""
    sections = {
        section.name: {
            "title": section.title,
            "headlines": [{"value": number, "what": what} for number, what in section.headlines],
            "remarks": {to_plain(each.topic): to_plain(each.text) for each in section.remarks},
            "tables": {table.name: _table_data(table) for table in section.tables},
            "figures": {
                figure.name: [each for each in figure.panels if isinstance(each, charts.Chart)]
                for figure in section.figures
            },
            "result": section.result,
        }
        for section in report.sections
    }
    data = {"title": report.title, "environment": report.environment, "sections": sections}
    return plain({**data, "skipped": dict(report.skipped)})


def _parts_of(table: Table, place: int) -> dict[str, str]:
    """The parts of a column's cells: names for the heading, and attributes of the values."""
    values = [cell for row in table.rows if isinstance(cell := row[place], Value)]
    parts = {"": "ours"}
    if any(value.spread is not None for value in values):
        parts[table.spread] = "spread"
    if any(value.p_value is not None for value in values):
        parts["p"] = "p_value"
    if any(value.paper is not None for value in values):
        parts |= {"paper": "paper", "difference": "difference"}
    return parts


def _csv_entry(cell: Value | str, attribute: str) -> str:
    if isinstance(cell, str):
        return to_plain(cell) if attribute == "ours" else ""
    number = getattr(cell, attribute)
    if number is None or not math.isfinite(number):
        return ""
    return f"{number:.4g}" if attribute == "p_value" else f"{number:.{cell.digits + 2}f}"


def _table_data(table: Table) -> list[dict[str, Any]]:
    def data(cell: Value | str) -> Any:
        if isinstance(cell, str):
            return to_plain(cell)
        return {**plain(cell), "difference": cell.difference}

    names = [to_plain(column) for column in table.columns]
    return [dict(zip(names, map(data, row), strict=True)) for row in table.rows]


def _numbers(report: Report) -> dict[str, str]:
    """ "Figure 3" or "Table 2" by "section-name", counted through the report."""
    numbers: dict[str, str] = {}
    for word, parts in (("Table", "tables"), ("Figure", "figures")):
        names = [f"{s.name}-{part.name}" for s in report.sections for part in getattr(s, parts)]
        numbers |= {name: f"{word} {number}" for number, name in enumerate(names, 1)}
    return numbers
