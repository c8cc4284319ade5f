"""A report as files in a folder: tables, figures, all data, and the page."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shortlist._files import atomic_write
from shortlist._json import plain
from shortlist.experiments.report import pictures
from shortlist.experiments.report.markdown import to_plain
from shortlist.experiments.report.model import Report, Section, Table, Value
from shortlist.experiments.report.page import page

PAGE = "report.html"
DATA = "results.json"


def write(report: Report, folder: Path) -> list[Path]:
    """Write everything; returns the files, the page first. A section's files bear its name."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    inline: dict[str, str] = {}
    for section in report.sections:
        for table in section.tables:
            written.append(_write(folder / f"{section.name}-{table.name}.csv", table_csv(table)))
        if pictures.have_matplotlib():
            written += _write_figures(section, folder, inline)
    data = json.dumps(report_data(report), indent=1, allow_nan=False, ensure_ascii=False)
    written.append(_write(folder / DATA, data))
    return [_write(folder / PAGE, page(report, inline)), *written]


def table_csv(table: Table) -> str:
    """Comma-separated values; a compared column is followed by the paper's and the difference."""
    parts = [_parts_of(table, place) for place in range(len(table.columns))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        " ".join(filter(None, [to_plain(column.name), part]))
        for column, names in zip(table.columns, parts, strict=True)
        for part in names
    )
    for row in table.rows:
        writer.writerow(
            _csv_entry(cell, part) for cell, names in zip(row, parts, strict=True) for part in names
        )
    return text.getvalue()


def report_data(report: Report) -> dict[str, Any]:
    """All of a report's numbers as plain data for JSON."""
    sections = {}
    for section in report.sections:
        tables = {table.name: _table_data(table) for table in section.tables}
        sections[section.name] = {
            "title": section.title,
            "headlines": [{"value": number, "what": what} for number, what in section.headlines],
            "remarks": [to_plain(remark) for remark in section.remarks],
            "tables": tables,
            "figures": {
                figure.name: [asdict(chart) for chart in figure.charts]
                for figure in section.figures
            },
            **section.data,
        }
    return plain(
        {
            "title": report.title,
            "environment": report.environment,
            "sections": sections,
            "skipped": dict(report.skipped),
        }
    )


def _write(path: Path, contents: str | bytes) -> Path:
    data = contents.encode() if isinstance(contents, str) else contents
    with atomic_write(path) as part:
        part.write_bytes(data)
    return path


def _write_figures(section: Section, folder: Path, inline: dict[str, str]) -> list[Path]:
    written = []
    for figure in section.figures:
        drawn = pictures.draw(figure)
        for kind in ("png", "svg"):
            path = folder / f"{section.name}-{figure.name}.{kind}"
            written.append(_write(path, pictures.picture(drawn, kind)))
        if not figure.charts:
            identity = f"{section.name}-{figure.name}"
            inline[f"{section.name}/{figure.name}"] = pictures.inline_svg(
                drawn, identity, figure.alternative or to_plain(figure.caption)
            )
        pictures.close(drawn)
    return written


def _parts_of(table: Table, place: int) -> list[str]:
    """The names of what a column's cells hold: "" for the cell itself, then what stands beside."""
    values = [row[place] for row in table.rows if isinstance(row[place], Value)]
    parts = [""]
    if any(isinstance(v, Value) and v.deviation is not None for v in values):
        parts.append("deviation")
    if any(isinstance(v, Value) and v.paper is not None for v in values):
        parts += ["paper", "difference"]
    return parts


def _csv_entry(cell: Value | str, part: str) -> str:
    if isinstance(cell, str):
        return to_plain(cell) if part == "" else ""
    number = getattr(cell, part or "ours")
    return "" if number is None or not math.isfinite(number) else f"{number:.{cell.digits + 2}f}"


def _table_data(table: Table) -> list[dict[str, Any]]:
    return [
        {
            to_plain(column.name): (
                to_plain(cell)
                if isinstance(cell, str)
                else {**asdict(cell), "difference": cell.difference}
            )
            for column, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]
