"""Table 5: a network trained with softmax, then fine-tuned with each loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shortlist.experiments import paper
from shortlist.experiments.context import Context
from shortlist.experiments.report import Column, Section, Table, Value
from shortlist.experiments.report.model import Cell
from shortlist.experiments.splits import letter_parts, read_parts, subsample
from shortlist.experiments.store import Unit

_QUICK_SIZE = 1000


def run(
    context: Context,
    *,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    seeds: int = 5,
    tuning_epochs: int = 3,
) -> Section:
    """Fine-tune a small network for Letter, or for the examples of a file, with every loss."""
    try:
        from shortlist.experiments import finetuning
    except ImportError as missing:
        raise ModuleNotFoundError(
            f"finetune needs PyTorch: pip install 'shortlist[torch]' ({missing})"
        ) from missing

    if data is None:
        parts, title = letter_parts(), "Letter"
    else:
        parts = read_parts("finetune", data, None, seed=context.seed, hint="")
        title = Path(data).stem
    recipe = finetuning.Recipe(tuning_epochs=tuning_epochs)
    if context.quick:
        parts, seeds = subsample(parts, _QUICK_SIZE, context.seed), min(seeds, 2)
        recipe = replace(recipe, epochs=3, tuning_epochs=1, tuning_steps=(0.03,))
    methods = tuple(methods or finetuning.METHODS)
    for method in methods:
        finetuning.loss_for(method)
    ks = tuple(k for k in (1, 3, 5, 10) if k < parts.n_classes)
    fingerprint = parts.fingerprint
    units = [
        Unit(
            f"fine-tuning on {title}, network {number + 1}",
            {
                "data": fingerprint,
                **finetuning.parameters_for(recipe, methods, ks, context.seed + number),
            },
            finetuning.fine_tune,
            parts,
        )
        for number in range(seeds)
    ]
    records = context.compute("fine-tuning", units)
    rows = finetuning.summarise(records, ks)
    return _section(title, parts, rows, ks, recipe, records)


def paper_rows(dataset: str) -> list[dict[str, Any]]:
    """Return a half of the paper's Table 5 as rows like those of ``finetuning.summarise``."""
    table = paper.TABLE_5[dataset]
    ks = (1, 3, 5, 10)
    rows = [("lr-multi", False, table.reference)]
    rows += [(method, True, numbers) for method, numbers in table.fine_tuned.items()]
    return [
        {
            "method": method,
            "name": paper.display_name(method),
            "fine_tuned": tuned,
            "mean": dict(zip(ks, numbers, strict=True)),
            "gain": {
                k: number - before
                for k, number, before in zip(ks, numbers, table.reference, strict=True)
            },
        }
        for method, tuned, numbers in rows
    ]


def _section(
    title: str,
    parts: Any,
    rows: Sequence[dict[str, Any]],
    ks: Sequence[int],
    recipe: Any,
    records: Sequence[dict[str, Any]],
) -> Section:
    tuned = [row for row in rows if row["fine_tuned"]]
    softmax = next((row for row in tuned if row["method"] == "lr-multi"), None)
    remarks = [
        "The paper fine-tunes VGG networks on Places 205 and ILSVRC 2012; the networks and data "
        "here are far smaller, so only the pattern can be compared, not the numbers.",
    ]
    if softmax is not None:
        remarks.append(_finding(tuned, softmax, ks))
    best_gain, best_at = max(
        (row["gain"][k], f"{row['name']} at the top {k}") for row in tuned for k in ks
    )
    return Section(
        name="finetune",
        title=f"Fine-tuning (Table 5), on {title}",
        paragraphs=[
            "A network is trained with softmax, then for a few epochs more with each loss. "
            "Does a loss made for the top k pay off when the whole network can follow it?",
        ],
        tables=[
            _accuracies("finetune", f"Top-k accuracy (%) on {title}.", rows, ks, len(records)),
            *(
                _accuracies(
                    f"finetune-{dataset}",
                    f"The paper’s Table 5, {paper.DATASET_NAMES[dataset]}.",
                    paper_rows(dataset),
                    (1, 3, 5, 10),
                    1,
                )
                for dataset in paper.TABLE_5
            ),
        ],
        headlines=[
            (_signed(best_gain, 1), f"points, the largest gain over the reference ({best_at})")
        ],
        remarks=remarks,
        protocol=[
            f"{len(parts.y_train)} training and {len(parts.y_test)} test examples, "
            f"{parts.n_classes} classes; {len(records)} networks, each from another "
            "initialisation.",
            f"{recipe.epochs} epochs of softmax at a constant step size give the reference; "
            f"{recipe.tuning_epochs} epochs with a falling step size follow, from the same "
            "weights for every loss. Each loss takes the step size that is best for its own k on "
            "validation examples.",
        ],
        data={"rows": list(rows), "networks": list(records)},
    )


def _finding(tuned: Sequence[dict[str, Any]], softmax: dict[str, Any], ks: Sequence[int]) -> str:
    """Say how far the losses end from softmax: where they are meant to serve, and at the top 1."""

    def furthest(meant: bool) -> float:
        behind = [
            row["mean"][k] - softmax["mean"][k]
            for row in tuned
            for k in ks
            if (k >= paper.split_method(row["method"])[1] if meant else k == 1)
        ]
        return max(behind, key=abs, default=0.0)

    gains = [row["gain"][k] for row in tuned for k in ks]
    return (
        "The paper’s finding: the losses made for the top k improve on the reference, and softmax "
        "does so about as much. Here the gains range from "
        f"{_signed(min(gains))} to {_signed(max(gains))} points. At its own k and above, no loss "
        f"ends further from softmax than {_signed(furthest(True))} points; at the top 1, which the "
        f"others do not aim at, the furthest ends {_signed(furthest(False))} points from it."
    )


def _signed(number: float, digits: int = 2) -> str:
    return Value(number, digits=digits, signed=True).text(number)


def _accuracies(
    name: str, title: str, rows: Sequence[dict[str, Any]], ks: Sequence[int], n_networks: int
) -> Table:
    best = {k: max(round(row["mean"][k], 2) for row in rows) for k in ks}
    cells: list[list[Cell]] = []
    for row in rows:
        line: list[Cell] = [row["name"] if row["fine_tuned"] else f"{row['name']}, before"]
        for k in ks:
            line.append(
                Value(
                    row["mean"][k],
                    deviation=row["deviation"][k] if n_networks > 1 else None,
                    best=round(row["mean"][k], 2) == best[k],
                    digits=2,
                )
            )
        line += [
            Value(row["gain"][k], digits=2, signed=True) if row["fine_tuned"] else "" for k in ks
        ]
        cells.append(line)
    columns = [
        Column("Method", numeric=False),
        *(Column(f"Top-{k}") for k in ks),
        *(Column(f"Gain {k}") for k in ks),
    ]
    caption = (
        "First the reference, before fine-tuning. Gain: points above it, at the top 1 and so on."
    )
    if n_networks > 1:
        caption += f" Means and standard deviations over {n_networks} networks."
    return Table(name, title, columns, cells, caption=caption, groups=[1])
