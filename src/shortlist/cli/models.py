"""Models on the command line: loading one, and giving it the data it was trained for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shortlist.cli.data import how_read, labels_in, read_data
from shortlist.cli.options import KernelOptions, OutputOptions, ReadingOptions
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData
    from shortlist.datasets.how_read import Reading

# Scores, examples times classes, that are computed at a time: 32 MiB of doubles.
_SCORES_PER_BLOCK = 1 << 22


def load_model(path: str, *, scores_only: bool = False) -> Any:
    """Load a fitted classifier; whatever is wrong with the file is an error in one line.

    ``scores_only`` is for what asks for scores and shortlists only: it loads far less.
    """
    from shortlist.persistence import LinearScores, load, load_scores

    model = (load_scores if scores_only else load)(path)
    if isinstance(model, LinearScores):
        return model
    from shortlist.estimators import ShortlistClassifier

    if hasattr(model, "steps"):
        advice = "load it in Python, or train with --scale, which keeps the scaling in the model"
        raise DataError(f"holds a Pipeline, not a classifier: {advice}", path=path)
    if not isinstance(model, ShortlistClassifier):
        raise DataError(f"holds a {type(model).__name__}, not a classifier", path=path)
    return model


def make_classifier(
    kernel: KernelOptions, *, memory_limit: str | None = None, **parameters: Any
) -> Any:
    """A classifier to be trained: linear, or with a kernel if one is asked for."""
    of_kernel = kernel.parameters()
    if kernel.kernel is None:
        from shortlist import TopKClassifier

        return TopKClassifier(**parameters, memory_limit=memory_limit)
    from shortlist import KernelTopKClassifier

    if memory_limit is not None:
        raise ValueError("--memory-limit is for linear scores: leave it out, or --kernel")
    return KernelTopKClassifier(**parameters, **of_kernel)


def check_trainable(model: Any, examples: LabeledData) -> None:
    """Raise now what training would refuse: parameters, and their fit with the examples."""
    from scipy import sparse

    if examples.weight is not None and not examples.weight.any():
        raise DataError("all weights are 0", path=examples.source)
    labels = labels_in(examples)
    if len(labels) < 2:
        only = f"holds only one class, {next(iter(labels))!r}; training needs at least 2"
        raise DataError(only, path=examples.source)
    model.check_trainable(len(labels), sparse.issparse(examples.y))


def check_kind_of_labels(model: Any, data: LabeledData, name: str) -> bool:
    """Whether examples have several labels; DataError unless the model, so named, agrees."""
    from scipy import sparse

    several = sparse.issparse(data.y)
    if several != getattr(model, "multilabel_", False):
        here, there = ("several labels", "one") if several else ("one label", "several")
        raise DataError(f"has {here} an example, but {name} has {there}", path=data.source)
    return several


def checked_length(model: Any, k: int | None, option: str = "-k") -> int:
    """The length of shortlists that was asked for, or else the model's own."""
    most = len(model.classes_)
    if k is None:
        return int(model.k)
    if not 1 <= k <= most:
        raise ValueError(
            f"{option} must be from 1 to {most}, the model's number of classes; got {k}"
        )
    return k


def chosen_for(model: Any, k: int) -> dict[str, Any]:
    """The loss and C of the classifier that answers for shortlists of k."""
    mine = model.model_for(k)
    return {"loss": mine.loss, "k": int(mine.k), "C": float(mine.C)}


def blocks_of_rows(model: Any, X: Any) -> Iterator[slice]:
    """Yield the rows of X in blocks whose scores fit in memory."""
    step = max(1, _SCORES_PER_BLOCK // len(model.classes_))
    for start in range(0, X.shape[0], step):
        yield slice(start, min(start + step, X.shape[0]))


def score_blocks(model: Any, X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the scores of X, one column a class, for a block of rows at a time."""
    from shortlist.metrics import estimator_scores

    for rows in blocks_of_rows(model, X):
        yield rows, estimator_scores(model, X[rows])[0]


def ranked_columns(model: Any, X: Any, k: int, probable: Any) -> tuple[Any, Any]:
    """The numbers of the k best classes of each row, best first, and their scores.

    ``probable`` gives probabilities in their place, unless it is None.
    """
    import numpy as np

    labels, scores = model.predict_topk(X, k, return_scores=True)
    columns = np.searchsorted(model.classes_, labels)
    if probable is not None:
        scores = np.take_along_axis(probable.predict_proba(X), columns, axis=1)
    return columns, scores


def reading_of(model: Any) -> Reading:
    """How a model's training data was read; of a model made elsewhere, what it knows itself."""
    from shortlist.datasets import Reading

    kept = (getattr(model, "data_", None) or {}).get("reading")
    if kept is not None:
        return Reading.from_dict(kept)
    names = getattr(model, "feature_names_in_", None)
    feature_names = None if names is None else tuple(map(str, names))
    return Reading("npz", int(model.n_features_in_), feature_names=feature_names)


@dataclass(frozen=True)
class Classes:
    """The label of each column of a model's scores, and the names of labels."""

    labels: tuple[Any, ...]
    names: dict[Any, str]

    @classmethod
    def of_model(cls, model: Any, names_file: str | None = None) -> Classes:
        """The classes of a model; a file of names counts more than names that the model keeps."""
        reading = reading_of(model)
        labels = tuple(model.classes_.tolist()) if reading.classes is None else reading.classes
        if names_file is None:
            return cls(labels, dict(reading.class_names or ()))
        from shortlist.datasets.names import named_labels

        return cls(labels, dict(named_labels(list(labels), names_file)))

    def shown(self, label: Any) -> str:
        """A label for people, with its name."""
        name = self.names.get(label)
        return str(label) if name is None else f"{label} ({name})"

    def at(self, columns: Iterable[int]) -> list[Any]:
        """The labels of columns."""
        return [self.labels[column] for column in columns]


def remember_names(model: Any, data: LabeledData) -> None:
    """Let a model keep the names of its features, if every one has a name of its own."""
    names = data.feature_names
    if names is not None and len(set(names)) == data.n_features:
        model.name_features(names)


def read_validation(like: Reading, name: str, options: ReadingOptions) -> LabeledData:
    """Read what --val names: like DATA, but --split and --labels are DATA's own."""
    own = replace(options, split=None, labels=None)
    return read_data(name, own, "val", like=like)


def say_differences(
    output: OutputOptions, data: LabeledData, like: Reading, *, labelled: bool = True
) -> None:
    """Say what of the data differs from the training data, or is a guess."""
    from shortlist.datasets.columns import differences

    found = how_read(data)
    own_guess = found.index_base is not None and like.index_base is None
    notes = list(differences(found, like))
    if (labelled and found.label_guess is not None) or (own_guess and found.guessed):
        notes.insert(0, found.describe())
    for note in notes:
        output.say(f"shortlist: {data.source}: {note}")
