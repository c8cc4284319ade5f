"""Table 5: a network trained with softmax, then fine-tuned with each loss.

The paper's recipe on networks small enough for a laptop. A network is trained with softmax at a
constant step size, as far as that takes it: the reference. From there it is trained for a few
epochs more with a falling step size, once with each loss. Each loss gets the step size that serves
its own top-k accuracy best on validation examples.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from shortlist.experiments import paper
from shortlist.experiments.comparison import mark_best
from shortlist.experiments.parts import Parts, letter_parts, read_parts
from shortlist.experiments.report import Cell, Prose, Section, Table, Value
from shortlist.experiments.units import Context, Task, Unit
from shortlist.torch import TopKAccuracy, TopKEntropyLoss, TopKHingeLoss, TruncatedTopKEntropyLoss

Examples = tuple[Tensor, Tensor]
METHODS = ("smooth-topk-svm:3", "smooth-topk-svm:5", "trunc-ent:3", "trunc-ent:5", "lr-multi")
KS = (1, 3, 5, 10)
_QUICK_EXAMPLES = 1000
_ROWS_TESTED_AT_ONCE = 4096
_SPREAD = "standard deviation over the networks"
_PROSE = Prose("finetune")


@dataclass(frozen=True)
class Recipe:
    """How a network is trained and fine-tuned, whatever the loss."""

    epochs: int = 12
    step: float = 0.1
    tuning_epochs: int = 3
    tuning_steps: tuple[float, ...] = (0.1, 0.03)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch: int = 100

    def train(
        self, network: nn.Module, loss: nn.Module, X: Tensor, y: Tensor, steps: Any, seed: int
    ) -> None:
        """Train by stochastic gradient descent, one epoch for each step size."""
        generator = torch.Generator().manual_seed(seed)
        network.train()
        options = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        optimizer = torch.optim.SGD(network.parameters(), nesterov=True, **options)
        for step in steps:
            optimizer.param_groups[0]["lr"] = step
            for rows in torch.randperm(len(X), generator=generator).split(self.batch):
                optimizer.zero_grad()
                loss(network(X[rows]), y[rows]).backward()
                optimizer.step()


@dataclass(frozen=True)
class Tuned:
    """A network after fine-tuning: test accuracies (%) at the ks, and the step size chosen."""

    accuracies: tuple[float, ...]
    step: float


@dataclass(frozen=True)
class NetworkResult:
    """One network: its test accuracies (%) before, and what each method made of it."""

    reference: tuple[float, ...]
    tuned: dict[str, Tuned]


@dataclass(frozen=True)
class Row:
    """A line of the table, over several networks: by k the accuracy, its deviation, the gain."""

    method: str
    fine_tuned: bool
    mean: dict[int, float]
    gain: dict[int, float]
    deviation: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return paper.display_name(self.method)


@dataclass(frozen=True)
class FineTuningResult:
    """The table's lines and the networks behind them."""

    rows: tuple[Row, ...]
    networks: tuple[NetworkResult, ...]


@dataclass(frozen=True)
class FineTuningTask(Task):
    """Train one reference network and fine-tune it with every method."""

    uses_torch: ClassVar[bool] = True

    data: str
    methods: tuple[str, ...]
    ks: tuple[int, ...]
    seed: int
    recipe: Recipe = Recipe()

    def run(self, payload: Parts) -> NetworkResult:
        train, validation, test = _tensors(payload, self.seed)
        recipe = self.recipe
        # The seed decides the initial weights and the order of examples; the caller's generator
        # is left as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = network_for(train[0].shape[1], payload.n_classes)
            constant = [recipe.step] * recipe.epochs
            recipe.train(network, nn.CrossEntropyLoss(), *train, constant, self.seed)

        def tuned(method: str) -> Tuned:
            _, k = paper.split_method(method)
            candidates = []
            for step in recipe.tuning_steps:
                candidate, epochs = copy.deepcopy(network), recipe.tuning_epochs
                falling = [step * (1 - epoch / epochs) for epoch in range(epochs)]
                # The same order of examples for every loss and step.
                recipe.train(candidate, loss_for(method), *train, falling, self.seed + 1)
                candidates.append((_accuracies(candidate, validation, [k, 1]), step, candidate))
            _, step, best = max(candidates, key=lambda candidate: candidate[0])
            return Tuned(_accuracies(best, test, self.ks), step)

        reference = _accuracies(network, test, self.ks)
        return NetworkResult(reference, {method: tuned(method) for method in self.methods})


def _tensors(parts: Parts, seed: int) -> tuple[Examples, Examples, Examples]:
    """Training, validation and test examples. Labels are column numbers; unknown ones -100."""
    X, y, X_val, y_val = parts.for_selection(seed)
    classes = np.unique(parts.y_train)

    def tensors(X: Any, y: Any) -> Examples:
        dense = X.toarray() if hasattr(X, "toarray") else X
        columns = np.searchsorted(classes, y)
        columns = np.where(classes[columns.clip(max=len(classes) - 1)] == y, columns, -100)
        return torch.tensor(np.asarray(dense, dtype=np.float32)), torch.tensor(columns)

    return tensors(X, y), tensors(X_val, y_val), tensors(parts.X_test, parts.y_test)


def loss_for(method: str) -> nn.Module:
    """Return the loss of a method such as "smooth-topk-svm:3" or "lr-multi"."""
    family, k = paper.split_method(method)
    losses: dict[str, Callable[[], nn.Module]] = {
        "lr-multi": nn.CrossEntropyLoss,
        "smooth-topk-svm": partial(TopKHingeLoss, k, smoothing=1.0),
        "topk-svm": partial(TopKHingeLoss, k, smoothing=0.0),
        "topk-ent": partial(TopKEntropyLoss, k),
        "trunc-ent": partial(TruncatedTopKEntropyLoss, k),
    }
    if family not in losses:
        raise ValueError(f"method must be of one of {', '.join(losses)}, got {method!r}")
    return losses[family]()


