"""The paper's fine-tuning recipe on networks small enough for a laptop.

A network is trained with softmax at a constant step size, as far as that takes it: the reference.
From there it is trained for a few epochs more with a falling step size, once with each loss. Each
loss gets the step size that serves its own top-k accuracy best on validation examples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shortlist.experiments import paper
from shortlist.experiments.protocol import Parts
from shortlist.experiments.store import Record, Tick
from shortlist.torch import TopKAccuracy, TopKEntropyLoss, TopKHingeLoss, TruncatedTopKEntropyLoss

METHODS = ("smooth-topk-svm:3", "smooth-topk-svm:5", "trunc-ent:3", "trunc-ent:5", "lr-multi")
REFERENCE = "reference"
_EVALUATION_ROWS = 4096


@dataclass(frozen=True)
class Recipe:
    """What is done to a network, besides which loss it is fine-tuned with."""

    epochs: int = 12
    step: float = 0.1
    tuning_epochs: int = 3
    tuning_steps: tuple[float, ...] = (0.1, 0.03)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch: int = 100


def loss_for(method: str) -> nn.Module:
    """Return the loss of a method such as "smooth-topk-svm:3" or "lr-multi"."""
    family, k = paper.split_method(method)
    losses = {
        "lr-multi": lambda: nn.CrossEntropyLoss(),
        "smooth-topk-svm": lambda: TopKHingeLoss(k, smoothing=1.0),
        "topk-svm": lambda: TopKHingeLoss(k, smoothing=0.0),
        "topk-ent": lambda: TopKEntropyLoss(k),
        "trunc-ent": lambda: TruncatedTopKEntropyLoss(k),
    }
    if family not in losses:
        raise ValueError(f"method must be of one of {', '.join(losses)}, got {method!r}")
    return losses[family]()


def network_for(n_features: int, n_classes: int) -> nn.Module:
    """Return a convolutional network for square images of 8 x 8 or more, or a perceptron."""
    side = math.isqrt(n_features)
    if side * side == n_features and side >= 8:
        pooled = side // 4
        return nn.Sequential(
            nn.Unflatten(1, (1, side, side)),
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * pooled * pooled, 128),
            nn.ReLU(),
            nn.Linear(128, n_classes),
        )
    return nn.Sequential(
        nn.Linear(n_features, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


@dataclass(frozen=True)
class _Data:
    """Examples as tensors, labels as column numbers; validation examples chosen if need be."""

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    n_classes: int

    @classmethod
    def of(cls, parts: Parts, seed: int) -> _Data:
        X, y, X_val, y_val = parts.for_selection(seed)
        classes = np.unique(parts.y_train)

        def tensors(X: Any, y: Any) -> tuple[Tensor, Tensor]:
            dense = X.toarray() if hasattr(X, "toarray") else X
            columns = np.searchsorted(classes, y)
            columns = np.where(classes[columns.clip(max=len(classes) - 1)] == y, columns, -100)
            return torch.tensor(np.asarray(dense, dtype=np.float32)), torch.tensor(columns)

        return cls(
            tensors(X, y),
            tensors(X_val, y_val),
            tensors(parts.X_test, parts.y_test),
            len(classes),
        )


def fine_tune(parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> Record:
    """Train one reference network and fine-tune it with every method.

    ``parameters`` holds "methods", "ks", "seed" and "recipe" (:class:`Recipe` as a dictionary).
    Returns for "reference" and each method the test ``accuracies`` (%) at the ks, and for each
    method the ``step`` that was chosen.
    """
    recipe = Recipe(**parameters["recipe"])
    steps = recipe.tuning_steps
    ks, methods, seed = parameters["ks"], parameters["methods"], parameters["seed"]
    data = _Data.of(parts, seed)
    n_epochs = recipe.epochs + len(methods) * len(steps) * recipe.tuning_epochs
    done = 0

    def epoch_done() -> None:
        nonlocal done
        done += 1
        tick(done / n_epochs)

    # The seed decides the initial weights and the order of examples; the caller's generator is
    # left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = network_for(data.train[0].shape[1], data.n_classes)
        generator = torch.Generator().manual_seed(seed)
        constant = [recipe.step] * recipe.epochs
        _train(network, nn.CrossEntropyLoss(), data.train, constant, recipe, generator, epoch_done)

    record: Record = {REFERENCE: {"accuracies": _accuracies(network, data.test, ks)}}
    for method in methods:
        _, k = paper.split_method(method)
        loss = loss_for(method)
        candidates = []
        for step in steps:
            tuned = copy.deepcopy(network)
            # The same order of examples for every loss and step.
            generator = torch.Generator().manual_seed(seed + 1)
            falling = [step * (1 - i / recipe.tuning_epochs) for i in range(recipe.tuning_epochs)]
            _train(tuned, loss, data.train, falling, recipe, generator, epoch_done)
            quality = _accuracies(tuned, data.validation, [k, 1])
            candidates.append((quality, step, tuned))
        _, step, tuned = max(candidates, key=lambda candidate: candidate[0])
        record[method] = {"accuracies": _accuracies(tuned, data.test, ks), "step": step}
    return record


def summarise(records: Sequence[Record], ks: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for the reference and each method: means and deviations over seeds.

    A row has ``method``, ``name``, ``fine_tuned``, and ``mean``, ``deviation``, ``gain`` (over the
    reference of the same seed) and ``gain_error`` (its standard error), each by k.
    """
    reference = np.array([record[REFERENCE]["accuracies"] for record in records])
    rows = []
    for method in records[0]:
        accuracies = np.array([record[method]["accuracies"] for record in records])
        gains = accuracies - reference
        spread = accuracies.std(0, ddof=1) if len(records) > 1 else np.zeros(len(ks))
        gain_spread = gains.std(0, ddof=1) if len(records) > 1 else np.zeros(len(ks))
        rows.append(
            {
                "method": "lr-multi" if method == REFERENCE else method,
                "name": paper.display_name("lr-multi" if method == REFERENCE else method),
                "fine_tuned": method != REFERENCE,
                "mean": dict(zip(ks, accuracies.mean(0).tolist(), strict=True)),
                "deviation": dict(zip(ks, spread.tolist(), strict=True)),
                "gain": dict(zip(ks, gains.mean(0).tolist(), strict=True)),
                "gain_error": dict(
                    zip(ks, (gain_spread / math.sqrt(len(records))).tolist(), strict=True)
                ),
            }
        )
    return rows


