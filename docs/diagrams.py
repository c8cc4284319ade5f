"""Diagrams: a block of SDCA, the way of the data through the package, the domains of the duals."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from shortlist.plots import PALETTE

BLUE, VERMILION, GREEN, *_ = PALETTE
FILL = 0.16


def _canvas(width: float, height: float) -> tuple[plt.Figure, Axes]:
    """Axes without a frame, whose unit is an inch."""
    figure = plt.figure(figsize=(width, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    return figure, ax


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], **options) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": "0.35", "linewidth": 1.1}
    ax.add_patch(FancyArrowPatch(start, end, shrinkA=2, shrinkB=2, **(style | options)))


def way_of_the_data(quick: bool = False) -> plt.Figure:
    """Rooms from top to bottom; each calls the one below, and results go back up."""
    figure, ax = _canvas(7.4, 5.0)
    rooms = [
        ("estimators", "checks X and y, makes a Problem", BLUE),
        ("solvers/strategy", "SDCA, L-BFGS, which when, the path; keeps the records", VERMILION),
        ("solvers/storage", "dense, CSR, kernel, pieces on disk, cluster", VERMILION),
        ("solvers/kernels", "blocks, visits, gradients: compiled loops", VERMILION),
        ("losses", "value, gradient, conjugate, dual step", GREEN),
        ("projections, special", "thresholds, V(t) = W(exp t)", GREEN),
    ]
    left, width, height, step = 0.3, 4.1, 0.56, 0.8
    for row, (name, what, colour) in enumerate(rooms):
        bottom = 4.3 - step * row
        box = FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0,rounding_size=.1")
        box.set(facecolor=(colour, FILL), edgecolor=colour)
        ax.add_patch(box)
        ax.text(left + 0.15, bottom + 0.36, name, weight="bold", va="center")
        ax.text(left + 0.15, bottom + 0.16, what, va="center", fontsize="small", color="0.25")
        if row:
            _arrow(ax, (left + 1.0, bottom + step), (left + 1.0, bottom + height))
            _arrow(ax, (left + 3.1, bottom + height), (left + 3.1, bottom + step), linestyle=":")
    for x, y, text in [
        (4.75, 4.58, "in: X, y, sample weights\nout: coef_, result_"),
        (4.75, 3.78, "asks for an epoch, a gradient,\nthe sums of a certificate"),
        (4.75, 2.98, "knows the examples;\nthe only room that does"),
        (4.75, 2.18, "scores of one block,\nchanges of W"),
        (4.75, 1.38, "scores of one example in,\nits dual out"),
        (4.75, 0.58, "one vector in, one out"),
    ]:
        ax.text(x, y, text, va="center", fontsize="small", color="0.25")
    return figure


def _matrix(ax: Axes, corner: tuple[float, float], size: tuple[float, float], name: str, colour):
    ax.add_patch(Rectangle(corner, *size, facecolor=(colour, FILL), edgecolor=colour))
    ax.text(corner[0] + size[0] / 2, corner[1] + size[1] / 2, name, ha="center", va="center")


def block(quick: bool = False) -> plt.Figure:
    """What happens to a block of B examples, in three steps."""
    figure, ax = _canvas(9.3, 3.5)
    rows, features, classes = 0.7, 1.3, 1.0
    titles = {0.2: "1  products before", 4.15: "2  visits, in order", 6.7: "3  product after"}
    for x, title in titles.items():
        ax.text(x, 3.25, title, weight="bold", va="center")

    _matrix(ax, (0.2, 2.1), (features, rows), "$X_B$\nB × d", BLUE)
    _matrix(ax, (1.65, 1.7), (classes, 1.1), "$W$\nd × m", VERMILION)
    _matrix(ax, (3.0, 2.1), (classes, rows), "$S$\nB × m", GREEN)
    ax.text(1.575, 2.45, "·", ha="center", va="center", weight="bold")
    ax.text(2.825, 2.45, "=", ha="center", va="center")
    _matrix(ax, (0.2, 0.4), (features, rows), "$X_B$", BLUE)
    _matrix(ax, (1.65, 0.25), (rows, 1.0), "$X_B'$", BLUE)
    _matrix(ax, (3.0, 0.4), (rows, rows), "", GREEN)
    lower = [(3.0, 1.1), (3.0, 0.4), (3.7, 0.4)]
    ax.add_patch(Polygon(lower, facecolor=(GREEN, 2 * FILL), edgecolor=GREEN))
    ax.text(3.2, 0.6, "$G$", ha="center", va="center")
    ax.text(1.575, 0.75, "·", ha="center", va="center", weight="bold")
    ax.text(2.675, 0.75, "=", ha="center", va="center")

    for number in range(4):
        y = 2.55 - 0.55 * number
        box = Rectangle((4.3, y), classes, 0.28, facecolor=(GREEN, FILL), edgecolor=GREEN)
        ax.add_patch(box)
        ax.text(4.3 + classes / 2, y + 0.14, f"$s_{number + 1}$", ha="center", va="center")
        ax.add_patch(Rectangle((5.55, y), 0.62, 0.28, facecolor=(BLUE, FILL), edgecolor=BLUE))
        ax.text(5.86, y + 0.14, rf"$\delta_{number + 1}$", ha="center", va="center")
        _arrow(ax, (4.3 + classes, y + 0.14), (5.55, y + 0.14))
        if number < 3:
            _arrow(ax, (5.7, y), (4.9, y - 0.27), color=GREEN)
    ax.text(
        4.3,
        0.52,
        "the dual step changes an example's\ndual by δ; $G$ carries the change to\n"
        "the scores of those after it",
        fontsize="small",
        color="0.25",
        va="center",
    )

    _matrix(ax, (6.7, 1.85), (classes, 1.1), "$W$", VERMILION)
    ax.text(7.92, 2.4, "+=", ha="center", va="center")
    _matrix(ax, (8.12, 1.85), (classes, 1.1), "$X_B' \\Delta$", BLUE)
    ax.text(
        6.7,
        1.0,
        "the iterates of plain SDCA,\nup to rounding, with W read\nand written once a block",
        fontsize="small",
        color="0.25",
        va="center",
    )
    return figure


def dual_sets(quick: bool = False) -> plt.Figure:
    """Slices of the domains of alpha and beta, for k = 2 and three rivals, at two totals s."""
    figure, axes = plt.subplots(1, 4, figsize=(8.6, 2.3), layout="constrained")
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    panels = [("α", 1.0, 0.5), ("β", 1.0, 0.5), ("α", 0.6, 0.3), ("β", 0.6, 0.5)]
    for ax, (variant, total, cap) in zip(axes, panels, strict=True):
        ax.add_patch(Polygon(total * corners, fill=False, edgecolor="0.6"))
        allowed = _capped_slice(total, cap) @ corners
        colour = BLUE if variant == "α" else VERMILION
        ax.add_patch(Polygon(allowed, facecolor=(colour, 2 * FILL), edgecolor=colour))
        ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 0.92), aspect="equal")
        ax.set_title(f"{variant}, s = {total:g}: $x_j \\leq$ {cap:g}", fontsize="medium")
        ax.axis("off")
    return figure


def _capped_slice(total: float, cap: float) -> np.ndarray:
    """Corners, in order, of {x >= 0, x_1 + x_2 + x_3 = total, x_j <= cap}; cap >= total / 2."""
    rest = total - cap
    return np.array(
        [
            [cap, rest, 0],
            [rest, cap, 0],
            [0, cap, rest],
            [0, rest, cap],
            [rest, 0, cap],
            [cap, 0, rest],
        ]
    )
