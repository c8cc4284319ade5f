"""How much excess risk an excess of top-k error costs: regret bounds as curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.plots._loss import named_losses
from shortlist.plots._style import axes_for, draw_curves, style_curves

_EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SMOOTHINGS = tuple(2.0 ** np.arange(-4.0, 4.5, 0.5))


class RegretBoundDisplay:
    """The smallest excess risk that goes with an excess of top-k error, for several losses.

    Higher is better: a curve turns a small excess of the expected loss, read on the vertical axis,
    into a small excess of the top-k error. At 0 the loss says nothing about the top-k error.

    Parameters
    ----------
    x : array of shape (n_points,)
        The excess of the top-k error, or another quantity that varies.
    values : mapping from names to arrays of shape (n_points,)
        The bounds, as ``value`` of `shortlist.calibration.regret_bound`.
    xlabel, ylabel : str
        What the axes mean.
    log_x : bool
        Whether the horizontal axis is logarithmic.

    Attributes
    ----------
    x, values
    lines_, ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(
        self,
        x: ArrayLike,
        values: Mapping[str, ArrayLike],
        *,
        xlabel: str = "Excess of the top-k error",
        ylabel: str = "Smallest excess risk",
        log_x: bool = False,
    ) -> None:
        self.x = np.asarray(x, dtype=np.float64)
        self.values = {name: np.asarray(v, dtype=np.float64) for name, v in values.items()}
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.log_x = log_x
        if not self.values:
            raise ValueError("values is empty: at least one curve is needed")
        for name, curve in self.values.items():
            if curve.shape != self.x.shape:
                raise ValueError(
                    f"values of {name!r} have shape {curve.shape}, x has {self.x.shape}"
                )

    @classmethod
    def from_losses(
        cls,
        losses: Mapping[str, Any] | Iterable[Any] | Any,
        *,
        epsilons: ArrayLike = _EPSILONS,
        n_classes: int = 4,
        k: int | None = None,
        ax: Any = None,
        **search_options: Any,
    ) -> RegretBoundDisplay:
        """Compute the bounds of losses at several excess errors, and draw them.

        Parameters
        ----------
        losses : mapping from names to losses, iterable of losses, or one loss
            Loss objects, or names for `shortlist.losses.get`.
        epsilons : the excess errors
        n_classes, k, search_options : as in `shortlist.calibration.regret_bound`
        """
        from shortlist.calibration import regret_bound

        x = np.asarray(epsilons, dtype=np.float64)
        values = {
            name: [
                regret_bound(loss, epsilon, n_classes=n_classes, k=k, **search_options).value
                for epsilon in x
            ]
            for name, loss in named_losses(losses).items()
        }
        return cls(x, values).plot(ax)

    @classmethod
    def from_smoothings(
        cls,
        ks: Iterable[int] = (1, 2, 3),
        *,
        variant: str = "alpha",
        smoothings: ArrayLike = _SMOOTHINGS,
        epsilon: float = 0.1,
        n_classes: int = 5,
        ax: Any = None,
        **search_options: Any,
    ) -> RegretBoundDisplay:
        """Compute the bounds of smooth top-k hinges against their smoothing, and draw them.

        The vertical axis is relative to epsilon squared, to which the bounds of smooth losses are
        roughly proportional.
        """
        from shortlist.calibration import regret_bound
        from shortlist.losses import get

        x = np.asarray(smoothings, dtype=np.float64)
        values = {}
        for k in ks:
            bounds = [
                regret_bound(
                    get("smooth_hinge", k=k, variant=variant, smoothing=float(gamma)),
                    epsilon,
                    n_classes=n_classes,
                    **search_options,
                )
                for gamma in x
            ]
            values[f"k = {k}"] = np.array([bound.value for bound in bounds]) / epsilon**2
        ylabel = f"Smallest excess risk / ε², at ε = {epsilon:g}"
        return cls(x, values, xlabel="Smoothing γ", ylabel=ylabel, log_x=True).plot(ax)

    def plot(self, ax: Any = None, **line_options: Any) -> RegretBoundDisplay:
        """Draw into `ax` (new axes by default); `line_options` go to ``ax.plot``."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax)
        self.lines_ = draw_curves(self.ax_, self.x, self.values, line_options, marker="o")
        style_curves(self.ax_)
        if self.log_x:
            self.ax_.set_xscale("log")
        self.ax_.set(xlabel=self.xlabel, ylabel=self.ylabel)
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend()
        return self
