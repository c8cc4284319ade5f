"""The Lambert W figure: V(t) = W(exp t), its two approximations, and how exact and fast ours is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from shortlist.experiments.context import Context
from shortlist.experiments.report import Chart, Column, Figure, Section, Series, Table
from shortlist.experiments.report.model import Cell
from shortlist.experiments.store import Record, Tick, Unit


def run(context: Context, *, points: int = 200_000, repeats: int = 20) -> Section:
    """Compare V with SciPy's Wright omega function, and draw it with its approximations."""
    if context.quick:
        points, repeats = min(points, 2000), 2
    unit = Unit(
        "lambert",
        {"points": points, "repeats": repeats, "seed": context.seed},
        measure,
    )
    (record,) = context.compute("lambert", [unit], alone=True)
    rows: list[list[Cell]] = [
        [
            name,
            f"{record[name]['largest_error']:.1e}",
            f"{record[name]['in_units']:.1f}",
            f"{record[name]['nanoseconds']:.1f}",
        ]
        for name in ("float64", "float32", "SciPy, float64")
    ]
    times = record["SciPy, float64"]["nanoseconds"] / record["float64"]["nanoseconds"]
    return Section(
        name="lambert",
        title="V(t): the Lambert W function of an exponential",
        paragraphs=[
            "V(t) = W(exp t) solves x + log x = t. The dual steps of all entropy losses are sums "
            "of V, so its speed is theirs. For t far below zero V(t) is nearly exp t, far above "
            "nearly t − log t."
        ],
        headlines=[
            (f"{times:.0f} ×", "as fast as SciPy’s Wright omega, in double precision"),
            (f"{record['float64']['in_units']:.1f}", "units in the last place, the largest error"),
        ],
        tables=[
            Table(
                "precision",
                "Precision and speed of V(t).",
                [
                    Column("Precision", numeric=False),
                    Column("Largest relative error"),
                    Column("in units of the type"),
                    Column("Nanoseconds an element"),
                ],
                rows,
                caption=f"{points} values of t between −80 and 700, dense around zero; the error "
                "against Newton’s method in extended precision.",
            )
        ],
        figures_first=True,
        figures=[_figure()],
    )


def measure(parameters: Mapping[str, Any], payload: None, tick: Tick) -> Record:
    """Largest errors against SciPy and nanoseconds an element, for both precisions."""
    from scipy.special import wrightomega

    from shortlist.special import lambertw_exp

    random = np.random.default_rng(parameters["seed"])
    n = parameters["points"]
    t = np.concatenate(
        [random.normal(scale=4.0, size=n // 2), random.uniform(-80, 700, n - n // 2)]
    )
    functions = {
        "float64": (lambertw_exp, "float64"),
        "float32": (lambertw_exp, "float32"),
        "SciPy, float64": (wrightomega, "float64"),
    }
    record: Record = {}
    for name, (function, dtype) in functions.items():
        # Rounding the argument is not the function's error.
        typed = t.astype(dtype)
        error = _relative_error(function(typed), typed)
        record[name] = {
            "largest_error": error,
            "in_units": error / np.finfo(dtype).eps,
            "nanoseconds": _nanoseconds(function, typed, parameters["repeats"]),
        }
        tick(len(record) / len(functions))
    return record


def _relative_error(values: Any, t: Any) -> float:
    """The largest relative error, against Newton's method in the widest type there is.

    SciPy's own values are off by a dozen units in the last place here and there.
    """
    t = t.astype(np.longdouble)
    x = given = values.astype(np.longdouble)
    for _ in range(3):
        x = x - (x + np.log(x) - t) * x / (1 + x)
    return float(np.abs(given / x - 1).max())


def _nanoseconds(function: Any, t: Any, repeats: int) -> float:
    """The best of several timings, an element."""
    function(t)
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        function(t)
        best = min(best, time.perf_counter() - begin)
    return 1e9 * best / t.size


def _figure() -> Figure:
    from shortlist.special import lambertw_exp

    left, right = np.linspace(-10, 0, 121), np.linspace(0, 10, 121)
    beyond_one = right[right >= 1.0]
    return Figure(
        "curves",
        "V(t) on a logarithmic scale for t below zero, with exp t; on a linear scale for t above "
        "zero, with t − log t.",
        [
            Chart(
                "t",
                "V(t)",
                [
                    Series("V(t)", left.tolist(), lambertw_exp(left).tolist(), color=0),
                    Series("exp t", left.tolist(), np.exp(left).tolist(), color=1, dash=1),
                ],
                title="t < 0",
                y_log=True,
            ),
            Chart(
                "t",
                "V(t)",
                [
                    Series("V(t)", right.tolist(), lambertw_exp(right).tolist(), color=0),
                    Series(
                        "t − log t",
                        beyond_one.tolist(),
                        (beyond_one - np.log(beyond_one)).tolist(),
                        color=1,
                        dash=1,
                    ),
                ],
                title="t > 0",
            ),
        ],
    )
