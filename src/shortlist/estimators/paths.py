"""Fits along a range of C: one solver path, one model for each value."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from shortlist._parameters import is_real
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.callbacks import fitted_attributes
from shortlist.estimators.checkpoints import Checkpoint, open_folder
from shortlist.estimators.fitted import adopt, title_of, warn_of_ending
from shortlist.estimators.parameters import seed_of
from shortlist.estimators.progress import with_progress
from shortlist.estimators.targets import check_overflow, make_costs
from shortlist.solvers.records.run import Callback
from shortlist.solvers.strategy.path import Path
from shortlist.solvers.strategy.train import Solution


def check_path(Cs: Any) -> list[float]:
    """The values of C as numbers, in the order given; errors name the value that is wrong."""
    if isinstance(Cs, str) or not isinstance(Cs, Iterable):
        raise TypeError(f"Cs must be a list of numbers; got {Cs!r}")
    wanted = list(Cs)
    if not wanted:
        raise ParameterError("Cs", "must hold at least one value")
    for C in wanted:
        if not is_real(C) or not 0 < float(C) < np.inf:
            problem = f" must be a positive finite number; got {C!r}"
            raise WordedError("every C in " + Setting("Cs") + problem)
    return [float(C) for C in wanted]


class ModelPath:
    """Models of one estimator on one data set, for values of C as they are asked for.

    The data is checked once.
    """

    def __init__(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        largest_C: float,
    ) -> None:
        # Run the checks on a copy: they set attributes, and the user's estimator must not change.
        self.checked = clone(estimator).set_params(C=1.0)
        self.estimator = estimator
        problem, self.rows = self.checked._problem(X, y, sample_weight)
        costs = problem.costs
        check_overflow(problem.storage, make_costs(costs.y, costs.cost, largest_C))
        seed = seed_of(estimator.random_state)
        self.solver_path = Path(problem, float(estimator.tol), float(estimator.max_epochs), seed)
        self.checkpoints = open_folder(estimator, self.checked, problem, X)
        self._last_checkpoint: Checkpoint | None = None

    @property
    def last_C(self) -> float:
        """The C of the last model; 0 before the first."""
        return self.solver_path.last_C

    def _restart(self) -> None:
        """Let the next model start cold."""
        path = self.solver_path
        if self._last_checkpoint is not None and path.last is not None:
            self._last_checkpoint.finish(path.last)
            self._last_checkpoint = None
        self.solver_path = Path(path.problem, path.tol, path.max_epochs, path.seed)

    def fit(self, C: float, callback: Callback | None = None) -> Any:
        """The fitted model at C, from the one before if that has a smaller C.

        A step down starts cold: on CLINC150 that takes as many epochs as from 3 to 10 times the C,
        and half as many as from 1000 times.
        """
        if self.last_C > C:
            self._restart()
        model = clone(self.estimator).set_params(C=C, checkpoint=None)
        with with_progress(model.verbose, title_of(model), callback) as told:
            solution = self._solve(C, told)
        # Attributes set by the checks: classes_, n_features_in_, feature_names_in_ and others.
        for name, value in fitted_attributes(self.checked).items():
            setattr(model, name, copy.copy(value))
        adopt(model, model._attributes(solution.weights, self.rows), solution.result)
        warn_of_ending(model, self.solver_path.problem, solution)
        return model

    def _solve(self, C: float, told: Callback | None) -> Solution:
        """The solution at C: that of an earlier process, whole or in part, or a new one."""
        if self.checkpoints is None:
            return self.solver_path.solve(C, told)
        checkpoint, before = self.checkpoints.at(C), self.solver_path.last
        saved = checkpoint.load()
        if isinstance(saved, Solution):
            return self.solver_path.adopt(C, saved)
        solution = self.solver_path.solve(C, told, keeper=checkpoint, resume=saved)
        if solution.result.status not in ("interrupted", "stopped"):
            # The next fit goes on from these duals; those before are not needed any more.
            if self._last_checkpoint is not None and before is not None:
                self._last_checkpoint.finish(before)
            self._last_checkpoint = checkpoint
        return solution


def follow_path(
    path: ModelPath, Cs: list[float], callback: Callable[[Any], object] | None
) -> list[Any]:
    """One model for every C, trained in increasing order and returned in the order given.

    After an interrupt, or when the callback returns True, those reached so far are returned.
    """
    models: dict[float, Any] = {}
    try:
        for C in sorted(set(Cs)):
            models[C] = path.fit(C)
            stop = callback is not None and callback(models[C]) is True
            if stop or models[C].result_.status == "interrupted":
                break
    except KeyboardInterrupt:  # between two fits; within one, training ends by itself
        if not models:
            raise
    return in_order_given(models, Cs)


def in_order_given(models: dict[float, Any], Cs: list[float]) -> list[Any]:
    """The models there are, in the order that their values of C were asked for."""
    returned: set[float] = set()
    answer = []
    for C in Cs:
        if C in models:
            # A value asked for twice gives two models, so that no two share their arrays.
            answer.append(copy.deepcopy(models[C]) if C in returned else models[C])
            returned.add(C)
    return answer


class PathMixin:
    """``fit_path`` for the classifiers."""

    def fit_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        Cs: Iterable[float],
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callable[[Self], object] | None = None,
    ) -> list[Self]:
        """Fit for every C in ``Cs``, each from the solution of the one before.

        This costs far less than as many fits, and every solution is certified like a fit of its
        own. Values are visited in increasing order and returned in the order given, as one fitted
        classifier per C. ``callback`` is called with each as it is ready and ends the path by
        returning True; Ctrl-C ends it too. The models reached so far are returned then. The
        estimator itself stays as it is. ``checkpoint`` names a folder here, with a file for
        each C.
        """
        wanted = check_path(Cs)
        return follow_path(ModelPath(self, X, y, sample_weight, max(wanted)), wanted, callback)