def parameters_for(
    recipe: Recipe, methods: Sequence[str], ks: Sequence[int], seed: int
) -> dict[str, Any]:
    """Return the parameters of :func:`fine_tune` as plain data."""
    return {"recipe": asdict(recipe), "methods": list(methods), "ks": list(ks), "seed": seed}


def _train(
    network: nn.Module,
    loss: nn.Module,
    examples: tuple[Tensor, Tensor],
    steps: Sequence[float],
    recipe: Recipe,
    generator: torch.Generator,
    epoch_done: Any,
) -> None:
    """Train by stochastic gradient descent, one epoch for each step size."""
    X, y = examples
    network.train()
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=recipe.step,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=True,
    )
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = step
        for rows in torch.randperm(len(X), generator=generator).split(recipe.batch):
            optimizer.zero_grad()
            loss(network(X[rows]), y[rows]).backward()
            optimizer.step()
        epoch_done()


@torch.inference_mode()
def _accuracies(
    network: nn.Module, examples: tuple[Tensor, Tensor], ks: Sequence[int]
) -> list[float]:
    network.eval()
    metric = TopKAccuracy(max(ks))
    for X, y in zip(*(part.split(_EVALUATION_ROWS) for part in examples), strict=True):
        metric.update(network(X), y)
    curve = 100 * metric.compute()
    return [float(curve[k - 1]) for k in ks]
