"""What the classifiers share: fits that succeed whole or not at all, the run of the solver, and
what it leaves.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from shortlist.estimators.training import seed_of
from shortlist.solvers.problem import Problem
from shortlist.solvers.progress import with_progress
from shortlist.solvers.result import Result
from shortlist.solvers.rows import State
from shortlist.solvers.run import Callback
from shortlist.solvers.train import Solution, train

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """``fit``, but where it raises, the estimator is as it was: an earlier model stays whole."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, guarded)


def train_estimator(
    estimator: Any,
    problem: Problem,
    C: float,
    state: State | None,
    callback: Callback | None,
    accuracy: Callable[[NDArray], float] | None = None,
) -> Solution:
    """Solve ``problem`` with the estimator's tolerance, bounds, seed and verbosity."""
    title = f"{estimator.loss} k={estimator.k} C={C:g}"
    with with_progress(estimator.verbose, title, callback) as told:
        return train(
            problem,
            tol=estimator.tol,
            max_epochs=estimator.max_epochs,
            seed=seed_of(estimator.random_state),
            state=state,
            callback=told,
            accuracy=accuracy,
        )


def adopt(model: Any, attributes: dict[str, Any], result: Result) -> None:
    """Make ``model`` a fitted one."""
    for name, value in attributes.items():
        setattr(model, name, value)
    model.result_ = result
    model.n_iter_ = max(1, int(np.ceil(result.epochs)))


def common_meta(model: Any) -> dict[str, Any]:
    """What a model file says of either classifier."""
    meta: dict[str, Any] = {
        "params": model.get_params(),
        "classes": model.classes_,
        "multilabel": model.multilabel_,
        "n_features_in": model.n_features_in_,
        "n_iter": model.n_iter_,
        "result": model.result_.to_dict(),
    }
    if hasattr(model, "feature_names_in_"):
        meta["feature_names_in"] = model.feature_names_in_
    return meta


def restore_common(model: Any, meta: dict[str, Any]) -> None:
    """Set what :func:`common_meta` told, but the parameters."""
    model.classes_ = np.asarray(meta["classes"])
    model.multilabel_ = meta.get("multilabel", False)
    model.n_features_in_ = meta["n_features_in"]
    model.n_iter_ = meta["n_iter"]
    model.result_ = Result.from_dict(meta["result"])
    if "feature_names_in" in meta:
        model.feature_names_in_ = np.asarray(meta["feature_names_in"], dtype=object)
