"""What the classifiers share: fits that succeed whole or not at all, and what they leave."""

import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from shortlist.estimators import warm_starts
from shortlist.estimators.callbacks import told_to_scikit_learn
from shortlist.estimators.checkpoints import open_checkpoint
from shortlist.estimators.convergence import warn_unless_converged
from shortlist.estimators.parameters import seed_of
from shortlist.estimators.progress import with_progress
from shortlist.estimators.warm_starts import COLD, Start
from shortlist.metrics import topk_accuracy
from shortlist.metrics.checks import columns_of_labels
from shortlist.metrics.indicators import as_indicator, hit_rate
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import Keeper, Snapshot
from shortlist.solvers.records.result import Result
from shortlist.solvers.records.run import Callback
from shortlist.solvers.strategy.train import Solution, train

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


def fit_model(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    callback: Callback | None,
    *,
    validation: tuple[Any, Any] = (None, None),
) -> tuple[Problem, Any, Solution]:
    """Check the data, train ``model`` and make it a fitted one; what both classifiers' fit does.

    Returns the problem, the examples as they were checked, and the solution.
    """
    model._warn_if_chosen_by_own_score()
    problem, rows = model._problem(X, y, sample_weight)
    accuracy = model._accuracy_on(rows, *validation)
    checkpoint = open_checkpoint(model, problem, X)
    resume = checkpoint.snapshot() if checkpoint is not None else None
    start = warm_starts.of_fit(model, problem) if resume is None else COLD
    data = {"X": X, "y": y}
    data["metadata"] = {} if sample_weight is None else {"sample_weight": sample_weight}
    given = (model, problem, rows, start, callback, data)
    solution = train_model(*given, accuracy=accuracy, keeper=checkpoint, resume=resume)
    return problem, rows, solution


def train_model(
    model: Any,
    problem: Problem,
    rows: Any,
    start: Start,
    callback: Callback | None,
    data: dict[str, Any],
    *,
    accuracy: Callable[[NDArray], float] | None = None,
    keeper: Keeper | None = None,
    resume: Snapshot | None = None,
) -> Solution:
    """Train from ``start`` and make ``model`` a fitted one.

    ``data`` is what scikit-learn's callbacks are told of the user's data. The rest is as in
    ``train``.
    """
    attributes = partial(model._attributes, rows=rows)
    with (
        told_to_scikit_learn(model, callback, attributes, **data) as told,
        with_progress(model.verbose, title_of(model), told) as shown,
    ):
        solution = train(
            problem,
            tol=float(model.tol),
            max_epochs=float(model.max_epochs),
            seed=seed_of(model.random_state),
            state=start.state,
            weights=start.weights,
            callback=shown,
            accuracy=accuracy,
            keeper=keeper,
            resume=resume,
        )
        adopt(model, attributes(solution.weights), solution.result)
    warn_of_ending(model, problem, solution)
    return solution


def title_of(model: Any) -> str:
    """A fit in a line of progress."""
    return f"{model.loss} k={model.k} C={model.C:g}"


def warn_of_ending(model: Any, problem: Problem, solution: Solution) -> None:
    """Warn unless the fit converged."""
    squares, precision = problem.storage.kappa, solution.weights.dtype
    warn_unless_converged(solution.result, model.C, model.tol, squares, precision)


def adopt(model: Any, attributes: dict[str, Any], result: Result) -> None:
    """Make ``model`` a fitted one."""
    for name, value in attributes.items():
        setattr(model, name, value)
    model.result_ = result
    model.n_iter_ = max(1, int(np.ceil(result.epochs)))


def is_given(X_val: Any, y_val: Any) -> bool:
    """Whether there is validation data; ValueError if half of it is missing."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val go together: give both or neither")
    return X_val is not None


def accuracy_of_scores(model: Any, n_rows: int, y_val: Any) -> Callable[[NDArray], float]:
    """The top-k accuracy of scores (n_rows, n_classes); labels are checked before training."""
    m = len(model.classes_)
    if model.multilabel_:
        indicator = as_indicator(y_val, n_rows, m)
        return lambda scores: hit_rate(indicator, scores, model.k)
    labels = column_or_1d(y_val)
    check_consistent_length(np.empty(n_rows), labels)
    # Encode labels as column numbers. Labels of another type raise an error here.
    numbers = columns_of_labels(labels, model.classes_, n_rows, m, name="y_val")

    def accuracy(scores: NDArray) -> float:
        # Ties are warned of in results only: at weights of zero, where training begins, all tie.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(topk_accuracy(numbers, scores, k=model.k, labels=np.arange(m)))

    return accuracy


def meta_of(model: Any) -> dict[str, Any]:
    """The metadata that a model file keeps of every estimator."""
    meta: dict[str, Any] = {
        # A model file does not keep the path of its checkpoint.
        "params": {**model.get_params(deep=False), "checkpoint": None},
        "classes": model.classes_,
        "multilabel": model.multilabel_,
        "n_features_in": model.n_features_in_,
    }
    if hasattr(model, "feature_names_in_"):
        meta["feature_names_in"] = model.feature_names_in_
    return meta


def meta_of_fit(model: Any) -> dict[str, Any]:
    """The metadata of a classifier, which was trained once."""
    return {**meta_of(model), "n_iter": model.n_iter_, "result": model.result_.to_dict()}


def restore_meta(model: Any, meta: dict[str, Any]) -> None:
    """Set what :func:`meta_of` told, except the parameters."""
    model.classes_ = np.asarray(meta["classes"])
    model.multilabel_ = meta.get("multilabel", False)
    model.n_features_in_ = meta["n_features_in"]
    if "feature_names_in" in meta:
        model.feature_names_in_ = np.asarray(meta["feature_names_in"], dtype=object)


def restore_fit(model: Any, meta: dict[str, Any]) -> None:
    """Set what :func:`meta_of_fit` told, except the parameters."""
    restore_meta(model, meta)
    model.n_iter_, model.result_ = meta["n_iter"], Result.from_dict(meta["result"])
