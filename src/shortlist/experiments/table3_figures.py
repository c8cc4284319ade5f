"""Figures of a data set of Table 3."""

from __future__ import annotations

from collections.abc import Sequence

from shortlist.experiments import paper
from shortlist.experiments.descent import accuracies_along
from shortlist.experiments.report import Chart, Figure, Series
from shortlist.experiments.store import Record

_PANELS = (
    ("Hinge", ("svm-multi", "topk-svm")),
    ("Smooth hinge", ("smooth-topk-svm",)),
    ("Entropy", ("lr-multi", "topk-ent")),
    ("Truncated entropy", ("trunc-ent",)),
)
_COLORS = {1: 6, 3: 0, 5: 1, 10: 2}
#: The panels share one scale; what losses give up far below it is cut off.
_GAIN_LIMITS = (-6.0, 3.0)


def gains_by_k(dataset: str, records: dict[str, Record]) -> list[Figure]:
    """What each loss gains over softmax, in points, against k; one panel for each family."""
    if "lr-multi" not in records:
        return []
    ks, base = _curve(records["lr-multi"], dataset)
    charts = []
    for title, families in _PANELS:
        series = []
        for method, record in records.items():
            family, own_k = paper.split_method(method)
            if family not in families or method == "lr-multi":
                continue
            _, curve = _curve(record, dataset)
            gain = [a - b for a, b in zip(curve, base, strict=True)]
            name = "multiclass SVM" if family == "svm-multi" else f"k = {own_k}"
            series.append(Series(name, ks, gain, color=_COLORS.get(own_k, 3), markers=True))
        if series:
            charts.append(
                Chart(
                    "k",
                    "Points above softmax",
                    series,
                    title=title,
                    y_limits=_GAIN_LIMITS,
                    levels=[(0.0, "")],
                    x_whole=True,
                )
            )
    caption = (
        "Top-k test accuracy above that of softmax (the dashed line), at each k by the models that "
        "validation prefers for that k. A loss made for the top k aims at its own k, and may cost "
        "accuracy at smaller ones."
    )
    return [Figure("gains", caption, charts)] if charts else []


def along_c(dataset: str, records: dict[str, Record]) -> list[Figure]:
    """Validation accuracy against C for the losses of one label and of the top five."""
    charts = []
    methods = (
        "svm-multi",
        "lr-multi",
        "smooth-topk-svm:1",
        "topk-svm:5",
        "smooth-topk-svm:5",
        "topk-ent:5",
        "trunc-ent:5",
    )
    shown = [method for method in methods if method in records]
    for k in (1, 5):
        if k not in paper.ks(dataset) or not shown:
            continue
        series = [
            Series(
                paper.display_name(method),
                [point["C"] for point in records[method]["points"]],
                [point["val"][k - 1] for point in records[method]["points"]],
                color=number,
                # It covers the plain hinge's curve, which is to be seen between its dashes.
                dash=int(method == "smooth-topk-svm:5"),
                markers=True,
            )
            for number, method in enumerate(shown)
        ]
        peaks = [max(s.y) for s in series]
        top = max(peaks)
        charts.append(
            Chart(
                "C",
                "Accuracy (%)",
                series,
                title=f"Top-{k} on the validation examples",
                x_log=True,
                # What happens at small C may be cut off; no curve may be missing as a whole.
                y_limits=(min(top - 25.0, min(peaks) - 3.0), top + 2.0),
            )
        )
    caption = (
        "How much regularisation each loss wants: accuracy on the validation examples against C. "
        "Every point is a trained model."
    )
    return [Figure("regularisation", caption, charts)] if charts else []


def along_descent(dataset: str, descents: Sequence[Record]) -> list[Figure]:
    """How far from the paper's numbers gradient descent is after so many steps."""
    ks = paper.ks(dataset)
    charts = []
    for record in descents:
        method = record["method"]
        along = accuracies_along(record, ks)
        steps = [max(point["iteration"], 0.5) for point in record["runs"][0]]
        series = [
            Series(
                f"top-{k}",
                steps,
                [a - paper.accuracy(dataset, method, k) for a in along[k]],
                color=_COLORS.get(k, 3),
                markers=True,
            )
            for k in ks
        ]
        charts.append(
            Chart(
                "Steps of gradient descent from softmax",
                "Points above the paper’s",
                series,
                title=paper.display_name(method),
                x_log=True,
                levels=[(0.0, "")],
            )
        )
    caption = (
        "The truncated losses on their way from the softmax solution (left end: no step yet) "
        "downhill, by gradient descent with line search as in the paper, C chosen anew at every "
        "step count. Accuracy at small k falls as long as one descends. The paper’s four numbers "
        "are passed at about the same time, so that is where its descent seems to have ended. Our "
        "table’s models are at the end of the descent."
    )
    return [Figure("descent", caption, charts)] if charts else []


def _curve(record: Record, dataset: str) -> tuple[list[int], list[float]]:
    """Test accuracy at each k by the model chosen for it."""
    points = record["points"]
    if "test" not in points[0]:
        ks = list(paper.ks(dataset))
        return ks, [record["chosen"][str(k)]["test"][k - 1] for k in ks]
    ks = list(range(1, len(points[0]["val"]) + 1))
    best = [max(points, key=lambda point: point["val"][k - 1]) for k in ks]
    return ks, [point["test"][k - 1] for k, point in zip(ks, best, strict=True)]
