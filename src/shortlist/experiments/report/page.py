"""A report as one HTML page that needs nothing else: no network, no scripts, no further files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from shortlist.experiments import paper
from shortlist.experiments.report.model import Report
from shortlist.experiments.report.text import to_html

TEMPLATE, STYLE = "report.html.j2", "report.css"


def page(report: Report, pictures: Mapping[str, list[str]]) -> str:
    """The page. ``pictures`` holds the SVG elements of each figure by "section-figure".

    A figure without pictures says that it needs matplotlib.
    """
    template = _environment().get_template(TEMPLATE)
    numbers = _numbers(report)
    return template.render(
        report=report, pictures=pictures, numbers=numbers, paper=paper, style=_asset(STYLE)
    )


def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # to_html escapes what it is given; nothing else is marked as safe but our own pictures.
    environment.filters["markdown"] = lambda text: Markup(to_html(text))
    return environment


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _numbers(report: Report) -> dict[str, str]:
    """ "Figure 3" or "Table 2" by "section-name", counted through the report."""
    numbers: dict[str, str] = {}
    for word, parts in (("Table", "tables"), ("Figure", "figures")):
        names = [f"{s.name}-{part.name}" for s in report.sections for part in getattr(s, parts)]
        numbers |= {name: f"{word} {number}" for number, name in enumerate(names, 1)}
    return numbers
