"""Parts of the data to train on and to measure on, checked in the user's terms."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import check_cv

from shortlist._text import Setting
from shortlist.errors import WordedError
from shortlist.estimators.callers import level_outside
from shortlist.estimators.linear import TopKClassifier
from shortlist.losses import Loss
from shortlist.solvers.memory import training_bytes


@dataclass(frozen=True)
class Part:
    """Examples with labels and weights (None: all one).

    ``counts`` are their weights in held-out accuracy: sample weight times class weight. ``y`` may
    be an indicator of several labels, a boolean matrix.
    """

    X: Any
    y: NDArray
    weight: NDArray | None
    counts: NDArray | None

    def take(self, indices: NDArray) -> "Part":
        """Some of the examples; a view where they are consecutive rows of a dense matrix."""
        rows: Any = indices
        consecutive = indices.size > 0 and (np.diff(indices) == 1).all()
        if consecutive and not sparse.issparse(self.X):
            rows = slice(int(indices[0]), int(indices[-1]) + 1)
        weight, counts = (
            None if values is None else values[rows] for values in (self.weight, self.counts)
        )
        return Part(self.X[rows], self.y[rows], weight, counts)


@dataclass(frozen=True)
class Fold:
    """Where to train and where to measure.

    ``train`` are rows of ``data``, None is all of them. ``held_out`` are rows of it too, unless
    there is a ``validation`` set to measure on.
    """

    number: int
    data: Part
    train: NDArray | None
    held_out: NDArray | None
    validation: Part | None = None

    @property
    def name(self) -> str:
        """What to call the held-out examples in messages."""
        if self.validation is not None:
            return "the validation set"
        return f"split {self.number + 1} of cv"

    def training_part(self) -> Part:
        return self.data if self.train is None else self.data.take(self.train)

    def held_out_part(self) -> Part:
        if self.validation is not None:
            return self.validation
        assert self.held_out is not None
        return self.data.take(self.held_out)

    def held_out_labels(self) -> tuple[NDArray, NDArray | None]:
        """The labels of the held-out examples, and their weights in accuracy."""
        if self.validation is not None:
            return self.validation.y, self.validation.counts
        counts = self.data.counts
        return self.data.y[self.held_out], None if counts is None else counts[self.held_out]

    def bytes_needed(self, n_classes: int) -> int:
        """Memory of one fit on this fold: the solver's, and the copy of the examples."""
        X = self.data.X
        n, d = X.shape
        if self.train is not None:
            n = len(self.train)
        copied = 0 if self.train is None else (X.nnz if sparse.issparse(X) else n * d)
        return training_bytes(n, d, n_classes, X.dtype.itemsize) + copied * X.dtype.itemsize


def folds_of(cv: Any, data: Part, groups: Any) -> list[Fold]:
    """The folds that ``cv``, in any of scikit-learn's forms, makes of the data."""
    splitter = check_cv(cv, data.y, classifier=True)
    splits = splitter.split(data.X, data.y, groups)
    n = len(data.y)
    return [
        Fold(number, data, _as_indices(train, n), _as_indices(held_out, n))
        for number, (train, held_out) in enumerate(splits)
    ]


def few_shot_folds(
    data: Part, shots: int, repeats: int, seed: int, validation: Part | None
) -> list[Fold]:
    """Random subsets of ``shots`` examples a class, measured on ``validation`` or on the rest."""
    classes, codes = np.unique(data.y, return_inverse=True)
    by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    for label, members in zip(classes.tolist(), by_class, strict=True):
        if len(members) < shots:
            problem = f" asks for more examples than class {label!r} has: {len(members)}"
            raise WordedError(Setting("shots", shots) + problem)
    if validation is None and len(data.y) == shots * len(classes):
        problem = " leaves no example to measure on: lower it, or give a validation set"
        raise WordedError(Setting("shots", shots) + problem)
    rng = np.random.default_rng(seed)
    folds = []
    for number in range(repeats):
        drawn = [rng.choice(members, shots, replace=False) for members in by_class]
        train = np.sort(np.concatenate(drawn))
        rest = None if validation is not None else np.delete(np.arange(len(data.y)), train)
        folds.append(Fold(number, data, train, rest, validation))
    return folds


def _as_indices(part: ArrayLike, n: int) -> NDArray:
    """Row numbers, from row numbers or a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool and len(part) == n else part


def check_folds(
    folds: list[Fold], families: list[tuple[TopKClassifier, Loss]], classes: NDArray
) -> None:
    """Refuse folds that cannot be trained or measured; warn of classes that training misses."""
    if not folds:
        raise ValueError("cv makes no split")
    lacking = []
    for fold in folds:
        trained = fold.data.y if fold.train is None else fold.data.y[fold.train]
        present = np.unique(trained)
        name, (measured, counts) = fold.name, fold.held_out_labels()
        if len(present) < 2:
            raise ValueError(
                f"the training part of {name} holds {len(present)} class(es); training needs at "
                "least 2. Shuffle, stratify or use fewer folds."
            )
        if len(measured) == 0 or (counts is not None and not (counts > 0).any()):
            raise ValueError(f"{name} holds out no example with a positive sample weight")
        for family, loss in families:
            needed = loss.k + 1
            if len(present) < needed:
                raise WordedError(
                    f"the training part of {name} holds {len(present)} of the {len(classes)} "
                    + ("classes; " + Setting("loss", family.loss) + " with ")
                    + (Setting("k", family.k) + f" needs at least {needed}. ")
                    + "Use fewer folds, stratified ones, or a smaller k."
                )
        unseen = np.setdiff1d(measured, present)
        if len(unseen):
            lacking.append(f"{name} {', '.join(map(repr, unseen[:3].tolist()))}")
    if lacking:
        more = "" if len(lacking) <= 3 else f" and {len(lacking) - 3} more"
        warnings.warn(
            f"held-out labels that training has not seen count as errors for every k: "
            f"{'; '.join(lacking[:3])}{more}",
            UserWarning,
            stacklevel=level_outside(),
        )


def check_folds_of_several_labels(folds: list[Fold]) -> None:
    """Refuse folds without an example to measure on; training says itself what it lacks."""
    if not folds:
        raise ValueError("cv makes no split")
    for fold in folds:
        _, counts = fold.held_out_labels()
        if counts is not None and not (counts > 0).any():
            raise ValueError(f"{fold.name} holds out no example with a label and a positive weight")


def joined_parts(data: Part, more: Part) -> Part:
    """The examples of both; what comes without weights counts one each."""
    X: Any
    if sparse.issparse(data.X) or sparse.issparse(more.X):
        X = sparse.vstack([data.X, more.X]).tocsr()
    else:
        X = np.vstack([data.X, more.X])
    weight = data.weight
    if weight is not None:
        weight = np.concatenate([weight, np.ones(len(more.y))])
    return Part(X, np.concatenate([data.y, more.y]), weight, None)
