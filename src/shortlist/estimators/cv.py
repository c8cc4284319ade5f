"""The linear classifier with C, and the loss, chosen by top-k accuracy for every k at once."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from shortlist._parameters import check_k
from shortlist.estimators.cv_checks import families_of, settings_of
from shortlist.estimators.cv_grid import Grid
from shortlist.estimators.cv_request import request_of
from shortlist.estimators.cv_results import (
    Results,
    results_of,
    rows_by_family,
    summary_of,
    warn_of_interrupt,
    warn_of_open_edges,
    warn_of_unfinished,
)
from shortlist.estimators.fitted import all_or_nothing, meta_of, restore_meta
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.parameters import takes_several_labels
from shortlist.estimators.shortlists import ShortlistClassifier
from shortlist.solvers.records.result import Result


def _chosen_gives_probabilities(search: "TopKClassifierCV") -> bool:
    if hasattr(search, "estimators_"):
        models = [search.model_for(search.k)]
    else:
        models = [model for model, _ in families_of(search)]
    for model in models:
        _ = model.predict_proba  # raises the AttributeError that says why not
    return True


class TopKClassifierCV(ShortlistClassifier):
    """:class:`TopKClassifier` with C chosen for each k by held-out top-k accuracy.

    On every fold one path of warm-started fits goes through all values of C; each fit is measured
    at all ``ks`` at once. For every k, the C with the best mean accuracy is chosen, of equals the
    smallest (the strongest regularisation), and a model is trained with it. Where the best C is
    at an end of the grid, the grid grows there.

    Parameters
    ----------
    loss, k, variant, smoothing, margins, rank_weights, tol, max_epochs, fit_intercept, \
            intercept_scaling, normalize, class_weight
        Those of :class:`TopKClassifier`. ``k`` is the k of the loss; ``ks`` are the lengths of
        shortlists to choose models for.
    Cs : list of float or int, default=9
        Values of C, or how many to space evenly in logarithm: up to 9 from 1e-5 to 1e3, the
        paper's range, more from 1e-6 to 1e5. ``Cs=45`` is ``10 ** linspace(-6, 5, 45)``, the grid
        of DINOv2's and DINOv3's linear probes.
    ks : list of int, default=(1, 3, 5, 10)
        Values of k at or above the number of classes are left out, with a warning: a shortlist
        of all labels is always right.
    cv : int, splitter, list of splits or None, default=None
        As in scikit-learn; None means 5 stratified folds (of an indicator of several labels, plain
        ones). For one given validation set use
        :class:`~sklearn.model_selection.PredefinedSplit`, or ``fit(X, y, X_val=, y_val=)``.
    losses : list of str or dict, default=None
        Loss families to search instead of ``loss``: names, or dictionaries of parameters such as
        ``{"loss": "smooth_hinge", "k": 5}``. The best family and C are chosen for each k; of
        equals the first listed.
    scoring : str, callable or None, default=None
        A scorer to choose by instead of top-k accuracy, as in scikit-learn: "balanced_accuracy"
        is the mean of per-class accuracies, "neg_log_loss" log loss. It chooses one C for all
        ``ks``. A callable is ``scorer(model, X, y)``; if it takes ``sample_weight``, it gets that
        of the held-out examples.
    refit : {"auto", "all", "train", "train+val"}, default="auto"
        What the final models are trained on: all examples (including ``X_val``; "train+val" says
        so), or the training part of the single split, in which case the models of the search are
        used as they are. "auto" is "train" if ``X_val`` is given, the paper's protocol, or
        ``shots``, and "all" otherwise.
    max_extensions : int, default=4
        How many values of C may be added at either end of the grid, one at a time, while the
        best is at that end and adding gains accuracy.
    patience : int or None, default=None
        Leave out the rest of the grid, the largest values of C, once so many in a row were worse
        than the best before them, for every k. None visits the whole grid.
    refine : int, default=0
        Coarse to fine: so many times, halve the distance, in log C, between the best C for each k
        and its neighbours. ``Cs=12, refine=2`` is as fine as ``Cs=45`` where it matters.
    shots : int or None, default=None
        Few-shot training: instead of folds, ``repeats`` random subsets with so many examples of
        each class, measured on ``X_val`` or else on all other examples. The table has mean and
        spread over the subsets. With ``refit="train"`` the models are those of the first subset.
    repeats : int, default=5
        How many such subsets.
    n_jobs : int or None, default=None
        Fits at a time, in threads (training runs without the interpreter's lock); fewer if
        memory is short. None means 1 unless in a ``joblib.parallel_config`` context.
    random_state : int, RandomState or None, default=None
        Seeds the order of visits, the same for all fits, and the subsets of ``shots``.
    verbose : int, default=0
        1 writes a line for every fit of the search, which on a terminal replaces the one before; 2
        shows progress within fits too.
    checkpoint : path-like or None, default=None
        A folder to keep finished and unfinished fits in, each as the ``checkpoint`` of
        :class:`TopKClassifier`: the same ``fit`` in another process goes on from there.
    checkpoint_every : float, default=60.0
        Seconds between two checkpoints of a fit.

    Attributes
    ----------
    C_ : dict
        The chosen C for each k.
    losses_ : dict
        The chosen family for each k: its entry of ``families_``.
    families_ : list of dict
        The families that were searched, in the order of ``losses``: loss, k, variant, smoothing
        and what else an entry of ``losses`` set.
    estimators_ : dict
        The fitted :class:`TopKClassifier` for each k. Equal choices share one model.
    coef_, intercept_, result_, n_iter_
        Those of the model chosen for the estimator's own ``k``.
    ks_ : tuple of int
        The ks models were chosen for.
    cv_results_ : dict
        One table of the search, a column each; ``pandas.DataFrame(cv_results_)`` shows it. A row
        is a family (its number in ``families_`` as "family"; "loss", "k", "variant", "smoothing")
        at a "C" with "mean_top<k>" and "std_top<k>" accuracy over the folds for each k, the
        seconds of training ("mean_seconds")
        and the largest "relative_gap" over the folds. "certified_top<k>" is the share of held-out
        shortlists that are provably those of the exact optimum; "mean_score" and "std_score" are
        those of ``scoring``. :meth:`summary` shows it as text.
    decided_ : dict
        For each k, whether exact optima at all values of C would have led to the same choice: the
        certified shortlists leave no other C a chance.
    mean_scores_, std_scores_ : ndarray of shape (rows of the table, n_ks)
        The accuracies of that table as matrices.
    interrupted_ : bool
        Whether Ctrl-C ended the search early.
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether y was an indicator of several right labels.

    Notes
    -----
    ``predict``, ``decision_function``, ``predict_proba`` and ``score`` use the model chosen for
    the estimator's own ``k``, ``predict_topk(X, k)`` the one chosen for that k; where that is not
    among ``ks``, the one for the nearest.

    ``sample_weight`` and ``class_weight`` count in training and in the accuracies. If a training
    fold lacks a class, its held-out examples of that class count as errors, with a warning. If it
    has too few classes for the k of the loss, that is an error.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import TopKClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = TopKClassifierCV(Cs=[0.01, 0.1, 1], ks=(1, 3), cv=3, random_state=0)
    >>> search = search.fit(X / 16, y)
    >>> sorted(search.C_)
    [1, 3]
    >>> search.predict_topk(X[:2] / 16, k=3).shape
    (2, 3)
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
        Cs: Any = 9,
        ks: Sequence[int] = (1, 3, 5, 10),
        cv: Any = None,
        losses: Sequence[Any] | None = None,
        scoring: Any = None,
        refit: str = "auto",
        max_extensions: int = 4,
        patience: int | None = None,
        refine: int = 0,
        shots: int | None = None,
        repeats: int = 5,
        n_jobs: int | None = None,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        normalize: str | None = None,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.loss = loss
        self.k = k
        self.variant = variant
        self.smoothing = smoothing
        self.margins = margins
        self.rank_weights = rank_weights
        self.Cs = Cs
        self.ks = ks
        self.cv = cv
        self.losses = losses
        self.scoring = scoring
        self.refit = refit
        self.max_extensions = max_extensions
        self.patience = patience
        self.refine = refine
        self.shots = shots
        self.repeats = repeats
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.normalize = normalize
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

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
        groups: ArrayLike | None = None,
    ) -> Self:
        """Search, then train the chosen models.

        X may be an array, a sparse matrix, a frame, a torch tensor or a list of such shards.
        ``X_val`` and ``y_val`` replace cross-validation by one given validation set; ``groups``
        are passed to the splitter. y may be an indicator matrix of several right labels per
        example, as for :meth:`TopKClassifier.fit`: a shortlist is then right if it holds one of
        them, and held-out examples without any do not count. Ctrl-C ends the search: the models
        are then chosen from the fits that were finished, and trained.
        """
        request = request_of(self, X, y, sample_weight, X_val, y_val, groups)
        paths, self.interrupted_ = request.fit_paths()
        results = results_of(paths, request.families, request.measure.ks)
        if self.interrupted_:
            warn_of_interrupt(results, len(request.folds))
        chosen = results.chosen_rows()
        models = request.final_models({results.rows[row] for row in chosen.values()}, paths)
        self._report(results, request.grids)
        self.families_ = settings_of(self, request.families)
        self._adopt(chosen, {k: models[results.rows[row]] for k, row in chosen.items()})
        return self

    def _report(self, results: Results, grids: list[Grid]) -> None:
        """The table of all fits, and warnings of fits or grids that ended too early."""
        self.ks_ = results.ks
        self.cv_results_ = results.table()
        self.mean_scores_, self.std_scores_ = (
            np.column_stack([self.cv_results_[f"{word}_top{k}"] for k in self.ks_])
            for word in ("mean", "std")
        )
        self.decided_ = results.decided()
        warn_of_unfinished(results, self.tol)
        if not self.interrupted_:
            warn_of_open_edges(grids, self.ks_)

    def _adopt(self, rows: dict[int, int], models: dict[int, TopKClassifier]) -> None:
        """Answer with these models from now on: for each k, a row of the table and its model."""
        for model in models.values():
            # A chosen model used by itself prepares its input as this estimator does.
            model.normalize = self.normalize
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
        self._chosen_rows = rows
        self.estimators_ = models
        self.C_ = {k: model.C for k, model in models.items()}
        numbers = self.cv_results_["family"]
        self.losses_ = {k: self.families_[numbers[row]] for k, row in rows.items()}
        one = next(iter(models.values()))
        self.classes_, self.multilabel_ = one.classes_, one.multilabel_

    def summary(self) -> str:
        """The search as text: accuracy, seconds and gap by C and k, and what was chosen.

        A star marks the choice for a k. For each k a line says how many of the validation
        shortlists are provably those of the exact optimum, and whether the choice of C is decided.
        """
        check_is_fitted(self)
        return summary_of(self)

    # --- the chosen models -------------------------------------------------------------------

    @property
    def _own(self) -> TopKClassifier:
        """The model chosen for the estimator's own k."""
        check_is_fitted(self)
        return self.model_for(self.k)

    @property
    def coef_(self) -> NDArray:
        """Weights (n_classes, n_features) of the model chosen for the estimator's own k."""
        return self._own.coef_

    @property
    def intercept_(self) -> NDArray:
        """Intercepts (n_classes,) of that model."""
        return self._own.intercept_

    @property
    def result_(self) -> Result:
        """The certificate of that model."""
        return self._own.result_

    @property
    def n_iter_(self) -> int:
        """Epochs that training that model took."""
        return self._own.n_iter_

    def rows_by_family(self) -> dict[int, NDArray]:
        """The rows of ``cv_results_`` for each family, by its number in ``families_``."""
        check_is_fitted(self)
        return rows_by_family(self.cv_results_)

    def chosen_row(self, k: int) -> int:
        """The row of ``cv_results_`` with the family and C chosen for a k of ``ks_``."""
        check_is_fitted(self)
        return self._chosen_rows[k]

    def check_trainable(self, n_classes: int, multilabel: bool = False) -> None:
        """As :meth:`TopKClassifier.check_trainable`, for every loss that is searched."""
        for _, loss in families_of(self, multilabel):
            loss.check_classes(n_classes)

    def model_for(self, k: int) -> TopKClassifier:
        """The classifier chosen for shortlists of k, or for the nearest k that one is chosen for.

        Of two equally near the smaller.
        """
        nearest = min(self.estimators_, key=lambda chosen: (abs(chosen - k), chosen))
        return self.estimators_[nearest]

    def _scores(self, X: ArrayLike) -> NDArray:
        return self._own._scores(X)

    def decision_function(self, X: ArrayLike) -> NDArray:
        """The ``decision_function`` of the model chosen for ``k``."""
        return self._own.decision_function(X)

    def _class_weights(self) -> tuple[NDArray, NDArray]:
        return self._own._class_weights()

    def predict_topk(self, X: ArrayLike, k: int | None = None, return_scores: bool = False) -> Any:
        """The k labels with the largest scores, best first, by the model chosen for that k.

        ``k`` defaults to the estimator's own. For a k that is not among ``ks``, the model chosen
        for the nearest is used, the smaller of two equally near.
        """
        check_is_fitted(self)
        k = check_k(self.k if k is None else k, len(self.classes_), "the number of classes")
        return self.model_for(k).predict_topk(X, k, return_scores)

    def certified_topk(self, X: ArrayLike, k: int | None = None) -> NDArray:
        """For which rows the shortlist is provably that of the exact optimum at the chosen C.

        See :meth:`TopKClassifier.certified_topk`; the model is the one chosen for that k.
        """
        check_is_fitted(self)
        k = check_k(self.k if k is None else k, len(self.classes_), "the number of classes")
        return self.model_for(k).certified_topk(X, k)

    @available_if(_chosen_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Class probabilities by the model chosen for the estimator's own k."""
        return self._own.predict_proba(X)

    @available_if(_chosen_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> NDArray:
        """The logarithm of :meth:`predict_proba`."""
        return self._own.predict_log_proba(X)

    # --- saving ------------------------------------------------------------------------------

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        meta = meta_of(self)
        params = meta["params"]
        for name, kept, what in (
            ("cv", Integral, "a splitter or a list of splits"),
            ("scoring", str, "a function"),
        ):
            if not (params[name] is None or isinstance(params[name], kept)):
                warnings.warn(
                    f"{name} is {what}; it is not saved and will be None on loading",
                    UserWarning,
                    stacklevel=2,
                )
                params[name] = None
        models: list[TopKClassifier] = []
        for model in self.estimators_.values():
            if not any(model is other for other in models):
                models.append(model)
        meta |= {
            "models": models,
            "ks": self.ks_,
            "chosen": [
                next(i for i, other in enumerate(models) if other is self.estimators_[k])
                for k in self.ks_
            ],
            "decided": [self.decided_[k] for k in self.ks_],
            "rows": [self._chosen_rows[k] for k in self.ks_],
            "families": self.families_,
            "table": self.cv_results_,
        }
        return {"mean_scores": self.mean_scores_, "std_scores": self.std_scores_}, meta

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> "TopKClassifierCV":
        search = cls(**meta["params"])
        search.mean_scores_, search.std_scores_ = arrays["mean_scores"], arrays["std_scores"]
        restore_meta(search, meta)
        search.ks_ = tuple(meta["ks"])
        search.cv_results_ = meta["table"]
        search.decided_ = dict(zip(search.ks_, meta["decided"], strict=True))
        search.families_ = meta["families"]
        models = [meta["models"][number] for number in meta["chosen"]]
        rows = dict(zip(search.ks_, meta["rows"], strict=True))
        search._adopt(rows, dict(zip(search.ks_, models, strict=True)))
        return search
