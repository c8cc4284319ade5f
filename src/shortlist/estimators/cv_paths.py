"""The fits of a search: one warm-started path over C for each loss family and fold, in parallel."""

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from shortlist._memory import available_bytes
from shortlist._progress import tell_fit
from shortlist.estimators.certified import distances_of_classes
from shortlist.estimators.cv_folds import Fold, Part
from shortlist.estimators.cv_grid import ACCURACY_ROUNDING
from shortlist.estimators.cv_measure import Measure, Measured
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.parameters import constant_feature
from shortlist.estimators.paths import ModelPath
from shortlist.estimators.warm_starts import LastFit
from shortlist.solvers.threads import Crew, crew_for, one_blas_thread

# A family, by its number, and a value of C.
Choice = tuple[int, float]


@dataclass(frozen=True)
class FitOutcome:
    """The measurements of one fit on one fold."""

    measured: Measured
    seconds: float
    relative_gap: float
    status: str


@dataclass
class SearchPath:
    """One family on one fold: fits for growing C, each from the duals of the one before.

    ``models`` keeps, where ``keep_models`` asks for it, the fitted models that may be chosen.
    """

    family: int
    template: TopKClassifier
    fold: Fold
    measure: Measure
    keep_models: bool
    keep_warm: bool
    verbose: int
    outcomes: dict[float, FitOutcome] = field(default_factory=dict)
    models: dict[float, TopKClassifier] = field(default_factory=dict)
    _path: ModelPath | None = None

    def advance(self, Cs: list[float]) -> None:
        """Fit and measure for these values of C: those above the last one first, then the rest.

        Each part is visited in increasing order, in which fits start from one another.
        """
        held_out = self.fold.held_out_part()
        path = self._path
        if path is None:
            train = self.fold.training_part()
            path = ModelPath(self.template, train.X, train.y, train.weight, max(Cs))
        last = path.last_C
        with one_blas_thread(), _crew_to_measure(path, held_out) as crew:
            for C in sorted(Cs, key=lambda C: (last > C, C)):
                self._fit_and_measure(path, C, held_out, crew)
        self._path = path if self.keep_warm else None

    def _fit_and_measure(self, path: ModelPath, C: float, held_out: Part, crew: Crew) -> None:
        model = path.fit(C)
        result = model.result_
        if result.status == "interrupted":
            raise KeyboardInterrupt
        model._own_distances = _distances(path, model)
        measured = self.measure(model, held_out, crew)
        self.outcomes[C] = FitOutcome(measured, result.seconds, result.relative_gap, result.status)
        if self.keep_models:
            self._keep(model)
        if self.verbose:
            self._tell(C)

    def _keep(self, model: TopKClassifier) -> None:
        self.models[model.C] = model
        best = np.max([fit.measured.criteria for fit in self.outcomes.values()], axis=0)
        self.models = {
            C: kept
            for C, kept in self.models.items()
            # The choice takes the smallest C of values that are equal up to rounding. Twice that
            # rounding keeps every model that it may take.
            if (self.outcomes[C].measured.criteria >= best - 2 * ACCURACY_ROUNDING).any()
        }

    def _tell(self, C: float) -> None:
        outcome = self.outcomes[C]
        measured = outcome.measured
        values = [
            f"top-{k} {accuracy:.4f}"
            for k, accuracy in zip(self.measure.ks, measured.accuracies, strict=True)
        ]
        if measured.score is not None:
            values.append(f"score {measured.score:.4f}")
        name = f"{self.template.loss} k={self.template.k}"
        if self.fold.train is not None or self.fold.validation is None:
            name += f", fold {self.fold.number + 1}"  # a validation set is not a fold
        values[-1] += f" ({outcome.seconds:.1f} s)"
        tell_fit(f"{name}, C={C:g}", values)


