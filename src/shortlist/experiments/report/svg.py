"""Charts as SVG that takes its colours from the page: light or dark, and to be pointed at."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from itertools import pairwise

from shortlist.experiments.report.axes import Scale, limits
from shortlist.experiments.report.model import Chart, Series

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 46
#: A curve with more points is thinned: no screen shows them, and the page stays small.
MOST_POINTS = 240


def chart_svg(chart: Chart, identity: str) -> str:
    """The chart's SVG element; ``identity`` is unique on the page."""
    x, y = _scales(chart)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{_attribute(_summary(chart))}">',
        f'<clipPath id="{identity}-clip"><rect x="{LEFT}" y="{TOP - 4}" '
        f'width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM + 8}"/></clipPath>',
        *_axes(chart, x, y),
        f'<g clip-path="url(#{identity}-clip)">',
        *(_curve(series, number, x, y) for number, series in enumerate(chart.series)),
        "</g>",
        *_levels(chart, y),
        '<circle class="cursor" r="5" visibility="hidden"/>',
        "</svg>",
    ]
    return "".join(parts)


def legend_html(chart: Chart) -> str:
    """Buttons that name the curves and hide them."""
    if len(chart.series) < 2:
        return ""
    items = []
    for number, series in enumerate(chart.series):
        marker = '<circle cx="13" cy="6" r="2.6"/>' if series.markers else ""
        items.append(
            f'<li><button type="button" data-series="{number}" aria-pressed="true">'
            '<svg class="key" viewBox="0 0 26 12" aria-hidden="true">'
            f'<g class="{_classes(series)}"><path d="M1 6H25"/>{marker}</g></svg>'
            f"{html.escape(series.name)}</button></li>"
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    xs = [v for series in chart.series for v in series.x]
    ys = [v for series in chart.series for v in series.y]
    ys += [height for height, _ in chart.levels]
    x_low, x_high = chart.x_limits or limits(xs, chart.x_log, 0.02)
    y_low, y_high = chart.y_limits or limits(ys, chart.y_log, 0.05)
    return (
        Scale(x_low, x_high, LEFT, WIDTH - RIGHT, chart.x_log),
        Scale(y_low, y_high, HEIGHT - BOTTOM, TOP, chart.y_log),
    )


def _axes(chart: Chart, x: Scale, y: Scale) -> Iterator[str]:
    yield '<g class="grid">'
    for value, _ in y.ticks(6):
        yield f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>'
    for value, _ in x.ticks(10 if chart.x_whole else 6, chart.x_whole):
        yield f'<path d="M{x(value):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
    yield '</g><g class="ticks">'
    for value, label in y.ticks(6):
        yield f'<text x="{LEFT - 7}" y="{y(value) + 4.5:.1f}" text-anchor="end">{label}</text>'
    for value, label in x.ticks(10 if chart.x_whole else 6, chart.x_whole):
        yield (
            f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{label}</text>"
        )
    yield '</g><g class="labels">'
    yield (
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 7}" text-anchor="middle">'
        f"{html.escape(chart.x_label)}</text>"
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(chart.y_label)}</text></g>"
    )


def _levels(chart: Chart, y: Scale) -> Iterator[str]:
    for height, name in chart.levels:
        if not y.low <= height <= y.high:
            continue
        position = y(height)
        yield f'<g class="level"><path d="M{LEFT} {position:.1f}H{WIDTH - RIGHT}"/>'
        if name:
            yield (
                f'<text x="{WIDTH - RIGHT - 2}" y="{position - 5:.1f}" text-anchor="end">'
                f"{html.escape(name)}</text>"
            )
        yield "</g>"


def _curve(series: Series, number: int, x: Scale, y: Scale) -> str:
    points = _thinned(
        [
            (a, b)
            for a, b in zip(series.x, series.y, strict=True)
            if math.isfinite(a) and math.isfinite(b)
        ]
    )
    pixels = [(x(a), y(b)) for a, b in points]
    path = _path(pixels, series.steps)
    dots = ""
    if series.markers:
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in pixels)
    data = {
        "px": " ".join(f"{a:.1f}" for a, _ in pixels),
        "py": " ".join(f"{b:.1f}" for _, b in pixels),
        "x": " ".join(f"{a:.4g}" for a, _ in points),
        "y": " ".join(f"{b:.4g}" for _, b in points),
    }
    attributes = " ".join(f'data-{key}="{value}"' for key, value in data.items())
    return (
        f'<g class="series {_classes(series)}" data-series="{number}" '
        f'data-name="{_attribute(series.name)}" {attributes}><path d="{path}"/>{dots}</g>'
    )


def _path(pixels: list[tuple[float, float]], steps: bool) -> str:
    if not pixels:
        return "M0 0"
    pieces = [f"M{pixels[0][0]:.1f} {pixels[0][1]:.1f}"]
    for (before, _), (a, b) in pairwise(pixels):
        if steps:
            pieces.append(f"H{(before + a) / 2:.1f}V{b:.1f}H{a:.1f}")
        else:
            pieces.append(f"L{a:.1f} {b:.1f}")
    return "".join(pieces)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MOST_POINTS:
        return points
    every = math.ceil(len(points) / MOST_POINTS)
    return [*points[:-1:every], points[-1]]


def _classes(series: Series) -> str:
    faint = " faint" if series.faint else ""
    return f"c{series.color % 8} d{series.dash % 4}{faint}"


def _summary(chart: Chart) -> str:
    names = ", ".join(series.name for series in chart.series)
    title = f"{chart.title}: " if chart.title else ""
    return f"{title}{chart.y_label} against {chart.x_label}; curves: {names}"


def _attribute(text: str) -> str:
    return html.escape(text, quote=True)
