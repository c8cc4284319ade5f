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
        The k to draw, and the row of the table chosen for each, as
        ``TopKClassifierCV.chosen_row(k)``. The family of that row is drawn.
    losses : mapping, optional
        As ``TopKClassifierCV.losses_``: the family chosen for each k. Where the table has several
        families, labels name it.

    Attributes
    ----------
    table, chosen, losses : what is drawn
    lines_, marks_ : dict of k to matplotlib's objects, after ``plot``
    ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(
        self,
        table: Mapping[str, NDArray],
        chosen: Mapping[int, int],
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
        chosen = {k: search.chosen_row(k) for k in wanted}
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
        best = rows == self.chosen[k]
        (self.marks_[k],) = self.ax_.plot(
            Cs[best], means[best], marker="*", markersize=12, color=style["color"], linestyle="none"
        )

    def _rows(self, k: int) -> NDArray:
        families = self.table["family"]
        return np.flatnonzero(families == families[self.chosen[k]])

    def _name(self, k: int) -> str:
        from shortlist._parameters import PLAIN_LOSS_PARAMETERS
        from shortlist.estimators.cv_results import family_name

        several = len(np.unique(self.table["family"])) > 1
        if self.losses is None or not several:
            return f"top-{k}"
        family = self.losses[k]
        more = {name: value for name, value in family.items() if name not in PLAIN_LOSS_PARAMETERS}
        own = family_name({"k": family["k"], **more})
        return f"top-{k} ({family['loss']}, {own})"
