"""All losses along a line through score space, beside the errors they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from shortlist.experiments.report import Figure, Section, Table
from shortlist.experiments.report.prose import Prose
from shortlist.experiments.workers import Context
from shortlist.plots.charts import Chart, Series

#: Scores of the wrong labels: one far ahead of the rest, where top-k losses differ from others.
OTHERS = (3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5)
_PROSE = Prose("losses")


def run(context: Context, *, k: int = 2, points: int = 241) -> Section:
    """Evaluate every loss while the true label's score varies.

    Parameters
    ----------
    k : the shortlist's size, for the losses that have one.
    points : how finely the line is sampled.
    """
    if not 2 <= k <= len(OTHERS):
        raise ValueError(f"k must lie between 2 and {len(OTHERS)}, got {k!r}")
    panels: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
        "Hinges": {
            "multiclass SVM": ("hinge", {}),
            f"top-{k} hinge (α)": ("hinge", {"k": k}),
            f"top-{k} hinge (β)": ("hinge", {"k": k, "variant": "beta"}),
            f"smooth top-{k} hinge (α)": ("smooth_hinge", {"k": k}),
            f"smooth top-{k} hinge (β)": ("smooth_hinge", {"k": k, "variant": "beta"}),
        },
        "Entropies": {
            "softmax": ("entropy", {}),
            f"top-{k} entropy (α)": ("entropy", {"k": k}),
            f"top-{k} entropy (β)": ("entropy", {"k": k, "variant": "beta"}),
            f"truncated top-{k} entropy": ("truncated_entropy", {"k": k}),
        },
        "One against all": {
            "hinge": ("ova_hinge", {}),
            "smooth hinge": ("ova_smooth_hinge", {}),
            "logistic": ("ova_logistic", {}),
        },
    }
    t = np.linspace(-1.5, 6.5, points)
    others = ", ".join(f"{score:g}".replace("-", "−") for score in OTHERS)
    return Section(
        name="losses",
        title="The losses, along a line",
        paragraphs=_PROSE.paragraphs("introduction", k=k),
        figures_first=True,
        figures=[
            Figure(
                "slice",
                "Every loss against the score of the true label",
                _PROSE("slice", others=others, k=k),
                [_chart(title, members, t, k) for title, members in panels.items()],
            )
        ],
        tables=[_table()],
    )


def _chart(title: str, members: dict[str, tuple[str, dict[str, Any]]], t: Any, k: int) -> Chart:
    from shortlist import losses

    scores = np.column_stack([t, np.tile(OTHERS, (len(t), 1))])
    labels = np.zeros(len(t), dtype=np.int64)
    series = [
        Series(name, t.tolist(), losses.get(loss, **options).value(scores, labels).tolist(), number)
        for number, (name, (loss, options)) in enumerate(members.items())
    ]
    rank = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    for size in (1, k):
        error = (rank >= size).astype(float).tolist()
        series.append(
            Series(f"top-{size} error", t.tolist(), error, 6, size > 1, faint=True, steps=True)
        )
    top = max(max(s.y) for s in series)
    return Chart("Score of the true label", "Loss", series, title=title, y_limits=(0.0, 1.05 * top))


def _table() -> Table:
    from shortlist import losses

    keys = ["what", "convex", "smooth", "top-k calibrated"]
    names = ["Name", "Loss", "Convex", "Smooth", "Top-k calibrated"]
    rows = [[f"`{row['loss']}`", *(row[key] for key in keys)] for row in losses.table()]
    return Table("table", "The losses of this library", names, rows, text_columns=len(names))
