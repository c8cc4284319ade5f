"""Models on the command line: loading one, and giving it the data it was trained for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shortlist.cli.data import read_data
from shortlist.cli.options import ReadingOptions

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData

# Scores are computed for so many examples and classes at a time: 32 MiB of doubles.
_BLOCK = 1 << 22


def load_model(path: str) -> Any:
    """Load a fitted classifier; whatever is wrong with the file is an error in one line."""
    from shortlist.estimators.shortlists import ShortlistClassifier
    from shortlist.persistence import load

    model = load(path)
    if not isinstance(model, ShortlistClassifier):
        raise _error(path, f"holds a {type(model).__name__}, not a classifier")
    return model


def check_trainable(model: Any, y: Any) -> None:
    """Raise now what training would refuse: parameters, and their fit with the labels."""
    from shortlist.estimators.training import check_parameters, encode_labels, loss_of

    check_parameters(model)
    classes, _ = encode_labels(y)
    loss_of(model).check_classes(len(classes))


def model_for(model: Any, k: int) -> Any:
    """The classifier that answers for shortlists of k: the one chosen for it, if there are many."""
    return model._model_for(k) if hasattr(model, "estimators_") else model


def score_blocks(model: Any, X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the scores of X, one column a class, for a block of rows at a time."""
    step = max(1, _BLOCK // len(model.classes_))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, model._scores(X[rows])


@dataclass(frozen=True)
class Columns:
    """The features that training saw: how many, and their names where they have any."""

    number: int
    names: tuple[str, ...] | None

    @classmethod
    def of_data(cls, data: LabeledData) -> Columns:
        return cls(data.n_features, data.feature_names)

    @classmethod
    def of_model(cls, model: Any) -> Columns:
        names = getattr(model, "feature_names_in_", None)
        return cls(int(model.n_features_in_), None if names is None else tuple(map(str, names)))

    def remember(self, model: Any) -> None:
        """Let a model trained on these keep the names, to tell them in other files."""
        import numpy as np

        if self.names is not None and len(set(self.names)) == self.number:
            model.feature_names_in_ = np.array(self.names, dtype=object)

    def read(self, name: str, reading: ReadingOptions, *, part: str, labelled: bool) -> LabeledData:
        """Read data with the same features, put into the same order if they are named."""
        data = read_data(name, reading, part, n_features=self.number, labelled=labelled)
        if data.n_features != self.number:
            raise _error(name, f"has {data.n_features} features where training had {self.number}")
        names = data.feature_names
        if self.names is None or names is None or names == self.names:
            return data
        if sorted(names) != sorted(self.names):
            here, there = set(names), set(self.names)
            strange = _few([n for n in names if n not in there] or names)
            missing = _few([n for n in self.names if n not in here] or self.names)
            raise _error(name, f"has columns {strange} where training had {missing}")
        sys.stderr.write(f"shortlist: {name}: columns in another order are matched by name\n")
        order = [names.index(n) for n in self.names]
        return replace(data, X=data.X[:, order], feature_names=self.names)

    def read_validation(self, name: str, reading: ReadingOptions) -> LabeledData:
        """Read what --val names: like DATA, but --split and --labels are DATA's own."""
        return self.read(name, replace(reading, split=None, labels=None), part="val", labelled=True)


def _error(name: str, message: str) -> Exception:
    from shortlist.datasets import DataError

    return DataError(message, path=name)


def _few(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(repr(n) for n in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
