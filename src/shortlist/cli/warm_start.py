"""``train --warm-start MODEL``: training that begins at the weights of a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist._parameters import LOSS_PARAMETERS
from shortlist._text import Phrase, Setting, few
from shortlist.cli.models import check_kind_of_labels, load_model, reading_of
from shortlist.cli.options import KernelOptions, MachineOptions
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist import TopKClassifier
    from shortlist.datasets.containers import LabeledData
    from shortlist.datasets.how_read import Reading

_SHOWN_LABELS = 5


@dataclass(frozen=True)
class SavedStart:
    """A saved model to go on from, and how its data was read."""

    path: str
    model: TopKClassifier
    reading: Reading

    def check_labels(self, data: LabeledData) -> None:
        """Raise unless data has labels of the kind that the model knows, and just these."""
        if check_kind_of_labels(self.model, data, self.path):
            return  # several labels: they are read for those of the model
        labels, known = set(np.unique(data.y).tolist()), set(self.model.classes_.tolist())
        if labels - known:
            listed = few(sorted(labels - known), _SHOWN_LABELS)
            raise DataError(f"has labels that {self.path} has not: {listed}", path=data.source)
        if known - labels:
            listed = few(sorted(known - labels), _SHOWN_LABELS)
            raise DataError(f"lacks labels that {self.path} has: {listed}", path=data.source)


def open_start(
    path: str, parameters: dict[str, Any], kernel: KernelOptions, machine: MachineOptions
) -> SavedStart:
    """The model to go on from. The loss must be its own; C and all else may differ."""
    from shortlist import TopKClassifier

    if kernel.kernel is not None or machine.workers is not None:
        other = "--kernel" if kernel.kernel is not None else "--workers"
        raise ValueError(f"--warm-start does not go with {other}")
    saved = load_model(path)
    model = saved.model_for(parameters["k"])
    if not isinstance(model, TopKClassifier):
        raise DataError("has a kernel; --warm-start takes a model of linear scores", path=path)
    _check_loss(model, TopKClassifier(**parameters), path)
    return SavedStart(path, model, reading_of(saved))


def _check_loss(model: TopKClassifier, wanted: TopKClassifier, path: str) -> None:
    loss = wanted.make_loss(model.multilabel_)
    if not wanted.starts_from_weights(model.multilabel_):
        hinge = "is trained by its duals, which model files do not keep: leave out --warm-start"
        raise ValueError(f"{wanted.loss} {hinge}")
    if model.make_loss(model.multilabel_) == loss:
        return
    words = Phrase("was trained with ")
    for name in LOSS_PARAMETERS:
        if getattr(model, name) != getattr(wanted, name):
            words = words + Setting(name, getattr(model, name)) + ", "
    raise DataError(words + "and a warm start takes the same loss", path=path)
