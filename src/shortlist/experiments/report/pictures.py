"""Charts and pictures through matplotlib: files, and SVG to put into a page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from shortlist.experiments.report.model import Chart, Figure, Series
from shortlist.plots import PALETTE
from shortlist.plots._style import LINE_STYLES, mark_level, style_curves

#: Text stays text, so that it can be searched, and equal pictures are equal files.
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "shortlist", "font.size": 10}


def have_matplotlib() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw(figure: Figure) -> Any:
    """A matplotlib figure of a report's figure."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        return figure.draw() if figure.draw is not None else _draw_charts(figure.charts)


def picture(drawn: Any, format: str) -> bytes:
    """A drawn figure's file contents, "png" or "svg"."""
    import matplotlib

    buffer = io.BytesIO()
    # A date would make equal pictures different files.
    metadata = {"Date": None} if format == "svg" else None
    with matplotlib.rc_context(_STYLE):
        drawn.savefig(buffer, format=format, dpi=160, metadata=metadata, facecolor="white")
    return buffer.getvalue()


def inline_svg(drawn: Any, identity: str, alternative: str) -> str:
    """A drawn figure as an SVG element for a page whose text colour it takes over."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # Ids are unique within a picture, but a page holds several.
    text = re.sub(r'\bid="', f'id="{identity}-', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\g<1>#{identity}-", text)
    text = text.replace("#000000", "currentColor")
    # Text without a colour of its own is black whatever the page's colour.
    text = re.sub(r"<svg [^>]*>", lambda match: _opening(match[0], alternative), text, count=1)
    return text.strip()


def close(drawn: Any) -> None:
    import matplotlib.pyplot as pyplot

    pyplot.close(drawn)


def _opening(tag: str, alternative: str) -> str:
    from html import escape

    box = re.search(r'viewBox="[^"]*"', tag)
    return (
        f'<svg class="picture" {box[0] if box else ""} role="img" fill="currentColor" '
        f'aria-label="{escape(alternative, quote=True)}">'
    )


def _draw_charts(charts: Sequence[Chart]) -> Any:
    from matplotlib.figure import Figure as Canvas

    # Side by side like in the page; more than three would be too small to read.
    n_columns = len(charts) if len(charts) <= 3 else 2
    n_rows = -(-len(charts) // n_columns)
    canvas = Canvas(figsize=(4.8 * n_columns, 4.2 * n_rows), layout="constrained")
    axes = canvas.subplots(n_rows, n_columns, squeeze=False).flat
    for ax in list(axes)[len(charts) :]:
        ax.remove()
    for chart, ax in zip(charts, canvas.axes, strict=True):
        _draw_chart(chart, ax)
    return canvas


def _draw_chart(chart: Chart, ax: Any) -> None:
    for series in chart.series:
        ax.plot(series.x, series.y, label=series.name, **_line(series))
    if chart.x_log:
        ax.set_xscale("log")
    if chart.y_log:
        ax.set_yscale("log")
    if chart.x_limits is not None:
        ax.set_xlim(chart.x_limits)
    if chart.y_limits is not None:
        ax.set_ylim(chart.y_limits)
    for height, name in chart.levels:
        mark_level(ax, height, name)
    if chart.x_whole:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    style_curves(ax)
    ax.set(xlabel=chart.x_label, ylabel=chart.y_label, title=chart.title)
    if len(chart.series) > 1:
        ax.legend(fontsize="small")


def _line(series: Series) -> dict[str, Any]:
    options: dict[str, Any] = {
        "color": PALETTE[series.color % len(PALETTE)],
        "linestyle": LINE_STYLES[series.dash % len(LINE_STYLES)],
        "alpha": 0.45 if series.faint else 1.0,
    }
    if series.markers:
        options |= {"marker": "o", "markersize": 3}
    if series.steps:
        options["drawstyle"] = "steps-mid"
    return options
