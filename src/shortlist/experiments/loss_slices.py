"""All losses along a line through score space, beside the errors they stand for."""

from typing import Any

import numpy as np

from shortlist import losses
from shortlist.experiments.report import Prose, Section
from shortlist.experiments.units import Context
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
    facts = {"k": k, "others": ", ".join(f"{score:g}".replace("-", "−") for score in OTHERS)}
    t = np.linspace(-1.5, 6.5, points)
    charts = [_chart(title, members, t, k) for title, members in panels.items()]
    columns = ["Name", "Loss", "Convex", "Smooth", "Top-k calibrated"]
    keys = ["what", "convex", "smooth", "top-k calibrated"]
    rows = [[f"`{row['loss']}`", *(row[key] for key in keys)] for row in losses.table()]
    return _PROSE.section(
        "losses",
        facts,
        figures_first=True,
        figures=[_PROSE.figure("slice", charts, facts)],
        tables=[_PROSE.table("table", columns, rows, facts, text_columns=len(columns))],
    )


def _chart(title: str, members: dict[str, tuple[str, dict[str, Any]]], t: Any, k: int) -> Chart:
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
