"""The figures of a data set of Table 3: gains by k, accuracy against C, and along a descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shortlist.experiments import paper
from shortlist.experiments.comparison import Dataset
from shortlist.experiments.descents import DescentResult
from shortlist.experiments.protocol import PathResult
from shortlist.experiments.report import Figure
from shortlist.plots.charts import Chart, Series

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
            panels.append(
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
    return [Figure("gains", "What each loss gains over softmax", caption, panels)] if panels else []


def along_c(dataset: Dataset, results: Mapping[str, PathResult]) -> list[Figure]:
    """Validation accuracy against C for the losses of one label and of the top five."""
    shown = [method for method in _ALONG_C if method in results]
    panels = []
    for k in (1, 5):
        if k not in dataset.ks or not shown:
            continue
        series = [
            Series(
                paper.display_name(method),
                [model.C for model in results[method].models],
                [model.val[k - 1] for model in results[method].models],
                color=number,
                # It covers the plain hinge's curve, which is to be seen between its dashes.
                dash=int(method == "smooth-topk-svm:5"),
                markers=True,
            )
            for number, method in enumerate(shown)
        ]
        peaks = [max(s.y) for s in series]
        top = max(peaks)
        panels.append(
            Chart(
                "C",
                "Accuracy (%)",
                series,
                title=f"Top-{k} on the validation examples",
                x_scale="log",
                # What happens at small C may be cut off; no curve may be missing as a whole.
                y_limits=(min(top - 25.0, min(peaks) - 3.0), top + 2.0),
            )
        )
    caption = (
        "Accuracy on the validation examples against C. Every point is a trained model; those "
        "that did not meet their tolerance are shown, but were not eligible."
    )
    title = "How much regularisation each loss wants"
    return [Figure("regularisation", title, caption, panels)] if panels else []


def along_descent(dataset: Dataset, descents: Sequence[DescentResult]) -> list[Figure]:
    """How far from the paper's numbers gradient descent is after so many steps."""
    panels = [
        Chart(
            "Steps of gradient descent from softmax",
            "Points above the paper’s",
            [
                Series(
                    f"top-{k}",
                    descent.steps,
                    [
                        a - paper.accuracy(dataset.key, descent.method, k)
                        for a in descent.accuracies(k)
                    ],
                    color=_COLORS.get(k, 3),
                    markers=True,
                )
                for k in dataset.ks
            ],
            title=paper.display_name(descent.method),
            x_scale="symlog",
            levels=[(0.0, "")],
        )
        for descent in descents
    ]
    caption = (
        "The truncated losses on their way from the softmax solution (0 steps) downhill, by "
        "gradient descent with line search as in the paper, C chosen anew at every step count. "
        "Accuracy at small k falls as long as one descends. The paper’s four numbers are passed "
        "at about the same time, so that is where its descent seems to have ended. Our table’s "
        "models are at the end of the descent."
    )
    title = "Where the paper’s descent of the truncated losses ended"
    return [Figure("descent", title, caption, panels)] if panels else []


def _curve(result: PathResult, ks: Sequence[int]) -> list[float]:
    """Test accuracy at each k by the model that validation prefers for it."""
    models = [model for model in result.models if model.converged]
    if not models or not all(model.test for model in models):
        return [result.accuracy(k) for k in ks]
    best = [max(models, key=lambda model: model.val[k - 1]) for k in ks]
    return [model.test[k - 1] for k, model in zip(ks, best, strict=True)]
