"""Why some numbers of Table 3 are far from the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shortlist.experiments import paper
from shortlist.experiments.comparison import TOLERANCE, DatasetOutcome, Place, is_truncated
from shortlist.experiments.descents import DescentResult
from shortlist.experiments.paired import standard_error
from shortlist.experiments.protocol import Model, PathResult
from shortlist.experiments.report.model import Remark


def explain_far_cells(outcome: DatasetOutcome, far: Sequence[Place]) -> list[Remark]:
    """Remarks on the cells that lie further from the paper's numbers than the tolerance."""
    if not outcome.dataset.in_paper:
        return []
    if not far:
        text = f"Every number lies within {TOLERANCE} points of the paper’s."
        return [Remark("Differences", text)]
    if outcome.other_facts:
        return [_on_other_data(outcome)]
    below = [(m, k) for m, k in far if is_truncated(m) and k < paper.split_method(m)[1]]
    rest = [place for place in far if place not in below]
    remarks = [_on_truncated(outcome, below)] if below else []
    # These have a remark of their own, whether or not they are far.
    rest = [(m, k) for m, k in rest if not _better_left_out(outcome.results[m], k)]
    if outcome.parts.X_val is None:
        return [*remarks, _on_own_selection(outcome, rest)] if rest else remarks
    on_grid = [(m, k) for m, k in rest if m in outcome.on_paper_grid]
    if on_grid:
        remarks.append(_on_grid(outcome, on_grid))
    unexplained = [
        (m, k)
        for m, k in rest
        if (m, k) not in on_grid
        or outcome.dataset.is_far(m, k, outcome.on_paper_grid[m].accuracy(k))
    ]
    return remarks + [_on_selection(outcome, m, k) for m, k in unexplained]


def _name(method: str, k: int) -> str:
    return f"{paper.display_name(method)} at top-{k}"


def _listed(outcome: DatasetOutcome, places: Sequence[Place]) -> str:
    return "; ".join(
        f"{_name(m, k)}: {outcome.accuracy(m, k):.1f} against {outcome.paper_accuracy(m, k):.1f}"
        for m, k in places
    )


def _on_other_data(outcome: DatasetOutcome) -> Remark:
    facts = outcome.other_facts.items()
    listed = ", ".join(f"{ours} {what} where the paper has {n}" for what, (ours, n) in facts)
    return Remark(
        "Other data",
        f"The examples given are not the paper’s: {listed}. Rows can be compared with each other, "
        "but not with the paper’s numbers.",
    )


def _on_own_selection(outcome: DatasetOutcome, places: Sequence[Place]) -> Remark:
    return Remark(
        "The choice of C",
        f"{_listed(outcome, places)}. The data has no validation part of its own: C is "
        "chosen on a fifth of the training part, which need not be the one the paper held out.",
    )


def _on_truncated(outcome: DatasetOutcome, places: Sequence[Place]) -> Remark:
    text = (
        f"{_listed(outcome, places)}. These losses say nothing about the k − 1 highest "
        "labels, so accuracy at small k is not what they are trained for: it falls on the way "
        "from the softmax solution to the optimum, and depends on where one stops. The paper "
        "names no stopping rule; here the descent goes to a stationary point."
    )
    stops = []
    for descent in outcome.descents:
        steps, far = _nearest_steps(outcome, descent)
        name = paper.display_name(descent.method)
        stops.append(f"{steps} steps for {name} (then within {far:.1f} points in all columns)")
    if stops:
        text += (
            " Gradient descent as the paper describes it comes closest to its rows after "
            f"{', '.join(stops)}: see the [figure](#{outcome.dataset.key}-descent)."
        )
    return Remark("Truncated losses at small k", text)


def _nearest_steps(outcome: DatasetOutcome, descent: DescentResult) -> tuple[int, float]:
    """Where a descent is nearest to the paper's row: steps, and the largest difference."""
    apart = [
        [abs(a - outcome.paper_accuracy(descent.method, k)) for a in descent.accuracies(k)]
        for k in outcome.dataset.ks
    ]
    largest = [max(column) for column in zip(*apart, strict=True)]
    place = min(range(len(largest)), key=largest.__getitem__)
    return descent.steps[place], largest[place]


def _better_left_out(result: PathResult, k: int) -> Model | None:
    """The model with the best validation accuracy, if it did not meet its tolerance."""
    best = max(result.models, key=lambda model: (model.val[k - 1], model.converged))
    return None if best.converged else best


def explain_left_out(outcome: DatasetOutcome) -> list[Remark]:
    """A remark on the cells for which the validation examples prefer a model that was left out."""
    listed = []
    for method, k in [(method, k) for method in outcome.results for k in outcome.dataset.ks]:
        model = _better_left_out(outcome.results[method], k)
        if model is None:
            continue
        against = f"{outcome.accuracy(method, k):.1f}"
        if outcome.dataset.in_paper:
            against += f" against {outcome.paper_accuracy(method, k):.1f}"
        gap = model.relative_gap
        how = f"a relative gap of {gap:.1g}" if math.isfinite(gap) else f"status “{model.status}”"
        listed.append(
            f"{_name(method, k)}: {against}, best on the validation examples is C = "
            f"{model.C:.3g}, with {how}"
        )
    if not listed:
        return []
    return [
        Remark(
            "Models that did not converge",
            f"{'; '.join(listed)}. Their best models did not meet the tolerance in the passes "
            "allowed (max_epochs), and are not eligible: these numbers say nothing against the "
            "loss.",
        )
    ]


def _on_grid(outcome: DatasetOutcome, places: Sequence[Place]) -> Remark:
    """What the numbers are with C on the grid that the paper seems to have used."""
    listed = "; ".join(
        f"{_name(m, k)}: {outcome.accuracy(m, k):.1f}, the paper "
        f"{outcome.paper_accuracy(m, k):.1f}, on its likely grid "
        f"{outcome.on_paper_grid[m].accuracy(k):.1f}"
        for m, k in places
    )
    return Remark(
        "The grid of C",
        f"{listed}. The paper does not list the values it tried. If they were a decade apart in "
        "λ = 1/(C n), its grid was half as fine as ours, and the best value between two of them "
        f"was not to be had: see the [table](#{outcome.dataset.key}-paper-grid).",
    )


def _on_selection(outcome: DatasetOutcome, method: str, k: int) -> Remark:
    """How much the choice of C alone moves the number."""
    ours, theirs = outcome.accuracy(method, k), outcome.paper_accuracy(method, k)
    text = f"{ours:.1f} against the paper’s {theirs:.1f}. "
    models = [model for model in outcome.results[method].models if model.converged]
    best = max(model.val[k - 1] for model in models)
    error = standard_error(best, outcome.parts.X_val.shape[0])
    tests = [model.test[k - 1] for model in models if model.val[k - 1] >= best - error]
    if len(tests) > 1:
        text += (
            f"{len(tests)} values of C whose validation accuracy is within one standard error "
            f"({error:.1f}) of the best give {min(tests):.1f} to {max(tests):.1f}. "
        )
    spread = standard_error(ours, outcome.parts.X_test.shape[0])
    text += f"The standard error of a test accuracy is {spread:.1f} points here."
    return Remark(_name(method, k), text)
