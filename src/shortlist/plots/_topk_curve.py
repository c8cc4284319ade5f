"""Top-k accuracy against k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.metrics import estimator_scores, topk_accuracy_curve
from shortlist.plots._style import axes_for, line_style, style_curves

#: Beyond this many points markers merge into a thick line.
_MAX_MARKERS = 30


class TopKCurveDisplay:
    """Top-k accuracy for k = 1, ..., K as a curve.

    Draw several classifiers into one picture by passing the first display's ``ax_`` on.

    Parameters
    ----------
    accuracy : array of shape (K,)
        Entry ``k - 1`` is the top-k accuracy, as `shortlist.metrics.topk_accuracy_curve` returns.
    name : str, optional
        The curve's name in the legend.

    Attributes
    ----------
    k, accuracy : arrays of shape (K,)
    line_, ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(self, accuracy: ArrayLike, *, name: str | None = None) -> None:
        self.accuracy = np.asarray(accuracy, dtype=np.float64)
        if self.accuracy.ndim != 1 or len(self.accuracy) == 0:
            raise ValueError(f"accuracy must be a nonempty vector, got shape {self.accuracy.shape}")
        self.k = np.arange(1, len(self.accuracy) + 1)
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        max_k: int | None = None,
        ties: str = "optimistic",
        sample_weight: ArrayLike | None = None,
        response_method: str = "auto",
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> TopKCurveDisplay:
        """Score X with a fitted classifier and draw its curve.

        `max_k` is 10, or the number of classes where that is less; `response_method` is that of
        `shortlist.metrics.topk_scorer`, and `line_options` go to ``ax.plot``.
        """
        scores, classes = estimator_scores(estimator, X, response_method)
        return cls.from_predictions(
            y,
            scores,
            max_k=max_k,
            ties=ties,
            labels=classes,
            sample_weight=sample_weight,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **line_options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        max_k: int | None = None,
        ties: str = "optimistic",
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> TopKCurveDisplay:
        """Compute the curve from scores and draw it; parameters as in `topk_accuracy_curve`."""
        accuracy = topk_accuracy_curve(
            y_true, scores, max_k, ties, labels=labels, sample_weight=sample_weight
        )
        if max_k is None:
            accuracy = accuracy[:10]
        return cls(accuracy, name=name).plot(ax, **line_options)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_options: Any) -> Any:
        """Draw into `ax` (new axes by default); `line_options` go to ``ax.plot``."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax)
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        name = self.name if name is None else name
        options: dict[str, Any] = line_style(len(self.ax_.lines))
        if len(self.k) <= _MAX_MARKERS:
            options |= {"marker": "o", "markersize": 4}
        if name is not None:
            options["label"] = name
        (self.line_,) = self.ax_.plot(self.k, self.accuracy, **(options | line_options))
        style_curves(self.ax_)
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))
        self.ax_.set(xlabel="k", ylabel="Top-k accuracy")
        if name is not None:
            self.ax_.legend(loc="lower right")
        return self
