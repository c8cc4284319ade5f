"""Held-out accuracy against C, as a search over C has measured it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.plots._style import axes_for, line_style, style_curves


class SearchDisplay:
    """Accuracy against C, a curve for each k with its spread, and a mark at the chosen C.

    Parameters
    ----------
    table : mapping
        As ``TopKClassifierCV.cv_results_``.
    chosen : mapping
        As ``TopKClassifierCV.C_``: the k to draw, and the C chosen for each.
    losses : mapping, optional
        As ``TopKClassifierCV.losses_``: the family chosen for each k. Needed where the table has
        several families; for each k the chosen one is drawn.

    Attributes
    ----------
    table, chosen, losses : what is drawn
    lines_, marks_ : dict of k to matplotlib's objects, after ``plot``
    ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(
        self,
        table: Mapping[str, NDArray],
        chosen: Mapping[int, float],
        losses: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        self.table = table
        self.chosen = chosen
        self.losses = losses

    @classmethod
    def from_estimator(
        cls, search: Any, *, ks: Iterable[int] | None = None, ax: Any = None
    ) -> SearchDisplay:
        """Draw what a fitted ``TopKClassifierCV`` has measured, by default for all its ks."""
        wanted = list(search.ks_ if ks is None else ks)
        for k in wanted:
            if k not in search.C_:
                raise ValueError(f"the search has chosen models for k in {search.ks_}, not for {k}")
        chosen = {k: search.C_[k] for k in wanted}
        return cls(search.cv_results_, chosen, search.losses_).plot(ax)

    def plot(self, ax: Any = None) -> SearchDisplay:
        """Draw into `ax`, new axes by default."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax)
        from matplotlib.ticker import PercentFormatter

        self.lines_: dict[int, Any] = {}
        self.marks_: dict[int, Any] = {}
        for number, k in enumerate(self.chosen):
            self._draw(k, line_style(number))
        style_curves(self.ax_)
        self.ax_.set_xscale("log")
        self.ax_.yaxis.set_major_formatter(PercentFormatter(1.0))
        self.ax_.set(xlabel="C", ylabel="Held-out accuracy")
        self.ax_.legend(loc="lower right")
        return self

    def _draw(self, k: int, style: dict[str, str]) -> None:
        rows = self._rows(k)
        Cs, means, stds = (self.table[name][rows] for name in ("C", f"mean_top{k}", f"std_top{k}"))
        (self.lines_[k],) = self.ax_.plot(
            Cs, means, marker="o", markersize=3, label=self._name(k), **style
        )
        if stds.any():
            self.ax_.fill_between(
                Cs, means - stds, means + stds, color=style["color"], alpha=0.15, linewidth=0
            )
        best = Cs == self.chosen[k]
        (self.marks_[k],) = self.ax_.plot(
            Cs[best], means[best], marker="*", markersize=12, color=style["color"], linestyle="none"
        )

    def _rows(self, k: int) -> NDArray:
        if self.losses is None:
            return np.arange(len(self.table["C"]))
        from shortlist.estimators.cv_results import FAMILY, rows_by_family

        return rows_by_family(self.table)[tuple(self.losses[k][name] for name in FAMILY)]

    def _name(self, k: int) -> str:
        from shortlist.estimators.cv_results import rows_by_family

        several = len(rows_by_family(self.table)) > 1
        if self.losses is None or not several:
            return f"top-{k}"
        return f"top-{k} ({self.losses[k]['loss']}, k={self.losses[k]['k']})"
