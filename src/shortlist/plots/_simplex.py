"""Calibration of a loss over all distributions of three classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.plots._style import PALETTE, axes_for

#: The corners of the triangle: where the first, second and third class are certain.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3.0) / 2.0]])
_FAILURE = PALETTE[1]
#: How far from the centre of a small triangle a loss is checked, in lengths of its side.
_DISTANCE_FROM_TIE = 0.01


class CalibrationSimplexDisplay:
    """The triangle of all distributions of three classes, coloured by the cost of wrong scores.

    A point of the triangle is a distribution; at a corner one class is certain. The colour is the
    smallest excess risk of scores with a wrong shortlist there. It fades towards the lines where
    two shortlists are equally good. Where it is zero the loss is not calibrated.

    Parameters
    ----------
    triangles : array of shape (n, 3, 3)
        Small triangles that cover the simplex, each as its three distributions.
    gaps : array of shape (n,)
        The excess risk at their centres.
    failures : bool array of shape (n,)
        Where the loss is not calibrated.

    Attributes
    ----------
    triangles, gaps, failures
    mesh_, failures_, ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(self, triangles: ArrayLike, gaps: ArrayLike, failures: ArrayLike) -> None:
        self.triangles = np.asarray(triangles, dtype=np.float64)
        self.gaps = np.asarray(gaps, dtype=np.float64)
        self.failures = np.asarray(failures, dtype=bool)
        n = len(self.triangles)
        if self.triangles.shape != (n, 3, 3) or n == 0:
            raise ValueError(f"triangles must have shape (n, 3, 3), got {self.triangles.shape}")
        if self.gaps.shape != (n,) or self.failures.shape != (n,):
            raise ValueError(f"gaps and failures must have shape ({n},), one for each triangle")

    @classmethod
    def from_loss(
        cls,
        loss: Any,
        *,
        k: int | None = None,
        n_steps: int = 36,
        ax: Any = None,
        title: str | None = None,
        most: float | None = None,
    ) -> CalibrationSimplexDisplay:
        """Check a loss at the centres of n_steps^2 small triangles, and draw the result.

        Renaming the classes changes nothing, so that a sixth of them is computed. The other
        parameters are those of ``plot``.
        """
        from shortlist.calibration import is_topk_calibrated

        triangles = _small_triangles(n_steps)
        centres = np.sort(triangles.mean(axis=1), axis=1)[:, ::-1]
        # At a tie both shortlists are optimal; next to it only one is.
        centres = centres + np.array([1.0, 0.0, -1.0]) * (_DISTANCE_FROM_TIE / n_steps)
        different, which = np.unique(centres.round(12), axis=0, return_inverse=True)
        checks = [is_topk_calibrated(loss, p, k) for p in different]
        gaps = np.array([check.gap for check in checks])[which.ravel()]
        failures = np.array([not check for check in checks])[which.ravel()]
        return cls(triangles, gaps, failures).plot(ax, title=title, most=most)

    def plot(
        self, ax: Any = None, *, title: str | None = None, most: float | None = None
    ) -> CalibrationSimplexDisplay:
        """Draw into `ax` (new axes by default); colours range from 0 to `most`."""
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax, figsize=(4.2, 3.9))
        from matplotlib.collections import PolyCollection

        corners = self.triangles @ _CORNERS
        finite = np.isfinite(self.gaps)
        self.mesh_ = PolyCollection(corners[finite], cmap="Blues", linewidths=0.3)
        self.mesh_.set_array(self.gaps[finite])
        self.mesh_.set_edgecolor("face")
        self.mesh_.set_clim(0.0, most)
        self.ax_.add_collection(self.mesh_)
        self.failures_ = PolyCollection(
            corners[self.failures], facecolors=_FAILURE, edgecolors=_FAILURE, linewidths=0.3
        )
        self.ax_.add_collection(self.failures_)
        self.ax_.add_patch(_outline())
        for corner, name, side in zip(_CORNERS, "123", ("right", "left", "center"), strict=True):
            self.ax_.annotate(
                name,
                corner,
                xytext=(0, 4 if side == "center" else -4),
                textcoords="offset points",
                ha=side,
                va="bottom" if side == "center" else "top",
            )
        self.ax_.set(xlim=(-0.05, 1.05), ylim=(-0.08, 0.95), aspect="equal")
        self.ax_.axis("off")
        self.figure_.colorbar(
            self.mesh_, ax=self.ax_, shrink=0.8, label="smallest excess risk of wrong scores"
        )
        if self.failures.any():
            self.ax_.text(
                0.5,
                -0.04,
                f"orange: not calibrated ({self.failures.mean():.0%})",
                transform=self.ax_.transAxes,
                ha="center",
                va="top",
                fontsize="small",
            )
        if title is not None:
            self.ax_.set_title(title)
        return self


def _outline() -> Any:
    from matplotlib.patches import Polygon

    return Polygon(_CORNERS, fill=False, edgecolor="0.3", linewidth=1)


def _small_triangles(n: int) -> NDArray[np.float64]:
    """The simplex cut into n^2 equal triangles, each as three distributions."""
    if n < 1:
        raise ValueError(f"n_steps must be 1 or larger, got {n}")
    triangles = []
    for i in range(n):
        for j in range(n - i):
            point = np.array([i, j])
            triangles.append([point, point + [1, 0], point + [0, 1]])
            if i + j < n - 1:
                triangles.append([point + [1, 1], point + [1, 0], point + [0, 1]])
    first_two = np.array(triangles) / n
    return np.concatenate([first_two, 1.0 - first_two.sum(axis=2, keepdims=True)], axis=2)
