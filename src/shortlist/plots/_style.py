"""What all pictures share: the lazy import of matplotlib, colours, and axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Okabe and Ito's colours, distinct for every common form of colour blindness. Yellow comes
#: last because it is faint on white.
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#000000",  # black
    "#F0E442",  # yellow
)

#: A second cue beside colour; it changes each time the palette has been used up.
LINE_STYLES = ("-", "--", ":", "-.")


def require_pyplot(caller: str) -> Any:
    """matplotlib.pyplot, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed. "
            "Install it with: pip install 'shortlist[plot]'"
        ) from error
    return pyplot


def axes_for(caller: str, ax: Any = None, **subplots_options: Any) -> tuple[Any, Any]:
    """The given axes, or new ones, and their figure."""
    pyplot = require_pyplot(caller)
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained", **subplots_options)
    return ax, ax.figure


def line_style(number: int) -> dict[str, str]:
    """Colour and dash pattern of the line with this number on its axes."""
    return {
        "color": PALETTE[number % len(PALETTE)],
        "linestyle": LINE_STYLES[number // len(PALETTE) % len(LINE_STYLES)],
    }


def draw_curves(
    ax: Any, x: Any, curves: Mapping[str, Any], line_options: Mapping[str, Any], **common: Any
) -> list[Any]:
    """Draw named curves over x, in the usual styles unless ``line_options`` say otherwise."""
    lines = []
    for number, (name, values) in enumerate(curves.items()):
        # Thinner and thinner, so that a curve shows beneath another that coincides with it.
        width = max(3.0 - 0.3 * number, 1.2)
        own = {"label": name, "linewidth": width, "markersize": width + 1.0, **line_style(number)}
        lines += ax.plot(x, values, **{**own, **common, **line_options})
    return lines


def style_curves(ax: Any) -> None:
    """Light grid behind, no box: the same quiet frame around every curve."""
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def mark_level(ax: Any, height: float, name: str) -> None:
    """A dashed line across, named at its right end rather than in the legend."""
    from matplotlib.patheffects import withStroke

    ax.axhline(height, color="0.4", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    ax.annotate(
        name,
        (1, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        color="0.4",
        fontsize="small",
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )
