"""All losses along a line through score space, beside the errors they stand for."""

import numpy as np

from shortlist import losses
from shortlist.experiments.paper import read_table
from shortlist.experiments.report import Prose, Section
from shortlist.experiments.units import Context
from shortlist.plots.charts import Chart, Series

#: Scores of the wrong labels: one far ahead of the rest, where top-k losses differ from others.
OTHERS = (3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5)
_PROSE = Prose("losses")


def run(context: Context, *, k: int = 2, points: int = 241) -> Section:
    """Evaluate every loss while the true label's score varies.

    k : the shortlist's size, for the losses that have one.
    points : how finely the line is sampled.
    """
    if not 2 <= k <= len(OTHERS):
        raise ValueError(f"k must lie between 2 and {len(OTHERS)}, got {k!r}")
    facts = {"k": k, "others": ", ".join(f"{score:g}".replace("-", "−") for score in OTHERS)}
    return _PROSE.section(
        "losses",
        facts,
        figures_first=True,
        figures=[_PROSE.figure("slice", _charts(k, points), facts)],
        tables=[_PROSE.written_table("table", {"losses": losses.table()}, text_columns=5)],
    )


def _charts(k: int, points: int) -> list[Chart]:
    """The losses of the table in the panels it names."""
    t = np.linspace(-1.5, 6.5, points)
    scores = np.column_stack([t, np.tile(OTHERS, (points, 1))])
    labels = np.zeros(points, dtype=np.int64)
    panels: dict[str, list[Series]] = {}
    for panel, name, loss, variant in read_table("loss_slices.csv"):
        curves = panels.setdefault(panel, [])
        shown_loss = losses.get(loss, k=k if "{k}" in name else 1, variant=variant)
        values = shown_loss.value(scores, labels).tolist()
        curves.append(Series(name.format(k=k), t.tolist(), values, len(curves)))
    rank = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    errors = [
        Series(f"top-{size} error", t.tolist(), error.tolist(), 6, size > 1, faint=True, steps=True)
        for size, error in {n: (rank >= n).astype(float) for n in (1, k)}.items()
    ]
    charts = []
    for panel, curves in panels.items():
        shown = [*curves, *errors]
        limits = 0.0, 1.05 * max(max(series.y) for series in shown)
        charts.append(Chart("Score of the true label", "Loss", shown, panel, y_limits=limits))
    return charts
