"""The fits of a search: one warm-started path over C for each loss family and fold, in parallel."""

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from shortlist._memory import available_bytes
from shortlist.estimators.cv_folds import Fold, Part
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.paths import ModelPath
from shortlist.metrics import topk_accuracy_curve


@dataclass(frozen=True)
class Outcome:
    """What is kept of one fit on one fold."""

    accuracies: NDArray
    seconds: float
    relative_gap: float
    status: str


@dataclass
class Path:
    """One family on one fold: fits for growing C, each from the duals of the one before.

    ``models`` keeps the fitted models, where ``keep_models`` asks for them.
    """

    family: int
    template: TopKClassifier
    fold: Fold
    ks: tuple[int, ...]
    keep_models: bool
    keep_warm: bool
    verbose: int
    outcomes: dict[float, Outcome] = field(default_factory=dict)
    models: dict[float, TopKClassifier] = field(default_factory=dict)
    _path: ModelPath | None = None

    def advance(self, Cs: list[float]) -> None:
        """Fit and measure for these values of C, in increasing order."""
        held_out = self.fold.held_out_part()
        path = self._path
        if path is None:
            train = self.fold.training_part()
            path = ModelPath(self.template, train.X, train.y, train.weight, max(Cs))
        for C in sorted(Cs):
            model = path.fit(C)
            result = model.result_
            if result.status == "interrupted":
                raise KeyboardInterrupt
            accuracies = accuracies_at(self.ks, model, held_out)
            self.outcomes[C] = Outcome(
                accuracies, result.seconds, result.relative_gap, result.status
            )
            if self.keep_models:
                self.models[C] = model
            if self.verbose:
                self._tell(C)
        self._path = path if self.keep_warm else None

    def _tell(self, C: float) -> None:
        outcome = self.outcomes[C]
        accuracies = ", ".join(
            f"top-{k} {a:.4f}" for k, a in zip(self.ks, outcome.accuracies, strict=True)
        )
        name = f"{self.template.loss} k={self.template.k}"
        if not isinstance(self.fold.held_out, Part):  # a validation set is no fold
            name += f", fold {self.fold.number + 1}"
        sys.stderr.write(f"{name}, C={C:g}: {accuracies} ({outcome.seconds:.1f} s)\n")


def accuracies_at(ks: tuple[int, ...], model: TopKClassifier, part: Part) -> NDArray:
    """Top-k accuracy for all ks from one matrix of scores.

    Ties count by chance, so that a model that scores all labels alike gains nothing by it. A
    label the model has not seen is an error for every k.
    """
    scores = model._scores(part.X)
    most = scores.shape[1]
    curve = topk_accuracy_curve(
        part.y,
        scores,
        min(max(ks), most),
        "expected",
        labels=model.classes_,
        sample_weight=part.weight,
    )
    return np.array([curve[min(k, most) - 1] for k in ks])


def run_paths(
    paths: list[Path], Cs_of: dict[int, list[float]], n_classes: int, n_jobs: int | None
) -> None:
    """Advance every path over its family's values of C, as many at a time as memory allows."""
    tasks = [path for path in paths if Cs_of.get(path.family)]
    if not tasks:
        return
    need = max(path.fold.bytes_needed(n_classes) for path in tasks)
    jobs = min(effective_n_jobs(n_jobs), len(tasks), _how_many_fit(need))
    with _one_convergence_warning_later(), _blas_threads_for(jobs):
        Parallel(n_jobs=jobs, require="sharedmem")(
            delayed(path.advance)(Cs_of[path.family]) for path in tasks
        )


def finished_part(paths: list[Path], Cs_of: dict[int, list[float]]) -> list[Path]:
    """What an interrupted search can choose from: fits on the same folds, for whole ranges of C.

    ``Cs_of`` are the values that each family was to go through. Folds that were cut are left out,
    and so are families without a whole fold. If there is none at all, the first fold counts, as
    far as it got.
    """
    whole = [path for path in paths if set(Cs_of[path.family]) <= set(path.outcomes)]
    if not whole:
        return [path for path in paths[:1] if path.outcomes]
    families = {path.family for path in whole}
    common = set.intersection(
        *({path.fold.number for path in whole if path.family == family} for family in families)
    )
    # Families go through the folds in the same order: the first of them is common to all.
    kept = [path for path in whole if path.fold.number in common]
    return [
        replace(path, outcomes={C: path.outcomes[C] for C in Cs_of[path.family]}) for path in kept
    ]


def duals_fit(folds: list[Fold], families: int, n_classes: int) -> bool:
    """Whether the duals of all paths may stay in memory between rounds: half of it at most."""
    need = sum(fold.bytes_needed(n_classes) for fold in folds) * families
    return _how_many_fit(2 * need, least=0) > 0


def _how_many_fit(need: int, least: int = 1) -> int:
    free = available_bytes()
    return sys.maxsize if free is None else max(least, free // max(need, 1))


@contextmanager
def _one_convergence_warning_later() -> Iterator[None]:
    # One warning a search, with the counts, says more than one for each of a hundred fits.
    # Filters are global: set here, in the calling thread, they hold for the workers too.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@contextmanager
def _blas_threads_for(jobs: int) -> Iterator[None]:
    if jobs == 1 or threading.current_thread() is not threading.main_thread():
        yield
        return
    with threadpool_limits(max(1, (os.cpu_count() or 1) // jobs), user_api="blas"):
        yield
