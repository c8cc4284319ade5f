"""Predictions around the unit circle: the data inside, the shortlist as rings outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.metrics import estimator_scores
from shortlist.plots._style import PALETTE, axes_for

#: Radii: the outermost class of the data and the step inwards from class to class; then the
#: first ring, its width, and the gap to the next.
_DATA_RADIUS, _DATA_STEP = 0.94, 0.07
_RING_RADIUS, _RING_WIDTH, _RING_GAP = 1.06, 0.12, 0.03
#: Points further than this from the unit circle are refused: their radius would be lost.
_RADIUS_TOLERANCE = 0.05


class CirclePredictionsDisplay:
    """Two-dimensional data on the unit circle with the top-1, ..., top-k predictions around it.

    Samples lie just inside a black circle, each class at a radius of its own so that
    overlapping classes stay visible. Outside, ring r is coloured by the class that is ranked
    r-th in that direction.

    Parameters
    ----------
    X : array of shape (n_samples, 2)
        Points of the unit circle.
    y : array of shape (n_samples,)
        Their labels.
    angles : array of shape (n_angles,)
        Increasing directions in radians, within one turn, at which predictions are given.
    ranking : integer array of shape (n_angles, k)
        The index into `classes` of the best, second best, ... class at each angle.
    classes : array of shape (n_classes,)
        The labels.

    Attributes
    ----------
    samples_ : list with one matplotlib scatter per class, after ``plot``
    rings_ : list with the wedges of each ring, from the inside out
    ax_, figure_
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        angles: ArrayLike,
        ranking: ArrayLike,
        *,
        classes: ArrayLike,
    ) -> None:
        self.X = _check_points(X)
        self.y = np.asarray(y)
        self.angles = np.asarray(angles, dtype=np.float64)
        self.ranking = np.asarray(ranking)
        self.classes = np.asarray(classes)
        if self.y.shape != (len(self.X),):
            raise ValueError(f"y must have shape ({len(self.X)},), got {self.y.shape}")
        if self.angles.ndim != 1 or len(self.angles) < 2 or (np.diff(self.angles) <= 0).any():
            raise ValueError("angles must be a vector of at least two increasing numbers")
        if self.angles[-1] - self.angles[0] >= 2 * np.pi:
            raise ValueError("angles must lie within one turn, without repeating the first")
        if self.ranking.ndim != 2 or len(self.ranking) != len(self.angles):
            raise ValueError(
                f"ranking must have shape ({len(self.angles)}, k), got {self.ranking.shape}"
            )
        if len(self.classes) > len(PALETTE):
            raise ValueError(f"at most {len(PALETTE)} classes can be told apart by colour")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        k: int = 2,
        n_angles: int = 1440,
        response_method: str = "auto",
        ax: Any = None,
        title: str | None = None,
    ) -> CirclePredictionsDisplay:
        """Ask a fitted classifier for its shortlist all around the circle and draw it.

        X and y are the samples shown inside; predictions are made at `n_angles` directions.
        """
        angles = np.linspace(0.0, 2 * np.pi, n_angles, endpoint=False)
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        scores, classes = estimator_scores(estimator, directions, response_method)
        return cls.from_predictions(X, y, angles, scores, classes=classes, k=k, ax=ax, title=title)

    @classmethod
    def from_predictions(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        angles: ArrayLike,
        scores: ArrayLike,
        *,
        classes: ArrayLike,
        k: int = 2,
        ax: Any = None,
        title: str | None = None,
    ) -> CirclePredictionsDisplay:
        """Draw the shortlists given by scores (n_angles, n_classes) at these angles."""
        matrix = np.asarray(scores, dtype=np.float64)
        classes = np.asarray(classes)
        if matrix.ndim != 2 or matrix.shape[1] != len(classes):
            raise ValueError(f"scores must have {len(classes)} columns, got shape {matrix.shape}")
        if not 1 <= k <= len(classes):
            raise ValueError(f"k must lie between 1 and {len(classes)} classes, got {k}")
        ranking = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
        return cls(X, y, angles, ranking, classes=classes).plot(ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> CirclePredictionsDisplay:
        """Draw into `ax` (new square axes by default)."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax, figsize=(4.2, 4.6))
        from matplotlib.patches import Circle

        direction = np.arctan2(self.X[:, 1], self.X[:, 0])
        self.samples_ = []
        for number, label in enumerate(self.classes):
            radius = _DATA_RADIUS - number * _DATA_STEP
            own = direction[self.y == label]
            self.samples_.append(
                self.ax_.scatter(
                    radius * np.cos(own),
                    radius * np.sin(own),
                    s=12,
                    color=PALETTE[number],
                    alpha=0.6,
                    linewidths=0,
                    label=str(label),
                )
            )
        self.ax_.add_patch(Circle((0, 0), 1.0, fill=False, color="black", linewidth=1.5))
        self.rings_ = [self._draw_ring(rank) for rank in range(self.ranking.shape[1])]
        extent = _RING_RADIUS + self.ranking.shape[1] * (_RING_WIDTH + _RING_GAP)
        self.ax_.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal")
        self.ax_.axis("off")
        self._draw_legend()
        if title is not None:
            self.ax_.set_title(title)
        return self

    def _draw_ring(self, rank: int) -> list[Any]:
        from matplotlib.patches import Wedge

        inner = _RING_RADIUS + rank * (_RING_WIDTH + _RING_GAP)
        wedges = []
        for start, stop, number in _arcs(self.angles, self.ranking[:, rank]):
            wedge = Wedge(
                (0, 0),
                inner + _RING_WIDTH,
                np.degrees(start),
                np.degrees(stop),
                width=_RING_WIDTH,
                facecolor=PALETTE[number],
                linewidth=0,
            )
            wedges.append(self.ax_.add_patch(wedge))
        return wedges

    def _draw_legend(self) -> None:
        handles = [sample for sample in self.samples_ if len(sample.get_offsets())]
        legend = self.ax_.legend(
            handles=handles,
            loc="center",
            title="Class",
            frameon=False,
            markerscale=1.8,
            handletextpad=0.2,
        )
        for handle in legend.legend_handles:
            handle.set_alpha(1)
        names = ", ".join(f"top-{rank + 1}" for rank in range(self.ranking.shape[1]))
        self.ax_.text(
            0.5,
            -0.02,
            f"rings from the inside out: {names}",
            transform=self.ax_.transAxes,
            ha="center",
            va="top",
            fontsize="small",
        )


def _check_points(X: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"X must have shape (n_samples, 2), got {points.shape}")
    if (np.abs(np.hypot(points[:, 0], points[:, 1]) - 1) > _RADIUS_TOLERANCE).any():
        raise ValueError("X must consist of points on the unit circle")
    return points


def _arcs(angles: NDArray[np.float64], numbers: NDArray[Any]) -> list[tuple[float, float, int]]:
    """Maximal arcs (start, stop, number) of equal number, cut midway between the angles."""
    ahead = np.roll(angles, -1)
    ahead[-1] += 2 * np.pi
    cuts = (angles + ahead) / 2  # cut i lies between angle i and the next
    changes = np.flatnonzero(numbers != np.roll(numbers, -1))
    if len(changes) == 0:
        return [(0.0, 2 * np.pi, int(numbers[0]))]
    arcs = []
    for here, following in zip(changes, np.roll(changes, -1), strict=True):
        stop = cuts[following] + (2 * np.pi if following <= here else 0.0)
        arcs.append((float(cuts[here]), float(stop), int(numbers[(here + 1) % len(numbers)])))
    return arcs
