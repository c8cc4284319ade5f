"""Figures 1 and 2: duality gap and accuracy against time, ours and first-order baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.experiments.context import Context
from shortlist.experiments.convergence_runs import BASELINES, train_baseline, train_ours
from shortlist.experiments.protocol import Parts
from shortlist.experiments.report import Chart, Column, Figure, Section, Series, Table
from shortlist.experiments.report.model import Cell
from shortlist.experiments.splits import letter_parts, read_parts, subsample
from shortlist.experiments.store import Record, Unit

LOSSES = {
    "entropy": "softmax",
    "hinge": "multiclass SVM",
    "smooth_hinge": "smooth multiclass SVM",
}
SMOOTH = ("entropy", "smooth_hinge")
SOLVERS = {"shortlist": "Shortlist", "fista": "FISTA", "lbfgs": "L-BFGS"}
#: Where times are compared: the tolerance that the paper and this library stop at, and beyond.
LEVELS = (1e-2, 1e-3, 1e-4, 1e-5)


def run(
    context: Context,
    *,
    data: Path | None = None,
    C: float = 1.0,
    tol: float = 1e-6,
    limit: float = 20.0,
    max_epochs: int = 3000,
) -> Section:
    """Train softmax, SVM and smooth SVM to a small gap, and the smooth ones by baselines as well.

    Parameters
    ----------
    data : a file with training and test (or validation) examples, in place of a synthetic set.
    C : the regularisation parameter.
    tol : the relative duality gap to go to.
    limit : seconds after which a baseline is stopped.
    max_epochs : passes over the data after which our solver is stopped.
    """
    sets = {"letter": letter_parts()}
    if data is None:
        sets["synthetic"] = synthetic_parts(context.seed)
    else:
        hint = "give a file with training and test examples"
        sets["given"] = read_parts("convergence", data, None, seed=context.seed, hint=hint)
    if context.quick:
        sets = {name: subsample(parts, 500, context.seed) for name, parts in sets.items()}
        tol, limit = max(tol, 1e-4), min(limit, 0.5)
    sections = [
        _one_set(context, name, parts, C, tol, limit, max_epochs) for name, parts in sets.items()
    ]
    return Section(
        name="convergence",
        title="Convergence: duality gap and accuracy against time",
        paragraphs=[
            "Every visit of dual coordinate ascent to an example solves that example’s share of "
            "the problem exactly, and primal minus dual bounds the distance to the optimum at any "
            "time. Accuracy is there after a few passes over the data, long before the gap is "
            "small: a relative gap of 1e-3 is a sensible place to stop."
        ],
        headlines=[headline for _, _, headline in sections if headline],
        tables=[table for table, _, _ in sections],
        figures_first=True,
        figures=[figure for _, figures, _ in sections for figure in figures],
        protocol=[
            f"C = {C:g}, no intercept, double precision for Letter and the synthetic data; every "
            "run is alone on the machine and uses one thread of linear algebra. Compilation is not "
            "counted, nor is the time for accuracies.",
            "The relative gap is (P − D) / P, with P and D computed exactly. Suboptimality is "
            "P above the best D that any run has certified, relative to P: what a method without "
            "a dual can be judged by.",
            "FISTA has backtracking and restarts; L-BFGS is SciPy’s. Both start at zero and call "
            "the same compiled losses as our solver.",
        ],
    )


def synthetic_parts(seed: int) -> Parts:
    """Gaussian clusters, two to a class, heavily overlapping: 8000 x 256, 100 classes."""
    random = np.random.default_rng(seed)
    n_classes, d, n_train, n_test = 100, 256, 6000, 2000
    centres = random.normal(size=(n_classes, 2, d)) / np.sqrt(d)
    y = random.integers(n_classes, size=n_train + n_test)
    which = random.integers(2, size=len(y))
    X = centres[y, which] + random.normal(size=(len(y), d)) * (1.6 / np.sqrt(d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Parts(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _one_set(
    context: Context, name: str, parts: Parts, C: float, tol: float, limit: float, max_epochs: int
) -> tuple[Table, list[Figure], tuple[str, str] | None]:
    common = {
        "data": parts.fingerprint,
        "C": C,
        "tol": tol,
        "seed": context.seed,
        "max_epochs": max_epochs,
    }
    units = [
        Unit(f"convergence, {name}, {words}", {**common, "loss": loss}, train_ours, parts)
        for loss, words in LOSSES.items()
    ]
    ours = dict(
        zip(LOSSES, context.compute(f"convergence, {name}", units, alone=True), strict=True)
    )
    jobs = [(loss, solver) for loss in SMOOTH for solver in BASELINES]
    units = [
        Unit(
            f"convergence, {name}, {LOSSES[loss]}, {SOLVERS[solver]}",
            {**common, "loss": loss, "solver": solver, "limit": limit, "dual": ours[loss]["dual"]},
            train_baseline,
            parts,
        )
        for loss, solver in jobs
    ]
    records = context.compute(f"convergence, {name}, baselines", units, alone=True)
    baselines = dict(zip(jobs, records, strict=True))
    return _table(name, ours, baselines), _figures(name, ours, baselines), _headline(name, ours)


def _suboptimality(history: list[Record], dual: float) -> list[float]:
    return [max((p["primal"] - dual) / p["primal"], 1e-12) for p in history]


def _seconds_to(history: list[Record], values: list[float], level: float) -> float | None:
    return next((p["seconds"] for p, v in zip(history, values, strict=True) if v <= level), None)


def _table(name: str, ours: dict[str, Record], baselines: dict[Any, Record]) -> Table:
    rows: list[Sequence[Cell]] = []
    groups = []
    for loss, words in LOSSES.items():
        groups.append(len(rows))
        history, dual = ours[loss]["history"], ours[loss]["dual"]
        rows.append(
            [f"{words}, Shortlist: gap"]
            + [_time(_seconds_to(history, [p["relative_gap"] for p in history], v)) for v in LEVELS]
        )
        runs = {"shortlist": history}
        runs |= {s: baselines[loss, s]["history"] for s in BASELINES if (loss, s) in baselines}
        for solver, points in runs.items():
            values = _suboptimality(points, dual)
            rows.append(
                [f"{words}, {SOLVERS[solver]}: suboptimality"]
                + [_time(_seconds_to(points, values, level)) for level in LEVELS]
            )
    return Table(
        f"times-{name}",
        f"Seconds to reach a relative accuracy, {_title(name)}.",
        [
            Column("Loss and solver", numeric=False),
            *(Column(f"{v:.0e}".replace("e-0", "e-")) for v in LEVELS),
        ],
        rows,
        caption="Gap: proven by the dual. Suboptimality: the true distance, known only afterwards.",
        groups=groups,
    )


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}"


def _title(name: str) -> str:
    return {"letter": "Letter", "synthetic": "synthetic clusters", "given": "the given data"}[name]


def _headline(name: str, ours: dict[str, Record]) -> tuple[str, str] | None:
    history = ours["entropy"]["history"]
    seconds = _seconds_to(history, [p["relative_gap"] for p in history], 1e-3)
    if seconds is None:
        return None
    return f"{seconds:.2g} s", f"to a gap of 1e-3, softmax on {_title(name)}"


def _figures(name: str, ours: dict[str, Record], baselines: dict[Any, Record]) -> list[Figure]:
    gap = [
        Series(
            words,
            [p["seconds"] for p in ours[loss]["history"]],
            [p["relative_gap"] for p in ours[loss]["history"]],
            color=number,
            markers=True,
        )
        for number, (loss, words) in enumerate(LOSSES.items())
    ]
    accuracy = [
        Series(
            words,
            [p["seconds"] for p in ours[loss]["history"]],
            [p["accuracy"] for p in ours[loss]["history"]],
            color=number,
            markers=True,
        )
        for number, (loss, words) in enumerate(LOSSES.items())
    ]
    time = "Time (seconds)"
    level = [(1e-3, "1e-3, where we stop")]
    charts = [
        Chart(time, "Relative duality gap", gap, title="Gap", x_log=True, y_log=True, levels=level),
        Chart(time, "Top-1 accuracy (%)", accuracy, title="Accuracy", x_log=True),
    ]
    against = []
    for loss in SMOOTH:
        dual = ours[loss]["dual"]
        runs = {"shortlist": ours[loss]["history"]}
        runs |= {solver: baselines[loss, solver]["history"] for solver in BASELINES}
        series = [
            Series(
                SOLVERS[solver],
                [p["seconds"] for p in points],
                _suboptimality(points, dual),
                color=number,
                markers=solver == "shortlist",
            )
            for number, (solver, points) in enumerate(runs.items())
        ]
        against.append(
            Chart(
                time,
                "Relative suboptimality",
                series,
                title=LOSSES[loss][0].upper() + LOSSES[loss][1:],
                x_log=True,
                y_log=True,
            )
        )
    title = _title(name)
    return [
        Figure(
            f"gap-{name}",
            f"Figure 1, on {title}: the relative duality gap and the top-1 accuracy on examples "
            "not trained on, against time.",
            charts,
        ),
        Figure(
            f"baselines-{name}",
            f"Figure 2, on {title}: how far the objective is above the best certified dual, for "
            "our solver and for two methods that work on all examples at once.",
            against,
        ),
    ]