def network_for(n_features: int, n_classes: int) -> nn.Module:
    """Return a convolutional network for square images of 8 x 8 or more, or a perceptron."""
    side = math.isqrt(n_features)
    if side * side != n_features or side < 8:
        hidden = [nn.Linear(n_features, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(128, n_classes))
    first = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    last = [nn.Linear(16 * (side // 4) ** 2, 128), nn.ReLU(), nn.Linear(128, n_classes)]
    return nn.Sequential(nn.Unflatten(1, (1, side, side)), *first, *second, nn.Flatten(), *last)


@torch.inference_mode()
def _accuracies(network: nn.Module, examples: Examples, ks: Sequence[int]) -> tuple[float, ...]:
    network.eval()
    metric = TopKAccuracy(max(ks))
    for X, y in zip(*(part.split(_ROWS_TESTED_AT_ONCE) for part in examples), strict=True):
        metric.update(network(X), y)
    curve = 100 * metric.compute()
    return tuple(float(curve[k - 1]) for k in ks)


def summarise(networks: Sequence[NetworkResult], ks: Sequence[int]) -> list[Row]:
    """The reference and each method, as means over networks; gains over the same network's."""
    reference = np.array([network.reference for network in networks])

    def row(method: str, accuracies: Any, fine_tuned: bool) -> Row:
        columns = [accuracies.mean(0), (accuracies - reference).mean(0)]
        if len(networks) > 1:
            columns.append(accuracies.std(0, ddof=1))
        by_k = [dict(zip(ks, column.tolist(), strict=True)) for column in columns]
        return Row(method, fine_tuned, *by_k)

    rows = [row("lr-multi", reference, False)]
    for method in networks[0].tuned:
        accuracies = np.array([network.tuned[method].accuracies for network in networks])
        rows.append(row(method, accuracies, True))
    return rows


def paper_rows(dataset: str) -> list[Row]:
    """A half of the paper's Table 5: one network, whose step sizes are not known."""
    tuned = {m: Tuned(numbers, math.nan) for m, numbers in paper.TABLE_5[dataset].items()}
    return summarise([NetworkResult(tuned.pop(paper.BEFORE).accuracies, tuned)], KS)


def run(
    context: Context,
    *,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    seeds: int = 5,
    tuning_epochs: int = 3,
) -> Section:
    """Fine-tune a small network for Letter, or for the examples of a file, with every loss."""
    parts = letter_parts() if data is None else read_parts(data, seed=context.seed)
    title = "Letter" if data is None else data.stem
    recipe = Recipe(tuning_epochs=tuning_epochs)
    if context.quick:
        parts, seeds = parts.subsample(_QUICK_EXAMPLES, context.seed), min(seeds, 2)
        recipe = replace(recipe, epochs=3, tuning_epochs=1, tuning_steps=(0.03,))
    methods = tuple(methods or METHODS)
    for method in methods:
        loss_for(method)
    ks = tuple(k for k in KS if k < parts.n_classes)
    tasks = [
        FineTuningTask(parts.fingerprint, methods, ks, context.seed + number, recipe)
        for number in range(seeds)
    ]
    names = [f"fine-tuning on {title}, network {number + 1}" for number in range(seeds)]
    units = [Unit(name, task, parts) for name, task in zip(names, tasks, strict=True)]
    networks = tuple(context.compute("fine-tuning", units))
    rows = tuple(summarise(networks, ks))
    tuned = [row for row in rows if row.fine_tuned]
    gains = [(row.gain[k], row.name, k) for row in tuned for k in ks]
    facts = {"title": title, "parts": parts, "networks": len(networks), "recipe": recipe}
    facts |= {"most": max(gains), "least": min(gains)}
    for softmax in [row for row in tuned if row.method == "lr-multi"]:
        above = {(row.method, k): row.mean[k] - softmax.mean[k] for row in tuned for k in ks}
        meant = [points for (m, k), points in above.items() if k >= paper.split_method(m)[1]]
        facts["furthest_as_meant"] = max(meant, key=abs)
        facts["furthest_at_1"] = max((above[row.method, 1] for row in tuned), key=abs)
    tables = [_table("finetune", "ours", rows, ks, facts)]
    for key in paper.TABLE_5:
        named = {"title": paper.TABLE_4[key].name}
        tables.append(_table(f"finetune-{key}", "theirs", paper_rows(key), KS, named))
    result = FineTuningResult(rows, networks)
    return _PROSE.section("finetune", facts, tables=tables, result=result)


def _table(name: str, block: str, rows: Sequence[Row], ks: Sequence[int], facts: Any) -> Table:
    accuracies = mark_best(
        [[Value(row.mean[k], spread=row.deviation.get(k), digits=2) for k in ks] for row in rows]
    )
    cells: list[list[Cell]] = []
    for row, accuracy in zip(rows, accuracies, strict=True):
        gains = [Value(row.gain[k], digits=2, signed=True) if row.fine_tuned else "" for k in ks]
        cells.append([row.name if row.fine_tuned else f"{row.name}, before", *accuracy, *gains])
    columns = ["Method", *(f"Top-{k}" for k in ks), *(f"Gain {k}" for k in ks)]
    return _PROSE.table(block, columns, cells, facts, name=name, groups=[1], spread=_SPREAD)
