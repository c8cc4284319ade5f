"""A report as one HTML page that needs nothing else: no network, no further files."""

from __future__ import annotations

import html
from collections.abc import Iterator
from importlib.resources import files

from shortlist.experiments.report.markdown import to_html
from shortlist.experiments.report.model import Cell, Figure, Report, Section, Table, Value
from shortlist.experiments.report.svg import chart_svg, legend_html


def page(report: Report, pictures: dict[str, str]) -> str:
    """The page; ``pictures`` holds SVG elements by "section/figure" for figures without charts."""
    several = len(report.sections) > 1
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{html.escape(report.title)}</title>",
        f"<style>{_asset('report.css')}</style></head><body>",
        '<header class="top"><span class="brand">Shortlist</span>',
        '<button type="button" id="theme" aria-label="Switch between light and dark">◐</button>',
        "</header><main>",
    ]
    if several:
        parts += [f"<h1>{html.escape(report.title)}</h1>", *_contents(report)]
    for section in report.sections:
        parts += _section(section, "h2" if several else "h1", pictures)
    parts += [*_skipped(report), "</main>", *_footer(report)]
    parts += [f"<script>{_asset('report.js')}</script></body></html>"]
    return "\n".join(parts) + "\n"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _contents(report: Report) -> Iterator[str]:
    yield "<nav><ol>"
    for section in report.sections:
        yield f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>'
    yield "</ol></nav>"


def _section(section: Section, heading: str, pictures: dict[str, str]) -> Iterator[str]:
    yield f'<section id="{section.name}"><{heading}>{html.escape(section.title)}</{heading}>'
    for paragraph in section.paragraphs:
        yield f'<p class="lead">{to_html(paragraph)}</p>'
    if section.headlines:
        yield '<ul class="headlines">'
        for number, what in section.headlines:
            yield f"<li><strong>{html.escape(number)}</strong><span>{to_html(what)}</span></li>"
        yield "</ul>"
    tables = [_table(section, table) for table in section.tables if not table.fold]
    figures = [_figure(section, figure, pictures) for figure in section.figures]
    for part in figures + tables if section.figures_first else tables + figures:
        yield from part
    if section.remarks:
        yield '<h3>Differences and remarks</h3><ul class="remarks">'
        for remark in section.remarks:
            yield f"<li>{to_html(remark)}</li>"
        yield "</ul>"
    for table in section.tables:
        if table.fold:
            yield f"<details><summary>{html.escape(table.title)}</summary>"
            yield from _table(section, table)
            yield "</details>"
    if section.protocol:
        yield "<details><summary>How these numbers were made</summary><ul>"
        for line in section.protocol:
            yield f"<li>{to_html(line)}</li>"
        yield "</ul></details>"
    yield "</section>"


def _table(section: Section, table: Table) -> Iterator[str]:
    yield f'<figure class="table" id="{section.name}-{table.name}">'
    yield f"<figcaption><strong>{to_html(table.title)}</strong>"
    if table.caption:
        yield f" {to_html(table.caption)}"
    yield '</figcaption><div class="scroll"><table><thead><tr>'
    for column in table.columns:
        kind = ' class="number"' if column.numeric else ""
        yield f'<th scope="col"{kind}>{to_html(column.name)}</th>'
    yield "</tr></thead><tbody>"
    for number, row in enumerate(table.rows):
        yield '<tr class="first">' if number in table.groups and number else "<tr>"
        for place, cell in enumerate(row):
            yield _cell(cell, place == 0, table.columns[place].numeric, table.tolerance)
        yield "</tr>"
    yield "</tbody></table></div>"
    if table.compares:
        yield (
            '<p class="key-to-cells">Each cell: ours, beneath it the paper’s number and the '
            "difference. <strong>Bold</strong>: the best of its column, ours and the paper’s.</p>"
        )
    for note in table.notes:
        yield f'<p class="note">{to_html(note)}</p>'
    yield "</figure>"


def _cell(cell: Cell, first: bool, numeric: bool, tolerance: float | None) -> str:
    if isinstance(cell, str):
        if first:
            return f'<th scope="row">{to_html(cell)}</th>'
        kind = ' class="number"' if numeric else ""
        return f"<td{kind}>{to_html(cell)}</td>"
    best = " best" if cell.best else ""
    ours = f"{cell.text(cell.ours)}{html.escape(cell.note)}"
    if cell.deviation is not None:
        ours += f'<span class="deviation"> ± {cell.text(cell.deviation)}</span>'
    return (
        f'<td class="number{best}"><span class="ours">{ours}</span>{_paper(cell, tolerance)}</td>'
    )


def _paper(value: Value, tolerance: float | None) -> str:
    if value.paper is None or value.difference is None:
        return ""
    far = tolerance is not None and round(abs(value.difference), value.digits) > tolerance
    number = value.text(value.paper)
    if value.paper_best:
        number = f"<strong>{number}</strong>"
    kind = "difference far" if far else "difference"
    return (
        f'<span class="beside"><span class="paper">{number}</span> '
        f'<span class="{kind}">{value.difference_text}</span></span>'
    )


def _figure(section: Section, figure: Figure, pictures: dict[str, str]) -> Iterator[str]:
    identity = f"{section.name}-{figure.name}"
    yield f'<figure class="charts" id="{identity}">'
    if figure.charts:
        yield '<div class="row">'
        for place, chart in enumerate(figure.charts):
            yield '<div class="panel">'
            if chart.title:
                yield f"<h4>{html.escape(chart.title)}</h4>"
            yield f'<div class="canvas">{chart_svg(chart, f"{identity}-{place}")}'
            yield '<output class="tip" hidden></output></div>'
            yield f"{legend_html(chart)}</div>"
        yield "</div>"
    elif (picture := pictures.get(f"{section.name}/{figure.name}")) is not None:
        yield f'<div class="canvas wide">{picture}</div>'
    else:
        yield '<p class="note">This picture needs matplotlib: install shortlist[plot].</p>'
    yield f"<figcaption>{to_html(figure.caption)}</figcaption></figure>"


def _skipped(report: Report) -> Iterator[str]:
    if report.skipped:
        yield '<section id="left-out"><h2>Left out</h2><ul>'
        for name, reason in report.skipped:
            yield f"<li><strong>{html.escape(name)}</strong>: {to_html(reason)}</li>"
        yield "</ul></section>"


def _footer(report: Report) -> Iterator[str]:
    yield "<footer><dl>"
    for name, value in report.environment.items():
        yield f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
    yield "</dl></footer>"