def _crew_to_measure(path: ModelPath, held_out: Part) -> Crew:
    """Threads that measure a model, each with BLAS on one thread.

    BLAS's own threads stay awake for a while after a product, at the cost of those that train next:
    the search over 45 values of C on CLINC150 took 8.3 seconds with them, and 3.7 without.
    """
    problem = path.solver_path.problem
    return crew_for(len(held_out.y) * problem.storage.width * problem.n_classes)


def _distances(path: ModelPath, model: TopKClassifier) -> NDArray | None:
    """How far each class of the path's last model is from its optimum, if that can be told.

    Only the classes of a separable loss have distances of their own.
    """
    problem, rows, solution = path.solver_path.at(path.last_C), path.rows, path.solver_path.last
    if solution is None or model.multilabel_ or not (problem.keeps_duals and rows.in_memory):
        return None
    if problem.free_intercept or not problem.loss.separable:
        return None
    path.solver_path.fill_duals()
    last = LastFit(solution, problem.loss, problem.costs, model.classes_, rows)
    return distances_of_classes(last, constant_feature(model))


class PathsRunner(Protocol):
    """Makes the fits of searches in place of this process's threads: a cluster does."""

    def advance(self, tasks: list[tuple[SearchPath, list[float]]]) -> None: ...
    def fit_path(self, model: Any, data: Part, Cs: list[float]) -> list[Any]: ...


PATHS_RUNNER: ContextVar[PathsRunner | None] = ContextVar("PATHS_RUNNER", default=None)


def run_paths(
    paths: list[SearchPath], Cs_of: dict[int, list[float]], n_classes: int, n_jobs: int | None
) -> None:
    """Advance every path over its family's values of C, as many at a time as memory allows."""
    tasks = [path for path in paths if Cs_of.get(path.family)]
    if not tasks:
        return
    if (runner := PATHS_RUNNER.get()) is not None:
        runner.advance([(path, Cs_of[path.family]) for path in tasks])
        return
    need = max(path.fold.bytes_needed(n_classes) for path in tasks)
    jobs = min(effective_n_jobs(n_jobs), len(tasks), _how_many_fit(need))
    with _one_convergence_warning_later(), _blas_threads_for(jobs):
        Parallel(n_jobs=jobs, require="sharedmem")(
            delayed(path.advance)(Cs_of[path.family]) for path in tasks
        )


def fit_family(family: TopKClassifier, data: Part, Cs: list[float]) -> list[TopKClassifier]:
    """One model for each C."""
    if (runner := PATHS_RUNNER.get()) is not None:
        return runner.fit_path(family, data, Cs)
    return family.fit_path(data.X, data.y, Cs, data.weight)


def finished_part(paths: list[SearchPath], Cs_of: dict[int, list[float]]) -> list[SearchPath]:
    """What an interrupted search can choose from: fits on the same folds, for whole ranges of C.

    ``Cs_of`` are the values that each family was to go through. Folds that were cut are left out,
    and so are families without a whole fold. If there is none at all, or only one fold, the first
    fold counts as far as it got.
    """
    first = [path for path in paths if path.fold.number == paths[0].fold.number and path.outcomes]
    whole = [path for path in paths if set(Cs_of[path.family]) <= set(path.outcomes)]
    families = {path.family for path in whole}
    folds = [{path.fold.number for path in whole if path.family == each} for each in families]
    # Families go through the folds in the same order: the first of them is common to all.
    common = set.intersection(*folds) if folds else set()
    if len(common) < 2:
        return first
    return [
        replace(path, outcomes={C: path.outcomes[C] for C in Cs_of[path.family]})
        for path in whole
        if path.fold.number in common
    ]


def in_folder(family: TopKClassifier, name: str) -> TopKClassifier:
    """A family's classifier for one path of fits, with a folder of checkpoints of its own."""
    folder = None if family.checkpoint is None else os.path.join(family.checkpoint, name)
    return TopKClassifier(**{**family.get_params(), "checkpoint": folder})


def duals_stay_in_memory(folds: list[Fold], families: int, n_classes: int) -> bool:
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
