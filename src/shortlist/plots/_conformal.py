"""Conformal shortlists: how long the sets are, and what coverage costs in length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.plots._style import PALETTE, line_style, mark_level, require_pyplot, style_curves

#: Lists of a fixed length are drawn up to this much beyond the longest mean length of the sets.
_FIXED_LENGTHS_BEYOND = 1


class ConformalDisplay:
    """Two panels: a histogram of the sets' sizes, and coverage against mean length.

    Parameters
    ----------
    report : mapping
        As ``ConformalShortlist.coverage_report`` returns it.
    curve : mapping
        As ``ConformalShortlist.coverage_curve`` returns it.
    name : str, optional
        The name of the sets in the legend; their score by default.

    Attributes
    ----------
    report, curve : what is drawn
    bars_, line_, axes_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(
        self, report: Mapping[str, Any], curve: Mapping[str, Any], *, name: str | None = None
    ) -> None:
        self.report = report
        self.curve = curve
        self.name = str(report["score"]) if name is None else name

    @classmethod
    def from_estimator(
        cls,
        sets: Any,
        X: Any,
        y: ArrayLike,
        *,
        confidence_levels: Iterable[float] | None = None,
        name: str | None = None,
        axes: Any = None,
    ) -> ConformalDisplay:
        """Draw how a calibrated ``ConformalShortlist`` does on labelled examples.

        `confidence_levels` are the points of the curve; `axes` is a pair of axes to draw into.
        """
        report = sets.coverage_report(X, y)
        curve = sets.coverage_curve(X, y, confidence_levels)
        return cls(report, curve, name=name).plot(axes)

    def plot(self, axes: Any = None) -> ConformalDisplay:
        """Draw into a pair of `axes`, new ones by default."""
        if axes is None:
            pyplot = require_pyplot(f"{type(self).__name__}.plot")
            _, axes = pyplot.subplots(1, 2, layout="constrained", figsize=(9, 3.8))
        if len(axes) != 2:
            raise ValueError(f"axes must be a pair, got {len(axes)}")
        self.axes_ = tuple(axes)
        self.figure_ = self.axes_[0].figure
        self._draw_sizes(self.axes_[0])
        self._draw_curve(self.axes_[1])
        return self

    def _draw_sizes(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        counts = np.trim_zeros(np.asarray(self.report["size_counts"]), "b")
        self.bars_ = ax.bar(np.arange(len(counts)), counts / counts.sum(), color=PALETTE[0])
        style_curves(ax)
        ax.grid(False, axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(_percent)
        ax.set(xlabel="Labels in the set", ylabel="Share of the examples")
        ax.set_title(f"mean length {self.report['mean_length']:.2f}", fontsize="medium")

    def _draw_curve(self, ax: Any) -> None:
        sizes = np.asarray(self.curve["mean_length"])
        fixed = np.asarray(self.curve["topk_accuracy"])
        fixed = fixed[: int(np.ceil(sizes.max())) + _FIXED_LENGTHS_BEYOND]
        (self.line_,) = ax.plot(
            sizes,
            self.curve["coverage"],
            marker="o",
            markersize=4,
            label=f"sets ({self.name})",
            **line_style(0),
        )
        lengths = np.arange(1, len(fixed) + 1)
        fixed_style = {**line_style(1), "linestyle": "--"}
        ax.plot(
            lengths, fixed, marker="s", markersize=4, label="lists of fixed length", **fixed_style
        )
        ax.plot(
            self.report["mean_length"],
            self.report["coverage"],
            marker="o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor=PALETTE[0],
            linestyle="none",
            label="these sets",
        )
        style_curves(ax)
        ax.yaxis.set_major_formatter(_percent)
        ax.set(xlabel="Mean length", ylabel="Coverage")
        ax.legend(loc="lower right")
        level = self.report["confidence_level"]
        if level is not None:
            mark_level(ax, level, f"wanted: {100 * level:g}%")


def _percent(share: float, position: int) -> str:
    return f"{100 * share:.4g}%"
