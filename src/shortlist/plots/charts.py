"""Charts as data, and how they are drawn: for reports, whose numbers are stored beside them."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, NamedTuple

from shortlist.plots._style import LINE_STYLES, PALETTE, mark_level, style_curves

Scale = Literal["linear", "log", "symlog"]

#: Text stays text, so that it can be searched, and equal pictures are equal files.
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "shortlist", "font.size": 10}
#: Inches of a chart without its legend, of a row of the legend, and letters in such a row.
_WIDTH, _HEIGHT, _LEGEND_ROW, _LEGEND_LETTERS = 4.8, 3.3, 0.2, 64
#: Colours that follow the page around a picture: text and frames, grid, levels, background.
_PAGE_COLOURS = {
    "#000000": "currentColor",
    "#e6e6e6": "var(--line)",
    "#666666": "var(--quiet)",
    "#ffffff": "var(--paper)",
}


class Margins(NamedTuple):
    """Inches around the axes, for their labels, title and legend."""

    left: float
    right: float
    bottom: float
    top: float


_PICTURE_MARGINS = Margins(0.1, 0.1, 0.35, 0.55)


@dataclass(frozen=True)
class Series:
    """A curve. Related curves share a number of ``color`` and differ in ``dash``."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: int = 0
    dash: int = 0
    markers: bool = False
    faint: bool = False
    steps: bool = False


def numbered_series(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> list[Series]:
    """A curve for each name, x and y; each has a colour of its own and marks at its points."""
    return [
        Series(name, list(x), list(y), color=number, markers=True)
        for number, (name, (x, y)) in enumerate(curves.items())
    ]


@dataclass(frozen=True)
class Chart:
    """Curves over common axes. Limits left out follow from the data.

    The scale "symlog" is logarithmic from 1 on and has a place for 0.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    title: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    y_limits: tuple[float, float] | None = None
    #: Horizontal lines: height and name, which is empty where the axis says it.
    levels: Sequence[tuple[float, str]] = ()
    #: Whether x counts something, so that ticks are whole numbers.
    x_whole: bool = False

    @property
    def alternative(self) -> str:
        """The chart in words: the alternative text of the picture."""
        names = ", ".join(series.name for series in self.series)
        title = f"{self.title}: " if self.title else ""
        return f"{title}{self.y_label} against {self.x_label}; curves: {names}"

    @property
    def is_clipped(self) -> bool:
        """Whether some points lie beyond the limits."""
        return any(self._clipped(series, sign) for series in self.series for sign in (-1, 1))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return _WIDTH, _HEIGHT + _LEGEND_ROW * self._legend_shape[0]

    @property
    def margins(self) -> Margins:
        return Margins(0.74, 0.14, 0.54 + _LEGEND_ROW * self._legend_shape[0], 0.32)

    def draw(self, ax: Any) -> None:
        """Draw into matplotlib axes, the legend beneath."""
        for series in self.series:
            ax.plot(series.x, series.y, label=series.name, **_line(series))
        ax.set_xscale(self.x_scale, **_scale_options(self.x_scale))
        ax.set_yscale(self.y_scale, **_scale_options(self.y_scale))
        if self.y_limits is not None:
            ax.set_ylim(self.y_limits)
            self._mark_clipped(ax)
        self._set_ticks(ax)
        for height, name in self.levels:
            mark_level(ax, height, name)
        style_curves(ax)
        ax.set(xlabel=self.x_label, ylabel=self.y_label, title=self.title)
        if len(self.series) > 1:
            ax.legend(
                loc="upper center",
                bbox_to_anchor=(0.45, -0.19),
                borderaxespad=0.0,
                ncols=self._legend_shape[1],
                fontsize="small",
                frameon=False,
                columnspacing=1.2,
            )

    @property
    def _legend_shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if len(self.series) < 2:
            return 0, 1
        longest = max(len(series.name) for series in self.series)
        columns = min(max(_LEGEND_LETTERS // (longest + 7), 1), len(self.series))
        return math.ceil(len(self.series) / columns), columns

    def _set_ticks(self, ax: Any) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        if self.x_whole:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if self.x_scale == "symlog":
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            ax.set_xlim(left=-0.25)
        for scale, axis in ((self.x_scale, ax.xaxis), (self.y_scale, ax.yaxis)):
            if scale == "log":
                _set_log_ticks(axis)

    def _clipped(self, series: Series, sign: int) -> list[float]:
        """Where a curve lies below (-1) or above (+1) the limits."""
        if self.y_limits is None:
            return []
        low, high = self.y_limits
        edge = low if sign < 0 else high
        return [x for x, y in zip(series.x, series.y, strict=True) if sign * y > sign * edge]

    def _mark_clipped(self, ax: Any) -> None:
        """A triangle at the edge for every point beyond it; smaller ones lie upon larger ones."""
        for number, series in enumerate(self.series):
            for sign, marker, edge in zip((-1, 1), "v^", self.y_limits or (), strict=True):
                places = self._clipped(series, sign)
                ax.plot(
                    places,
                    [edge] * len(places),
                    marker,
                    color=PALETTE[series.color % len(PALETTE)],
                    markersize=max(10 - 1.5 * number, 3),
                    clip_on=False,
                )


@dataclass(frozen=True)
class Picture:
    """Something drawn that is not a chart: ``paint`` is given matplotlib axes."""

    paint: Callable[[Any], None]
    alternative: str
    size: tuple[float, float]
    title: str = ""
    is_clipped: bool = False
    margins: Margins = _PICTURE_MARGINS

    def draw(self, ax: Any) -> None:
        self.paint(ax)


Panel = Chart | Picture


def have_matplotlib() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw_panels(panels: Sequence[Panel]) -> Any:
    """A matplotlib figure with all panels, side by side; more than three in two columns."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = len(panels) if len(panels) <= 3 else 2
    rows = math.ceil(len(panels) / columns)
    width, height = (max(panel.size[side] for panel in panels) for side in (0, 1))
    whole = (width * columns, height * rows)
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=whole)
        for place, panel in enumerate(panels):
            row, column = divmod(place, columns)
            # Panels of different heights are aligned at the top.
            bottom = height * (rows - row) - panel.size[1]
            box = _box(panel, width * column, bottom, whole)
            panel.draw(figure.add_axes(box))
    return figure


def _box(
    panel: Panel, left: float, bottom: float, whole: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Where a panel's axes lie in a figure of this size, as shares of it."""
    margins, (width, height) = panel.margins, panel.size
    return (
        (left + margins.left) / whole[0],
        (bottom + margins.bottom) / whole[1],
        (width - margins.left - margins.right) / whole[0],
        (height - margins.bottom - margins.top) / whole[1],
    )


def picture_file(figure: Any, format: Literal["png", "svg"]) -> bytes:
    """The contents of a file with a drawn figure."""
    import matplotlib

    buffer = io.BytesIO()
    # A date would make equal pictures different files.
    metadata = {"Date": None} if format == "svg" else None
    with matplotlib.rc_context(_STYLE):
        figure.savefig(buffer, format=format, dpi=160, metadata=metadata, facecolor="white")
    return buffer.getvalue()


def inline_svg(panel: Panel, identity: str) -> str:
    """A panel as an SVG element whose colours follow the page's, light or dark.

    The page defines the colours --c0 to --c7 of curves, and --line, --quiet and --paper.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure = draw_panels([panel])
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # Ids are unique within a picture, but a page holds several.
    text = re.sub(r'\bid="', f'id="{identity}-', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\g<1>#{identity}-", text)
    colours = {colour.lower(): f"var(--c{n})" for n, colour in enumerate(PALETTE)}
    for colour, variable in {**colours, **_PAGE_COLOURS}.items():
        text = text.replace(colour, variable)
    box = re.search(r'viewBox="[^"]*"', text)
    opening = (
        f'<svg class="picture" {box[0] if box else ""} role="img" fill="currentColor" '
        f'aria-label="{escape(panel.alternative, quote=True)}">'
    )
    return re.sub(r"<svg [^>]*>", lambda _: opening, text, count=1).strip()


def _set_log_ticks(axis: Any) -> None:
    """Powers of ten; where fewer than two are in sight, 1, 2 and 5 times them, in full."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_minor_formatter(NullFormatter())
    if high / low < 100:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _scale_options(scale: Scale) -> dict[str, float]:
    return {"linthresh": 1.0} if scale == "symlog" else {}


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
