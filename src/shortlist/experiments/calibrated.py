"""Table 1, the column "top-k calibrated", each cell recomputed by search for a counterexample."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from shortlist.experiments.context import Context
from shortlist.experiments.report import Column, Section, Table
from shortlist.experiments.report.model import Cell
from shortlist.experiments.store import Record, Tick, Unit


def run(
    context: Context, *, ks: tuple[int, ...] = (1, 2), n_classes: int = 4, trials: int = 100
) -> Section:
    """Look for distributions at which a loss's minimiser has a wrong shortlist.

    Parameters
    ----------
    ks : sizes of the shortlist.
    n_classes : number of classes of the distributions.
    trials : how many distributions to try for each loss.
    """
    if context.quick:
        trials = min(trials, 6)
    units = [
        Unit(
            f"calibration, k = {k}",
            {"k": k, "n_classes": n_classes, "trials": trials, "seed": context.seed},
            search,
            kind=f"{k}",
        )
        for k in ks
    ]
    records = context.compute("calibration", units)
    tables = [_table(k, record) for k, record in zip(ks, records, strict=True)]
    disagreements = [
        f"{row['method']} (k = {k}): the paper says {row['paper']}, the search {row['verdict']}"
        for k, record in zip(ks, records, strict=True)
        for row in record["rows"]
        if row["paper"] != "open" and (row["paper"] == "yes") != row["calibrated"]
    ]
    checked = sum(row["n_checked"] for record in records for row in record["rows"])
    answered = [row for record in records for row in record["rows"] if row["paper"] == "open"]
    remarks = disagreements or ["No answer of the paper is contradicted by the search."]
    if answered:
        yes = sorted({row["method"] for row in answered if row["calibrated"]})
        no = sorted({row["method"] for row in answered if not row["calibrated"]})
        remarks.append(
            "Where the paper leaves the answer open, a counterexample settles it for "
            f"{_listed(no)}; none turns up for {_listed(yes)}, which the documentation of "
            "`shortlist.calibration` proves to be calibrated."
        )
    return Section(
        name="calibration",
        title="Top-k calibration: which losses lead to the right shortlist",
        paragraphs=[
            "A loss is top-k calibrated if, at a point where the classes have given probabilities, "
            "scores can approach its least expectation only with the k most probable classes on "
            "their shortlist. For each loss many distributions are tried: “no” comes with one at "
            "which scores with a worse shortlist do as well, “yes” with the number tried in vain."
        ],
        headlines=[
            (f"{checked}", "distributions checked"),
            (f"{len(disagreements)}", "answers of the paper contradicted"),
        ],
        tables=tables,
        remarks=remarks,
        protocol=[
            f"Distributions over {n_classes} classes. Half are from Dirichlet laws between peaked "
            "and almost uniform, half have ties and zeros; those with nearly equal probabilities "
            "at the cut are left out.",
        ],
    )


def search(parameters: Mapping[str, Any], payload: None, tick: Tick) -> Record:
    """The rows of the table for one k, as plain data."""
    from shortlist.calibration import calibration_table

    clock = time.perf_counter()
    rows = calibration_table(
        parameters["k"],
        n_classes=parameters["n_classes"],
        n_trials=parameters["trials"],
        random_state=parameters["seed"],
    )
    tick(1.0)
    return {
        "rows": [
            {
                "method": row.method,
                "paper": row.paper,
                "calibrated": row.calibrated,
                "n_checked": row.n_checked,
                "verdict": row.verdict,
                "p": None if row.counterexample is None else list(row.counterexample.p),
            }
            for row in rows
        ],
        "seconds": time.perf_counter() - clock,
    }


def _table(k: int, record: Record) -> Table:
    rows: list[list[Cell]] = []
    for row in record["rows"]:
        agrees = row["paper"] == "open" or (row["paper"] == "yes") == row["calibrated"]
        answer = "yes" if row["calibrated"] else "no"
        evidence = (
            f"no counterexample among {row['n_checked']}"
            if row["calibrated"]
            else "p = (" + ", ".join(f"{p:.3g}" for p in row["p"]) + ")"
        )
        answer = f"**{answer}**" if row["paper"] == "open" else answer
        rows.append([row["method"], row["paper"], answer if agrees else f"{answer} ≠", evidence])
    return Table(
        f"k{k}",
        f"Is the loss top-{k} calibrated?",
        [
            Column("Loss", numeric=False),
            Column("Paper", numeric=False),
            Column("Found", numeric=False),
            Column("Evidence", numeric=False),
        ],
        rows,
        notes=["**Bold**: what the paper leaves open."]
        if any(row["paper"] == "open" for row in record["rows"])
        else [],
    )


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
