"""The linear classifier with C, and the loss, chosen by top-k accuracy for every k at once."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from shortlist.estimators.cv_folds import Fold, Part, check_folds, folds_of, joined
from shortlist.estimators.cv_grid import Grid, grid_of
from shortlist.estimators.cv_options import check_extensions, families_of, refit_on, usable_ks
from shortlist.estimators.cv_paths import Path, duals_fit, finished_part, run_paths
from shortlist.estimators.cv_results import (
    results_of,
    warn_of_interrupt,
    warn_of_open_edges,
    warn_of_unfinished,
)
from shortlist.estimators.fitted import all_or_nothing
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.multilabel import is_indicator
from shortlist.estimators.shortlists import ShortlistClassifier
from shortlist.estimators.training import check_input, encode_labels, loss_of, seed_of
from shortlist.metrics._inputs import columns_of_labels
from shortlist.projections.rows import check_k


def _chosen_gives_probabilities(search: "TopKClassifierCV") -> bool:
    if hasattr(search, "estimators_"):
        models = [search.model_for(search.k)]
    else:
        models = families_of(search)
    for model in models:
        _ = model.predict_proba  # raises the AttributeError that says why not
    return True


class TopKClassifierCV(ShortlistClassifier):
    """:class:`TopKClassifier` with C chosen for each k by cross-validated top-k accuracy.

    On every fold one path of warm-started fits goes through all values of C; each fit is measured
    at all ``ks`` at once. For every k, the C with the best mean accuracy is chosen, of equals the
    smallest (the strongest regularisation), and a model is trained with it. Where the best C is
    at an end of the grid, the grid grows there.

    Parameters
    ----------
    loss, k, variant, smoothing, tol, max_epochs, fit_intercept, intercept_scaling, class_weight
        Those of :class:`TopKClassifier`. ``k`` is the k of the loss; ``ks`` are the lengths of
        shortlists to choose models for.
    Cs : list of float or int, default=9
        Values of C, or how many to space evenly in logarithm from 1e-5 to 1e3.
    ks : list of int, default=(1, 3, 5, 10)
        Values of k at or above the number of classes are left out, with a warning: a shortlist
        of all labels is always right.
    cv : int, splitter, list of splits or None, default=None
        As in scikit-learn; None means 5 stratified folds. For one given validation set use
        :class:`~sklearn.model_selection.PredefinedSplit`, or ``fit(X, y, X_val=, y_val=)``.
    losses : list of str or dict, default=None
        Loss families to search instead of ``loss``: names, or dictionaries of parameters such as
        ``{"loss": "smooth_hinge", "k": 5}``. The best family and C are chosen for each k; of
        equals the first listed.
    refit : {"auto", "all", "train"}, default="auto"
        What the final models are trained on: all examples (including ``X_val``), or the training
        part of the single split, in which case the models of the search are used as they are.
        "auto" is "train" if ``X_val`` is given, the paper's protocol, and "all" otherwise.
    max_extensions : int, default=4
        How many values of C may be added at either end of the grid, one at a time, while the
        best is at that end and adding gains accuracy.
    n_jobs : int or None, default=None
        Fits at a time, in threads (training runs without the interpreter's lock); fewer if
        memory is short. None means 1 unless in a ``joblib.parallel_config`` context.
    random_state : int, RandomState or None, default=None
        Seeds the order of visits, the same for all fits.
    verbose : int, default=0
        1 writes a line for every fit of the search, 2 shows progress within fits too.
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
        The chosen family for each k: loss, k, variant, smoothing and what else it set.
    estimators_ : dict
        The fitted :class:`TopKClassifier` for each k. Equal choices share one model.
    ks_ : tuple of int
        The ks models were chosen for.
    cv_results_ : dict
        One table of the search, a column each; ``pandas.DataFrame(cv_results_)`` shows it. A row
        is a family ("loss", "k", "variant", "smoothing") at a "C" with "mean_top<k>" and
        "std_top<k>" accuracy over the folds for each k, the seconds of training ("mean_seconds")
        and the largest "relative_gap" over the folds.
    mean_scores_, std_scores_ : ndarray of shape (rows of the table, n_ks)
        The accuracies of that table as matrices.
    interrupted_ : bool
        Whether Ctrl-C ended the search early.
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    ``predict``, ``decision_function``, ``predict_proba`` and ``score`` use the model chosen for
    the estimator's own ``k``, ``predict_topk(X, k)`` the one chosen for that k; where that is not
    among ``ks``, the one for the nearest.

    ``sample_weight`` counts in training and in the accuracies. If a training fold lacks a class,
    its held-out examples of that class count as errors, with a warning. If it has too few classes
    for the k of the loss, that is an error.

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
        Cs: Any = 9,
        ks: Sequence[int] = (1, 3, 5, 10),
        cv: Any = None,
        losses: Sequence[Any] | None = None,
        refit: str = "auto",
        max_extensions: int = 4,
        n_jobs: int | None = None,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
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
        self.Cs = Cs
        self.ks = ks
        self.cv = cv
        self.losses = losses
        self.refit = refit
        self.max_extensions = max_extensions
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
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

        ``X_val`` and ``y_val`` replace cross-validation by one given validation set; ``groups``
        are passed to the splitter. Ctrl-C ends the search: the models are then chosen from the fits
        that were finished, and trained.
        """
        if is_indicator(y):
            raise ValueError(
                "TopKClassifierCV takes one label per example. For an indicator of several, search "
                "over TopKClassifier with scikit-learn's GridSearchCV, or use its fit_path."
            )
        grid = grid_of(self.Cs)
        limit = check_extensions(self.max_extensions)
        families = families_of(self)
        refit = refit_on(self.refit, X_val is not None)
        data = self._validated(X, y, sample_weight)
        classes, _ = encode_labels(data.y)
        for family in families:
            loss_of(family).check_classes(len(classes))
        self.ks_ = usable_ks(self.ks, len(classes))
        if X_val is None and y_val is None:
            folds = folds_of(self.cv, data, groups)
        else:
            folds = [Fold(0, data, None, self._validation_part(X_val, y_val, classes))]
        if refit == "train" and len(folds) != 1:
            raise ValueError(
                f"refit='train' needs a single split into training and validation; cv makes "
                f"{len(folds)}. Use refit='all', or give X_val and y_val."
            )
        check_folds(folds, families, classes)
        grids, paths = self._search(folds, families, grid, limit, len(classes), refit == "train")
        results = results_of(paths, families, self.ks_)
        self.cv_results_ = results.table()
        self.mean_scores_, self.std_scores_ = results.means, results.stds
        if self.interrupted_:
            warn_of_interrupt(results, len(folds))
        else:
            warn_of_unfinished(results, self.tol)
            warn_of_open_edges(grids, self.ks_)
        chosen = results.chosen()
        if refit == "train":
            path_of = {path.family: path for path in paths}
            models = {at: path_of[at[0]].models[at[1]] for at in set(chosen.values())}
        else:
            models = self._refitted(chosen, families, data, folds)
        self._adopt(chosen, models)
        return self

    # --- what the user gave ------------------------------------------------------------------

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> Part:
        X, y = check_input(self, X, y=y, ensure_min_samples=2)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return Part(X, y, sample_weight)

    def _validation_part(self, X_val: Any, y_val: Any, classes: NDArray) -> Part:
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val go together; {missing} is missing")
        X_val = check_input(self, X_val, reset=False)
        y_val = column_or_1d(y_val)
        check_consistent_length(X_val, y_val)
        # Labels that cannot be compared are refused here, not after the first fits.
        columns_of_labels(y_val, classes, len(y_val), len(classes), name="y_val")
        return Part(X_val, y_val, None)

    # --- the search --------------------------------------------------------------------------

    def _search(
        self,
        folds: list[Fold],
        families: list[TopKClassifier],
        Cs: list[float],
        limit: int,
        n_classes: int,
        keep_models: bool,
    ) -> tuple[list[Grid], list[Path]]:
        """Rounds of fits, all families and folds together, until no grid asks for more."""
        self._seed = seed_of(self.random_state)
        keep_warm = limit > 0 and duals_fit(folds, len(families), n_classes)
        grids = [Grid(Cs, limit) for _ in families]
        paths = [
            Path(
                number,
                self._with_folder(family, f"family {number}, fold {fold.number}"),
                fold,
                self.ks_,
                keep_models,
                keep_warm,
                self.verbose,
            )
            for number, family in enumerate(families)
            for fold in folds
        ]
        self.interrupted_ = False
        while any(pending := [grid.pending() for grid in grids]):
            try:
                run_paths(paths, dict(enumerate(pending)), n_classes, self.n_jobs)
            except KeyboardInterrupt:
                # The rounds before are whole; of the first one some folds may be.
                asked = [list(grid.scores) or pending[i] for i, grid in enumerate(grids)]
                finished = finished_part(paths, dict(enumerate(asked)))
                if not finished:
                    raise
                self.interrupted_ = True
                return grids, finished
            for number, grid in enumerate(grids):
                own = [path for path in paths if path.family == number]
                for C in own[0].outcomes:
                    grid.scores[C] = np.array([path.outcomes[C].accuracies for path in own])
        return grids, paths

    def _with_folder(self, family: TopKClassifier, name: str) -> TopKClassifier:
        """A family's classifier for one path of fits, with a folder of checkpoints of its own."""
        folder = None if self.checkpoint is None else os.path.join(self.checkpoint, name)
        changes = {"random_state": self._seed, "checkpoint": folder}
        return TopKClassifier(**{**family.get_params(), **changes})

    def _refitted(
        self,
        chosen: dict[int, tuple[int, float]],
        families: list[TopKClassifier],
        data: Part,
        folds: list[Fold],
    ) -> dict[tuple[int, float], TopKClassifier]:
        held_out = folds[0].held_out
        if isinstance(held_out, Part):
            data = joined(data, held_out)
        models = {}
        for number in sorted({family for family, _ in chosen.values()}):
            Cs = sorted({C for family, C in chosen.values() if family == number})
            family = self._with_folder(families[number], f"family {number}, refit")
            for model in family.fit_path(data.X, data.y, Cs, data.weight):
                if model.result_.status == "interrupted":
                    raise KeyboardInterrupt
                models[number, model.C] = model
        return models

    def _adopt(
        self,
        chosen: dict[int, tuple[int, float]],
        models: dict[tuple[int, float], TopKClassifier],
    ) -> None:
        for model in models.values():
            # Asked alone, a chosen model checks the names of columns as this estimator does.
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
        self.estimators_ = {k: models[at] for k, at in chosen.items()}
        self.C_ = {k: C for k, (_, C) in chosen.items()}
        self.losses_ = {
            k: {name: getattr(model, name) for name in ("loss", "k", "variant", "smoothing")}
            for k, model in self.estimators_.items()
        }
        self.classes_ = next(iter(models.values())).classes_

    # --- the chosen models -------------------------------------------------------------------

    def model_for(self, k: int) -> TopKClassifier:
        """The classifier chosen for shortlists of k, or for the nearest k that one is chosen for.

        Of two equally near the smaller.
        """
        nearest = min(self.estimators_, key=lambda chosen: (abs(chosen - k), chosen))
        return self.estimators_[nearest]

    def _scores(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return self.model_for(self.k)._scores(X)

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
        check_is_fitted(self)
        return self.model_for(self.k).predict_proba(X)

    @available_if(_chosen_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> NDArray:
        """The logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    # --- saving ------------------------------------------------------------------------------

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        params = {**self.get_params(deep=False), "checkpoint": None}
        if not (params["cv"] is None or isinstance(params["cv"], Integral)):
            warnings.warn(
                "cv is a splitter or a list of splits; it is not saved and will be None on loading",
                UserWarning,
                stacklevel=2,
            )
            params["cv"] = None
        models: list[TopKClassifier] = []
        for model in self.estimators_.values():
            if not any(model is other for other in models):
                models.append(model)
        meta: dict[str, Any] = {
            "params": params,
            "classes": self.classes_,
            "n_features_in": self.n_features_in_,
            "models": models,
            "ks": self.ks_,
            "chosen": [
                next(i for i, other in enumerate(models) if other is self.estimators_[k])
                for k in self.ks_
            ],
            "table": self.cv_results_,
        }
        if hasattr(self, "feature_names_in_"):
            meta["feature_names_in"] = self.feature_names_in_
        return {"mean_scores": self.mean_scores_, "std_scores": self.std_scores_}, meta

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> "TopKClassifierCV":
        search = cls(**meta["params"])
        search.mean_scores_, search.std_scores_ = arrays["mean_scores"], arrays["std_scores"]
        search.n_features_in_ = meta["n_features_in"]
        if "feature_names_in" in meta:
            search.feature_names_in_ = np.asarray(meta["feature_names_in"], dtype=object)
        search.ks_ = tuple(meta["ks"])
        search.cv_results_ = meta["table"]
        models = meta["models"]
        chosen = {
            k: (number, models[number].C)
            for k, number in zip(search.ks_, meta["chosen"], strict=True)
        }
        search._adopt(chosen, {(i, model.C): model for i, model in enumerate(models)})
        return search
