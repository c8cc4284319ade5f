"""The linear classifier."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from shortlist._progress import tell
from shortlist.estimators.callbacks import CallbackSupportMixin, with_callbacks
from shortlist.estimators.certified import CertifiedShortlists
from shortlist.estimators.examples import examples_of
from shortlist.estimators.fitted import (
    accuracy_of_scores,
    all_or_nothing,
    fit_model,
    is_given,
    meta_of_fit,
    restore_fit,
)
from shortlist.estimators.inputs import check_input
from shortlist.estimators.normalization import normalized
from shortlist.estimators.parameters import constant_feature, loss_of, takes_several_labels
from shortlist.estimators.paths import PathMixin
from shortlist.estimators.problem import TrainedClassifier
from shortlist.estimators.shortlists import folded, unfolded
from shortlist.estimators.updates import UpdateMixin
from shortlist.estimators.warm_starts import LoadedFit, Rows, starts_from_weights
from shortlist.losses import Loss
from shortlist.solvers.records.run import Callback
from shortlist.solvers.storage import Storage


class TopKClassifier(
    CertifiedShortlists, UpdateMixin, PathMixin, CallbackSupportMixin, TrainedClassifier
):
    """Linear classifier trained for its shortlist of k labels, with a certificate.

    Minimises  1/2 |W|^2 + C sum_i w_i L(y_i, W'x_i)  to a relative duality gap of at most
    ``tol``. There is no step size to tune.

    Parameters
    ----------
    loss : str, default="entropy"
        One of :func:`shortlist.losses.names`, such as "smooth_hinge" or "hinge";
        :func:`shortlist.losses.table` says what each is. "entropy" at k=1 is softmax regression.
    k : int, default=1
        Size of the shortlist, at most the number of classes less one. Sets the loss (one-vs-all
        losses excepted), the length of ``predict_topk`` and the accuracy that ``score`` reports.
    variant : {"alpha", "beta", "printed"}, default="alpha"
        Which top-k simplex bounds the duals; all are the same at k=1. "printed", for the hinges, is
        alpha as the paper prints it.
    smoothing : float, default=1.0
        gamma of the smoothed hinges.
    margins : "ldam", array-like or None, default=None
        For the hinges: by how much a label is to lead, 1 by default. Numbers of shape (n_classes,)
        in the order of ``classes_``, one for each label, or (n_classes, n_classes), one for each
        label (row) and wrong label. "ldam" makes them proportional to n_y^(-1/4), n_y the number of
        training examples of the label, the largest 1: rare classes are asked to lead by more.
    rank_weights : array-like or None, default=None
        For the hinges: weights of the largest, second largest, ... violation of a margin, in
        place of 1/k for each of k. They do not increase and are scaled to sum to 1. This is the
        ordered weighted loss of Usunier et al. (variant "beta"); see
        :func:`shortlist.losses.mixture_weights` for several k at once. For the mixtures: the
        shares of each k, as that function makes them. ``k`` then only sets the length of the
        shortlist.
    C : float, default=1.0
        Weight of the loss against the regularisation, as in scikit-learn's linear models. With
        two classes and a loss that is not one-vs-all, half of scikit-learn's C gives
        scikit-learn's model: both classes have weights of their own, of half the size.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_epochs : int, default=1000
        Upper bound on passes over the data.
    fit_intercept : bool or "free", default=True
        Whether to add a constant feature, whose weights are regularised like all others. "free":
        an intercept that is not regularised, as in scikit-learn's LogisticRegression; it is trained
        by descents, and certified too.
    intercept_scaling : float, default=1.0
        Value of the constant feature; larger values regularise the intercept less.
    normalize : {"l2"} or None, default=None
        "l2" divides every row by its Euclidean norm, in training and in every prediction. It is
        part of the model and saved with it.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with ``sample_weight``. Not for an indicator of labels.
    warm_start : bool, default=False
        Go on from the duals of the last ``fit`` when the data has the same shape and labels. A
        loaded model, or one that a cluster trained, goes on from its weights, if the loss, the
        classes and the number of features are the same and the loss is smooth; C and the examples
        may be others.
    random_state : int, RandomState or None, default=None
        Seeds the order of visits.
    verbose : int, default=0
        1 shows progress: a live line on a terminal, plain lines elsewhere.
    memory_limit : str, int or None, default=None
        "4GB", or a number of bytes, that the process's resident set is kept below. X may then be a
        memory map (``np.load(..., mmap_mode="r")``) or ``read_dataset(..., on_disk=True)``, larger
        than memory: its rows are read in pieces, and duals that do not fit are mapped or not kept.
    checkpoint : path-like or None, default=None
        A file to keep training in, so that a process that was killed loses at most
        ``checkpoint_every`` seconds and the step under way: the same ``fit`` in another process
        goes on from there.
        It is data, checked when it is read, and refused if data or parameters differ. It stays
        when training has ended: delete it then.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints. They are written between blocks of visits or steps.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; the column numbers if y was an indicator.
    multilabel_ : bool
        Whether y was an indicator of several right labels.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) of two classes
    intercept_ : ndarray of shape (n_classes,), or (1,) of two classes
        ``decision_function`` is ``X @ coef_.T + intercept_``.
    n_iter_ : int
        Epochs taken.
    result_ : Result
        The certificate: primal, dual, gap, relative_gap, epochs, seconds, status, history.
    memory_plan_ : str
        How ``memory_limit`` is kept, where there is one: what is in memory and what on disk.

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
        margins: Any = None,
        rank_weights: Any = None,
        C: float = 1.0,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        fit_intercept: bool | str = True,
        intercept_scaling: float = 1.0,
        normalize: str | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: str | int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.loss = loss
        self.k = k
        self.variant = variant
        self.smoothing = smoothing
        self.margins = margins
        self.rank_weights = rank_weights
        self.C = C
        self.tol = tol
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.normalize = normalize
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = takes_several_labels(self)
        return tags

    @all_or_nothing
    @with_callbacks
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

        X may also be a torch tensor, in half precision (trained in float32), or a list of such
        shards.

        y may also be an indicator matrix (n_samples, n_classes), dense or sparse, of several right
        labels per example, for the hinge losses and the entropy at k=1. Examples without any right
        label, or with fewer than k wrong ones, do not count.

        With ``X_val`` and ``y_val`` the history also records the top-k accuracy on them.
        ``callback`` is called with a :class:`shortlist.solvers.Progress` after every epoch and
        ends training by returning True; scikit-learn's own callbacks, set with
        ``set_callbacks`` (scikit-learn 1.9 and later), are told of every epoch too. Ctrl-C keeps
        the model reached so far.
        """
        problem, rows, solution = fit_model(
            self, X, y, sample_weight, callback, validation=(X_val, y_val)
        )
        self._keep(problem, rows, solution)
        return self

    def starts_from_weights(self, multilabel: bool = False) -> bool:
        """Whether a warm start needs weights alone, which is what model files keep.

        Hinges start from their duals. ``multilabel``: for examples with several right labels.
        """
        return starts_from_weights(self.make_loss(multilabel))

    def _checked(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Any]:
        return examples_of(X, self.memory_limit).checked(self, y, loss.multilabel)

    def _storage(self, rows: Rows, n_classes: int, loss: Loss) -> Storage:
        examples = examples_of(rows.X, self.memory_limit)
        storage, plan = examples.open_storage(self, constant_feature(self), n_classes, loss)
        if plan is not None:
            self.memory_plan_ = plan
            if self.verbose:
                tell(f"memory limit {self.memory_limit}: {plan}")
        return storage

    def _accuracy_on(self, rows: Rows, X_val: Any, y_val: Any) -> Callable[[NDArray], float] | None:
        if not is_given(X_val, y_val):
            return None
        X_val = normalized(check_input(self, X_val, reset=False), self.normalize)
        bias = constant_feature(self)
        accuracy = accuracy_of_scores(self, X_val.shape[0], y_val)
        return lambda weights: accuracy(X_val @ weights[:-1] + bias * weights[-1])

    def _attributes(self, weights: NDArray, rows: Rows) -> dict[str, Any]:
        """The attributes from which a model with these weights predicts."""
        bias = constant_feature(self)
        # Always a copy: the transpose of a single row would be a view, which training goes on to
        # change.
        coef = np.array(weights[:-1].T, order="C")
        intercept = weights[-1] * weights.dtype.type(bias)
        return self._from_class_weights(coef, intercept)

    def _from_class_weights(self, coef: NDArray, intercept: NDArray) -> dict[str, NDArray]:
        """``coef_`` and ``intercept_`` from a row for each class."""
        if self._has_one_score:
            coef = folded(coef, self._separable)
            intercept = folded(intercept, self._separable)
        return {"coef_": coef, "intercept_": intercept}

    def _class_weights(self) -> tuple[NDArray, NDArray]:
        """Coefficients (n_classes, n_features) and intercepts, a row for each class also of two."""
        if not self._has_one_score:
            return self.coef_, self.intercept_
        return unfolded(self.coef_, self._separable), unfolded(self.intercept_, self._separable)

    def _scores(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return self._scores_of(normalized(check_input(self, X, reset=False), self.normalize))

    def _scores_of(self, X: Any) -> NDArray:
        """The scores of examples that are checked and normalised."""
        # For a CSR matrix too the product with an array is an array.
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return unfolded(scores.T, self._separable).T if self._has_one_score else scores

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        coef, intercept = self._class_weights()
        arrays = {"coef": coef, "intercept": intercept}
        if self._own_distances is not None:
            arrays["class_distances"] = self._own_distances
        return arrays, meta_of_fit(self)

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> "TopKClassifier":
        model = cls(**meta["params"])
        restore_fit(model, meta)
        model._loaded = LoadedFit(loss_of(model, model.multilabel_), model.classes_)
        model.__dict__.update(model._from_class_weights(arrays["coef"], arrays["intercept"]))
        model._own_distances = arrays.get("class_distances")
        return model
