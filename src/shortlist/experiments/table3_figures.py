"""The figures of a data set of Table 3: gains by k, accuracy against C, and along a descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.experiments import paper
from shortlist.experiments.comparison import DatasetOutcome
from shortlist.experiments.protocol import PathResult
from shortlist.experiments.report import Figure
from shortlist.experiments.report.prose import Prose
from shortlist.plots.charts import Chart, Series

PROSE = Prose("table3")
SOFTMAX = "lr-multi"
_PANELS = (
    ("Hinge", ("svm-multi", "topk-svm")),
    ("Smooth hinge", ("smooth-topk-svm",)),
    ("Entropy", ("lr-multi", "topk-ent")),
    ("Truncated entropy", ("trunc-ent",)),
)
#: The numbers of the colours of losses and columns with this k.
_COLORS = {1: 6, 3: 0, 5: 1, 10: 2}
#: The panels share one scale, in points; what losses give up far below it is cut off.
_GAIN_LIMITS = (-6.0, 3.0)
#: The methods whose accuracy is shown against C.
_ALONG_C = (
    *("svm-multi", "lr-multi", "smooth-topk-svm:1"),
    *("topk-svm:5", "smooth-topk-svm:5", "topk-ent:5", "trunc-ent:5"),
)


def gains_by_k(ks: Sequence[int], results: Mapping[str, PathResult]) -> list[Figure]:
    """What each loss gains over softmax, in points, against k; one panel for each family."""
    if SOFTMAX not in results:
        return []
    base = _curve(results[SOFTMAX], ks)
    panels = []
    for title, families in _PANELS:
        series = []
        for method, result in results.items():
            family, own_k = paper.split_method(method)
            if family not in families or method == SOFTMAX:
                continue
            gain = [a - b for a, b in zip(_curve(result, ks), base, strict=True)]
            name = "multiclass SVM" if family == "svm-multi" else f"k = {own_k}"
            series.append(Series(name, ks, gain, color=_COLORS.get(own_k, 3), markers=True))
        if series:
            axes: dict[str, Any] = {
                "y_limits": _GAIN_LIMITS,
                "levels": [(0.0, "")],
                "x_whole": True,
            }
            panels.append(Chart("k", "Points above softmax", series, title, **axes))
    return _figure("gains", "What each loss gains over softmax", PROSE("gains"), panels)


def along_c(outcome: DatasetOutcome) -> list[Figure]:
    """Validation accuracy against C for the losses of one label and of the top five."""
    shown = [outcome.results[method] for method in _ALONG_C if method in outcome.results]
    panels = []
    for k in (1, 5):
        if k not in outcome.dataset.ks or not shown:
            continue
        series = []
        for number, result in enumerate(shown):
            Cs = [model.C for model in result.models]
            accuracies = [model.val[k - 1] for model in result.models]
            # It covers the plain hinge's curve, which is to be seen between its dashes.
            dash = int(result.method == "smooth-topk-svm:5")
            name = paper.display_name(result.method)
            series.append(Series(name, Cs, accuracies, number, dash, markers=True))
        peaks = [max(s.y) for s in series]
        # What happens at small C may be cut off; no curve may be missing as a whole.
        limits = (min(max(peaks) - 25.0, min(peaks) - 3.0), max(peaks) + 2.0)
        title = f"Top-{k} on the validation examples"
        panels.append(Chart("C", "Accuracy (%)", series, title, "log", y_limits=limits))
    caption = PROSE("along_c")
    return _figure("regularisation", "How much regularisation each loss wants", caption, panels)


def along_descent(outcome: DatasetOutcome, *, explain: bool = True) -> list[Figure]:
    """How far from the paper's numbers gradient descent is after so many steps."""
    x_label, y_label = "Steps of gradient descent from softmax", "Points above the paper’s"
    panels = []
    for descent in outcome.descents:
        series = []
        for k in outcome.dataset.ks:
            theirs = outcome.paper_accuracy(descent.method, k)
            above = [accuracy - theirs for accuracy in descent.accuracies(k)]
            color = _COLORS.get(k, 3)
            series.append(Series(f"top-{k}", descent.steps, above, color, markers=True))
        title = paper.display_name(descent.method)
        panels.append(Chart(x_label, y_label, series, title, "symlog", levels=[(0.0, "")]))
    caption = PROSE("along_descent", explain=explain)
    title = "Where the paper’s descent of the truncated losses ended"
    return _figure("descent", title, caption, panels)


def _figure(name: str, title: str, caption: str, panels: Sequence[Chart]) -> list[Figure]:
    """The figure, if there is anything to be seen in it."""
    return [Figure(name, title, caption, panels)] if panels else []


def _curve(result: PathResult, ks: Sequence[int]) -> list[float]:
    """Test accuracy at each k by the model that validation prefers for it."""
    models = [model for model in result.models if model.converged]
    if not models or not all(model.test for model in models):
        return [result.accuracy(k) for k in ks]
    best = [max(models, key=lambda model: model.val[k - 1]) for k in ks]
    return [model.test[k - 1] for k, model in zip(ks, best, strict=True)]
