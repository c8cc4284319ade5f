"""The linear classifier."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from shortlist.estimators.callbacks import CallbackSupportMixin, train_with_callbacks
from shortlist.estimators.convergence import warn_unless_converged
from shortlist.estimators.fitted import (
    adopt,
    all_or_nothing,
    common_meta,
    restore_common,
    train_estimator,
)
from shortlist.estimators.multilabel import as_indicator, hit_rate, is_indicator
from shortlist.estimators.paths import check_path, copy_fitted, follow_path
from shortlist.estimators.shortlists import ShortlistClassifier
from shortlist.estimators.training import (
    check_input,
    check_parameters,
    check_scale,
    encode_targets,
    loss_of,
    make_costs,
    make_rows,
    takes_several_labels,
)
from shortlist.metrics import topk_accuracy
from shortlist.metrics._inputs import columns_of_labels
from shortlist.solvers.duals import may_be_changed
from shortlist.solvers.memory import check_memory
from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import State
from shortlist.solvers.run import Callback
from shortlist.solvers.train import Solution


class TopKClassifier(CallbackSupportMixin, ShortlistClassifier):
    """Linear classifier trained for its shortlist of k labels, with a certificate.

    Minimises  1/2 |W|^2 + C sum_i w_i L(y_i, W'x_i)  to a relative duality gap of at most
    ``tol``. There is no step size to tune.

    Parameters
    ----------
    loss : {"entropy", "smooth_hinge", "hinge", "truncated_entropy", "ova_hinge", \
            "ova_smooth_hinge", "ova_logistic", "softmax"}, default="entropy"
        See :func:`shortlist.losses.table`. "entropy" at k=1 is softmax regression.
    k : int, default=1
        Size of the shortlist, at most the number of classes less one. Sets the loss (one-vs-all
        losses excepted), the length of ``predict_topk`` and the accuracy that ``score`` reports.
    variant : {"alpha", "beta"}, default="alpha"
        Which top-k simplex bounds the duals; both are the same at k=1.
    smoothing : float, default=1.0
        gamma of the smoothed hinges.
    C : float, default=1.0
        Weight of the loss against the regularisation, as in scikit-learn's linear models.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_epochs : int, default=1000
        Upper bound on passes over the data.
    fit_intercept : bool, default=True
        Whether to add a constant feature. The intercept is regularised like every weight.
    intercept_scaling : float, default=1.0
        Value of the constant feature; larger values regularise the intercept less.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with ``sample_weight``. Not for an indicator of labels.
    warm_start : bool, default=False
        Go on from the duals of the last ``fit`` when the data has the same shape and labels.
    random_state : int, RandomState or None, default=None
        Seeds the order of visits.
    verbose : int, default=0
        1 shows progress: a live line on a terminal, plain lines elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; the column numbers if y was an indicator.
    multilabel_ : bool
        Whether y was an indicator of several right labels.
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Epochs taken.
    result_ : Result
        The certificate: primal, dual, gap, relative_gap, epochs, seconds, status, history.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import TopKClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKClassifier("smooth_hinge", k=3, C=0.01, random_state=0).fit(X / 16, y)
    >>> model.predict_topk(X[:1] / 16).shape
    (1, 3)
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    """

    def __init__(
        self,
        loss: str = "entropy",
        *,
        k: int = 1,
        variant: str = "alpha",
        smoothing: float = 1.0,
        C: float = 1.0,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.k = k
        self.variant = variant
        self.smoothing = smoothing
        self.C = C
        self.tol = tol
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = takes_several_labels(self)
        return tags

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on X (n_samples, n_features), dense or CSR, and labels y of any type.

        y may also be an indicator matrix (n_samples, n_classes), dense or sparse, of several right
        labels per example, for the hinge losses and the entropy at k=1. Examples without any right
        label, or with fewer than k wrong ones, do not count.

        With ``X_val`` and ``y_val`` the history also records the top-k accuracy on them.
        ``callback`` is called with a :class:`shortlist.solvers.Progress` after every epoch and
        ends training by returning True; scikit-learn's own callbacks, set with
        ``set_callbacks`` (scikit-learn 1.9 and later), are told of every epoch too. Ctrl-C keeps
        the model reached so far.
        """
        problem = self._problem(X, y, sample_weight)
        accuracy = self._accuracy_on(X_val, y_val)
        state = self._warm_state(problem)
        solution = train_with_callbacks(
            self,
            lambda told: train_estimator(self, problem, self.C, state, told, accuracy),
            callback,
            self._attributes,
            X=X,
            y=y,
            metadata={} if sample_weight is None else {"sample_weight": sample_weight},
        )
        self._adopt(solution)
        if self.warm_start:
            self._state, self._trained_loss = solution.state, problem.loss
            self._trained_labels = problem.costs.y
        warn_unless_converged(solution.result, self.C, self.tol)
        return self

    def fit_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        Cs: Iterable[float],
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callable[["TopKClassifier"], object] | None = None,
    ) -> list["TopKClassifier"]:
        """Fit for every C in ``Cs``, each from the duals of the one before.

        This costs far less than as many fits. The duals stay feasible whatever C, so every
        solution is certified like a fit of its own.
        Values are visited in increasing order and returned in the order given, as one fitted
        classifier per C. ``callback`` is called with each as it is ready and ends the path by
        returning True; Ctrl-C ends it too. The models reached so far are returned then. The estimator itself stays as it is.
        """
        wanted = check_path(Cs)
        checked = clone(self).set_params(C=1.0)  # checks leave their marks there, not here
        problem = checked._problem(X, y, sample_weight)

        def model_of(C: float, solution: Solution) -> "TopKClassifier":
            model = clone(self).set_params(C=C)
            copy_fitted(
                checked, model, "classes_", "multilabel_", "n_features_in_", "feature_names_in_"
            )
            model._adopt(solution)
            warn_unless_converged(solution.result, C, self.tol)
            return model

        return follow_path(
            problem,
            wanted,
            lambda step, C, state: train_estimator(self, step, C, state, None),
            model_of,
            callback,
        )

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Check everything the user gave and set classes_; shared by fit and fit_path."""
        check_parameters(self)
        several = is_indicator(y)
        X, y = check_input(self, X, y=y, ensure_min_samples=2, multi_output=several)
        loss = loss_of(self, several)
        classes, codes, weights = encode_targets(X, y, loss, sample_weight, self.class_weight)
        check_memory(X, len(classes), loss.sparse_duals)
        costs = make_costs(codes, weights, float(self.C))
        rows = make_rows(X, self.intercept_scaling if self.fit_intercept else 0.0)
        check_scale(rows, costs)
        self.classes_, self.multilabel_ = classes, several
        return Problem(rows, costs, len(classes), loss)

    def _warm_state(self, problem: Problem) -> State | None:
        state: State | None = getattr(self, "_state", None)
        if not self.warm_start or state is None:
            return None
        if state.duals.shape != (problem.rows.n, problem.n_classes):
            return None
        if state.duals.dtype != problem.rows.dtype or self._trained_loss != problem.loss:
            return None
        if not np.array_equal(self._trained_labels, problem.costs.y):
            return None  # the duals belong to other labels and need not be feasible
        if not (may_be_changed(state.duals) and state.starts.flags.writeable):
            return None  # mapped from a file, and not for writing
        state.weights = problem.rows.rebuild(state.duals, problem.costs.cost)
        return state

    def _accuracy_on(self, X_val: Any, y_val: Any) -> Callable[[NDArray], float] | None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        if X_val is None:
            return None
        X_val = check_input(self, X_val, reset=False)
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        if self.multilabel_:
            y_val = as_indicator(y_val, X_val.shape[0], len(self.classes_))
        else:
            y_val = column_or_1d(y_val)
            check_consistent_length(X_val, y_val)
            # As column numbers: labels that cannot be compared are refused before training.
            y_val = columns_of_labels(
                y_val, self.classes_, X_val.shape[0], len(self.classes_), name="y_val"
            )
        columns = np.arange(len(self.classes_))

        def accuracy(weights: NDArray) -> float:
            scores = X_val @ weights[:-1] + bias * weights[-1]
            if self.multilabel_:
                return hit_rate(y_val, scores, self.k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return float(topk_accuracy(y_val, scores, k=self.k, labels=columns))

        return accuracy

    def _attributes(self, weights: NDArray) -> dict[str, Any]:
        """What a model with these weights predicts from."""
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        return {
            # A copy in any shape: the transpose of a single row is a view, and training goes on.
            "coef_": np.array(weights[:-1].T, order="C"),
            "intercept_": weights[-1] * weights.dtype.type(bias),
        }

    def _adopt(self, solution: Solution) -> None:
        adopt(self, self._attributes(solution.weights), solution.result)

    def _scores(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        X = check_input(self, X, reset=False)
        # For a CSR matrix too the product with an array is an array.
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        return {"coef": self.coef_, "intercept": self.intercept_}, common_meta(self)

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> "TopKClassifier":
        model = cls(**meta["params"])
        model.coef_, model.intercept_ = arrays["coef"], arrays["intercept"]
        restore_common(model, meta)
        return model
