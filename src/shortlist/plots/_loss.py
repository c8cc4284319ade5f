"""Losses along a line through score space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.plots._style import axes_for, draw_curves, style_curves


class LossDisplay:
    """Losses, and the top-k error they stand for, at scores ``base + t * direction``.

    Parameters
    ----------
    t : array of shape (n_points,)
        The position along the line.
    values : mapping from names to arrays of shape (n_points,)
        The losses.
    errors : mapping from k to arrays of shape (n_points,), optional
        The top-k error along the same line.
    xlabel : str
        What `t` means.

    Attributes
    ----------
    t, values, errors
    lines_, ax_, figure_ : matplotlib's objects, after ``plot``; lines_ holds the losses
    """

    def __init__(
        self,
        t: ArrayLike,
        values: Mapping[str, ArrayLike],
        *,
        errors: Mapping[int, ArrayLike] | None = None,
        xlabel: str = "t",
    ) -> None:
        self.t = np.asarray(t, dtype=np.float64)
        self.values = {name: np.asarray(v, dtype=np.float64) for name, v in values.items()}
        self.errors = {k: np.asarray(v, dtype=np.float64) for k, v in (errors or {}).items()}
        self.xlabel = xlabel
        if not self.values:
            raise ValueError("values is empty: at least one loss is needed")
        for name, curve in [*self.values.items(), *self.errors.items()]:
            if curve.shape != self.t.shape:
                raise ValueError(
                    f"values of {name!r} have shape {curve.shape}, t has {self.t.shape}"
                )

    @classmethod
    def from_losses(
        cls,
        losses: Mapping[str, Any] | Iterable[Any] | Any,
        *,
        y: int = 0,
        base: ArrayLike | None = None,
        direction: ArrayLike | None = None,
        limits: tuple[float, float] = (-1.0, 5.0),
        n_points: int = 401,
        error_ks: Iterable[int] = (),
        xlabel: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> LossDisplay:
        """Evaluate losses along ``base + t * direction`` for `t` within `limits`, and draw them.

        Parameters
        ----------
        losses : mapping from names to losses, iterable of losses, or one loss
            Loss objects, or names for `shortlist.losses.get`.
        y : int
            The true label.
        base : array of shape (n_classes,), optional
            By default ten classes: the true label at 0, one rival at 3, and eight others
            evenly from 1 to -2.5.
        direction : array of shape (n_classes,), optional
            By default the true label's own score varies, so that `t` is added to it.
        limits, n_points
            The range of `t` and how finely it is sampled.
        error_ks : iterable of int
            Draw the top-k error for these k as grey steps.
        """
        origin = _default_base(y) if base is None else np.asarray(base, dtype=np.float64)
        if origin.ndim != 1 or not 0 <= y < len(origin):
            raise ValueError(
                f"base must be a vector with an entry for y={y}, got shape {origin.shape}"
            )
        if direction is None:
            step = np.zeros(len(origin))
            step[y] = 1.0
            if xlabel is None and origin[y] == 0:
                xlabel = "Score of the true label"
        else:
            step = np.asarray(direction, dtype=np.float64)
        if step.shape != origin.shape:
            raise ValueError(f"direction has shape {step.shape}, base has {origin.shape}")
        t = np.linspace(*limits, n_points)
        scores = origin + t[:, None] * step
        labels = np.full(n_points, y)
        values = {
            name: np.asarray(loss.value(scores, labels))
            for name, loss in named_losses(losses).items()
        }
        errors = {k: _topk_error(scores, y, k) for k in error_ks}
        return cls(t, values, errors=errors, xlabel=xlabel or "t").plot(ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> LossDisplay:
        """Draw into `ax` (new axes by default); `line_options` go to ``ax.plot``."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax)
        self.lines_ = draw_curves(self.ax_, self.t, self.values, line_options)
        shades = np.linspace(0.35, 0.75, max(len(self.errors), 1))
        for shade, (k, error) in zip(shades, self.errors.items(), strict=False):
            self.ax_.plot(
                self.t,
                error,
                label=f"top-{k} error",
                color=str(shade),
                linewidth=1.2,
                drawstyle="steps-mid",
                zorder=1,
            )
        style_curves(self.ax_)
        self.ax_.set(xlabel=self.xlabel, ylabel="Loss")
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend()
        return self


def _default_base(y: int) -> NDArray[np.float64]:
    # One rival far ahead of the rest: where top-k losses differ from top-1 losses.
    others = np.r_[3.0, np.linspace(1.0, -2.5, 8)]
    return np.insert(others, y, 0.0) if 0 <= y <= len(others) else others


def _topk_error(scores: NDArray[np.float64], y: int, k: int) -> NDArray[np.float64]:
    return ((scores > scores[:, [y]]).sum(axis=1) >= k).astype(np.float64)


def named_losses(losses: Any) -> dict[str, Any]:
    """Loss objects by name; names alone are looked up."""
    if isinstance(losses, Mapping):
        return {str(name): _loss(loss) for name, loss in losses.items()}
    if isinstance(losses, str) or hasattr(losses, "value"):
        losses = [losses]
    return {_label(loss): _loss(loss) for loss in losses}


def _label(loss: Any) -> str:
    """A loss in words: its name, k if above 1, and the parameters it depends on."""
    if isinstance(loss, str) or not hasattr(loss, "name"):
        return str(loss)
    from shortlist.losses.registry import in_words

    name = in_words(loss)
    if loss.k > 1:
        name = f"top-{loss.k} {name}"
    details = []
    if loss.k > 1 and loss.variant is not None:
        details.append(loss.variant)
    if loss.smoothing > 0:
        details.append(f"smoothing {loss.smoothing:g}")
    return f"{name} ({', '.join(details)})" if details else name


def _loss(loss: Any) -> Any:
    if isinstance(loss, str):
        from shortlist import losses

        return losses.get(loss)
    return loss
