"""Why a number differs from the paper's: what the stored models themselves can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shortlist.experiments import paper
from shortlist.experiments.comparison import TOLERANCE
from shortlist.experiments.descent import accuracies_along
from shortlist.experiments.protocol import Parts
from shortlist.experiments.store import Record


def explain_far_cells(
    dataset: str,
    far: Sequence[tuple[str, int]],
    records: dict[str, Record],
    descents: Sequence[Record],
    parts: Parts,
) -> list[str]:
    """Remarks on the numbers (method, k) that lie further from the paper's than the tolerance."""
    if not far:
        return [f"Every number lies within {TOLERANCE} points of the paper’s."]
    if other := _on_other_data(dataset, parts):
        return [other]
    below = [(m, k) for m, k in far if _is_truncated(m) and k < paper.split_method(m)[1]]
    rest = [cell for cell in far if cell not in below]
    remarks = []
    if below:
        remarks.append(_on_truncated(dataset, below, records, descents))
    if parts.X_val is None:
        return remarks + ([_on_own_selection(dataset, rest, records)] if rest else [])
    convex = [(m, k) for m, k in rest if not _is_truncated(m)]
    if convex:
        remarks.append(_on_grid(dataset, convex, records))
        rest = [
            (m, k)
            for m, k in rest
            if _is_truncated(m) or _is_far(dataset, m, k, _with_powers(records[m], k))
        ]
    return remarks + [_on_selection(dataset, m, k, records[m], parts) for m, k in rest]


def _is_truncated(method: str) -> bool:
    return paper.split_method(method)[0] == "trunc-ent"


def _on_other_data(dataset: str, parts: Parts) -> str | None:
    """A remark if the examples cannot be the paper's, whose table rounds to two or three digits."""
    theirs = paper.TABLE_4[dataset]
    facts = {
        "classes": (parts.n_classes, theirs.n_classes),
        "training examples": (parts.X_train.shape[0], theirs.n_train),
        "features": (
            parts.X_train.shape[1],
            paper.RAW_FEATURES.get(dataset, theirs.n_features),
        ),
    }
    other = {what: both for what, both in facts.items() if abs(both[0] / both[1] - 1) > 0.02}
    if not other:
        return None
    listed = ", ".join(
        f"{ours} {what} where the paper has {n}" for what, (ours, n) in other.items()
    )
    return (
        f"**Other data.** The examples given are not the paper’s: {listed}. Rows can be compared "
        "with each other, but not with the paper’s numbers."
    )


def _on_own_selection(
    dataset: str, cells: Sequence[tuple[str, int]], records: dict[str, Record]
) -> str:
    return (
        f"**The choice of C** ({_listed(dataset, cells, records)}). The data has no validation "
        "part of its own: C is chosen on a fifth of the training part, which need not be the one "
        "the paper held out."
    )


def _listed(dataset: str, cells: Sequence[tuple[str, int]], records: dict[str, Record]) -> str:
    return "; ".join(
        f"{paper.display_name(method)} at top-{k}: {_ours(records[method], k):.1f} against "
        f"{paper.accuracy(dataset, method, k):.1f}"
        for method, k in cells
    )


def _on_truncated(
    dataset: str,
    cells: Sequence[tuple[str, int]],
    records: dict[str, Record],
    descents: Sequence[Record],
) -> str:
    text = (
        f"**Truncated losses** ({_listed(dataset, cells, records)}). These losses say nothing "
        "about the k − 1 highest labels, so accuracy at small k is not what they are trained for: "
        "it falls on the way from the softmax solution to the optimum, and depends on where one "
        "stops. "
    )
    nearest = [_nearest_steps(dataset, record) for record in descents]
    if nearest:
        stops = ", ".join(
            f"{steps} steps for {paper.display_name(method)} (then within {far:.1f} points in all "
            "columns)"
            for method, steps, far in nearest
        )
        text += (
            "The paper names no stopping rule. Gradient descent as it describes it comes closest "
            f"to its rows after {stops}: see the [figure](#{dataset}-descent). Here the descent "
            "goes on to a stationary point."
        )
    else:
        text += "The paper names no stopping rule; here the descent goes to a stationary point."
    return text


def _nearest_steps(dataset: str, record: Record) -> tuple[str, int, float]:
    """Where a descent is nearest to the paper's row: method, steps, the largest difference."""
    method, ks = record["method"], paper.ks(dataset)
    along = accuracies_along(record, ks)
    steps = [point["iteration"] for point in record["runs"][0]]
    distances = [
        max(abs(along[k][place] - paper.accuracy(dataset, method, k)) for k in ks)
        for place in range(len(steps))
    ]
    place = min(range(len(steps)), key=distances.__getitem__)
    return method, steps[place], distances[place]


def _on_grid(dataset: str, cells: Sequence[tuple[str, int]], records: dict[str, Record]) -> str:
    """What the numbers would be with C among the powers of ten, perhaps the paper's values."""
    listed = "; ".join(
        f"{paper.display_name(method)} at top-{k}: {_ours(records[method], k):.1f}, the paper "
        f"{paper.accuracy(dataset, method, k):.1f}, with powers of ten "
        f"{_with_powers(records[method], k):.1f}"
        for method, k in cells
    )
    columns = [(m, k) for m in records if not _is_truncated(m) for k in paper.ks(dataset)]
    near = sum(not _is_far(dataset, m, k, _with_powers(records[m], k)) for m, k in columns)
    return (
        f"**The values of C** ({listed}). The paper does not list the values it tried. With powers "
        f"of ten alone, half of ours, {near} of {len(columns)} numbers of the convex losses lie "
        f"within {TOLERANCE} points of the paper’s."
    )


def _on_selection(dataset: str, method: str, k: int, record: Record, parts: Parts) -> str:
    """How much the choice of C alone moves the number."""
    ours, theirs = _ours(record, k), paper.accuracy(dataset, method, k)
    name = paper.display_name(method)
    text = f"**{name} at top-{k}**: {ours:.1f} against the paper’s {theirs:.1f}. "
    points = record["points"]
    best = max(point["val"][k - 1] for point in points)
    error = _standard_error(best, parts.X_val.shape[0])
    tests = [point["test"][k - 1] for point in points if point["val"][k - 1] >= best - error]
    if len(tests) > 1:
        text += (
            f"{len(tests)} values of C whose validation accuracy is within one standard error "
            f"({error:.1f}) of the best give {min(tests):.1f} to {max(tests):.1f}. "
        )
    spread = _standard_error(ours, parts.X_test.shape[0])
    return text + f"The standard error of a test accuracy is {spread:.1f} points here."


def _with_powers(record: Record, k: int) -> float:
    """The test accuracy if only powers of ten were to choose from."""
    powers = [point for point in record["points"] if _is_power_of_ten(point["C"])]
    return max(powers, key=lambda point: point["val"][k - 1])["test"][k - 1]


def _is_far(dataset: str, method: str, k: int, accuracy: float) -> bool:
    return round(abs(accuracy - paper.accuracy(dataset, method, k)), 1) > TOLERANCE


def _ours(record: Record, k: int) -> float:
    return record["chosen"][str(k)]["test"][k - 1]


def _standard_error(accuracy: float, n: int) -> float:
    share = accuracy / 100
    return 100 * math.sqrt(max(share * (1 - share), 0.0) / n)


def _is_power_of_ten(C: float) -> bool:
    exponent = math.log10(C)
    return abs(exponent - round(exponent)) < 1e-6
