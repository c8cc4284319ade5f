"""What the user asks of a search, checked before the first fit: families, ks, data and the rest."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from shortlist._parameters import check_k
from shortlist._progress import one_line_for_fits
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.callers import level_outside
from shortlist.estimators.cv_folds import (
    Fold,
    Part,
    check_folds,
    check_folds_of_several_labels,
    few_shot_folds,
    folds_of,
    joined_parts,
)
from shortlist.estimators.cv_grid import Grid, grid_of
from shortlist.estimators.cv_measure import Measure, scorer_of
from shortlist.estimators.cv_paths import (
    Choice,
    SearchPath,
    duals_stay_in_memory,
    finished_part,
    fit_family,
    in_folder,
    run_paths,
)
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.multilabel import is_indicator
from shortlist.estimators.normalization import normalized
from shortlist.estimators.training import (
    check_input,
    check_parameters,
    class_factors,
    encode_labels,
    seed_of,
)
from shortlist.losses import Loss
from shortlist.metrics._indicators import as_indicator
from shortlist.metrics._inputs import NO_COLUMN, columns_of_labels

# What a family in ``losses`` may not set: C is searched, and these belong to the whole search.
_NOT_PER_FAMILY = frozenset(
    {"C", "normalize", "warm_start", "random_state", "verbose", "checkpoint", "checkpoint_every"}
)

# What the chosen models are trained on: all examples, the first of several subsets, or nothing, as
# the models of the search are taken as they are.
RefitOn = Literal["all", "first", "nothing"]


@dataclass(frozen=True)
class Request:
    """Everything a search needs to know.

    The examples are checked and normalised, so that ``families`` are classifiers that do not
    normalise.
    """

    families: list[TopKClassifier]
    grids: list[Grid]
    measure: Measure
    data: Part
    folds: list[Fold]
    refit_on: RefitOn
    n_classes: int
    n_jobs: int | None
    verbose: int

    def fit_paths(self) -> tuple[list[SearchPath], bool]:
        """Make all fits of the search; see :meth:`_fit_paths`."""
        with one_line_for_fits(self.verbose):
            return self._fit_paths()

    def _fit_paths(self) -> tuple[list[SearchPath], bool]:
        """Rounds of fits, all families and folds together, until no grid asks for more.

        Returns the paths, and whether Ctrl-C ended them: then these are what was finished.
        """
        many_rounds = any(grid.limit or grid.patience or grid.refine for grid in self.grids)
        keep_warm = many_rounds and duals_stay_in_memory(
            self.folds, len(self.families), self.n_classes
        )
        keep_models = self.refit_on == "nothing"
        paths = [
            SearchPath(
                number,
                in_folder(family, f"family {number}, fold {fold.number}"),
                fold,
                self.measure,
                keep_models,
                keep_warm,
                self.verbose,
            )
            for number, family in enumerate(self.families)
            for fold in self.folds
        ]
        while any(pending := [grid.pending() for grid in self.grids]):
            try:
                run_paths(paths, dict(enumerate(pending)), self.n_classes, self.n_jobs)
            except KeyboardInterrupt:
                # Earlier rounds are complete. A first round may have some complete folds.
                asked = [list(grid.scores) or pending[i] for i, grid in enumerate(self.grids)]
                finished = finished_part(paths, dict(enumerate(asked)))
                if not finished:
                    raise
                return finished, True
            for number, grid in enumerate(self.grids):
                own = [path for path in paths if path.family == number]
                for C in own[0].outcomes:
                    criteria = [path.outcomes[C].measured.criteria for path in own]
                    grid.scores[C] = np.array(criteria)
        return paths, False

    def final_models(
        self, chosen: set[Choice], paths: list[SearchPath]
    ) -> dict[Choice, TopKClassifier]:
        """The chosen models: those of the search, or trained along one path for each family."""
        if self.refit_on == "nothing":
            path_of = {path.family: path for path in paths}
            return {(number, C): path_of[number].models[C] for number, C in chosen}
        data = self._final_part()
        models = {}
        for number in sorted({family for family, _ in chosen}):
            Cs = sorted(C for family, C in chosen if family == number)
            family = in_folder(self.families[number], f"family {number}, refit")
            for model in fit_family(family, data, Cs):
                if model.result_.status == "interrupted":
                    raise KeyboardInterrupt
                models[number, model.C] = model
        return models

    def _final_part(self) -> Part:
        """What the chosen models are trained on."""
        if self.refit_on == "first":
            return self.folds[0].training_part()
        held_out = self.folds[0].held_out
        return joined_parts(self.data, held_out) if isinstance(held_out, Part) else self.data


def request_of(
    search: Any, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, groups: Any
) -> Request:
    """Check parameters and data of a ``TopKClassifierCV``."""
    several = is_indicator(y)
    Cs = grid_of(search.Cs)
    check_counts(search)
    families = families_of(search, several)
    given = X_val is not None or y_val is not None
    refit_on = refit_on_what(search.refit, given, search.shots is not None)
    scorer = scorer_of(search.scoring, search)
    if several:
        check_for_several_labels(search)
    read = _data_of_several_labels if several else _training_data
    data, classes = read(search, X, y, sample_weight)
    for _, loss in families:
        loss.check_classes(len(classes))
    check_own_k(search, len(classes))
    ks = usable_ks(search.ks, len(classes))
    validation = None
    if given:
        check_validation = _validation_of_several_labels if several else _validation_data
        validation = check_validation(search, X_val, y_val, data, classes)
    seed = seed_of(search.random_state)
    if search.shots is not None:
        folds = few_shot_folds(data, search.shots, search.repeats, seed, validation)
    elif validation is not None:
        folds = [Fold(0, data, None, validation)]
    else:
        folds = folds_of(search.cv, data, groups)
    if refit_on == "nothing" and len(folds) != 1:
        needs = " needs a single split into training and validation; "
        makes = Setting("cv") + f" makes {len(folds)}. Use " + Setting("refit", "all")
        raise WordedError(Setting("refit", "train") + needs + makes + ", or give X_val and y_val.")
    if several:
        check_folds_of_several_labels(folds)
    else:
        check_folds(folds, families, classes)
    models = [model.set_params(random_state=seed, normalize=None) for model, _ in families]
    limits = (search.max_extensions, search.patience, search.refine)
    return Request(
        models,
        [Grid(Cs, *limits) for _ in models],
        Measure(ks, scorer),
        data,
        folds,
        refit_on,
        len(classes),
        search.n_jobs,
        search.verbose,
    )


def _training_data(search: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Part, NDArray]:
    X, y = check_input(search, X, y=y, ensure_min_samples=2)
    sample_weight = _checked_weight(sample_weight, X)
    classes, codes = encode_labels(y)
    counts = sample_weight
    if search.class_weight is not None:
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        factors = class_factors(y, classes, weights, search.class_weight)
        counts = np.multiply(weights, factors[codes], where=weights > 0, out=np.zeros(len(y)))
    return Part(normalized(X, search.normalize), y, sample_weight, counts), classes


def _data_of_several_labels(
    search: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Part, NDArray]:
    """Examples with an indicator as a boolean matrix; those without a label do not count."""
    X, y = check_input(search, X, y=y, ensure_min_samples=2, multi_output=True)
    sample_weight = _checked_weight(sample_weight, X)
    right = as_indicator(y, *y.shape)
    weights = np.ones(len(right)) if sample_weight is None else sample_weight
    counts = np.where(right.any(axis=1), weights, 0.0)
    part = Part(normalized(X, search.normalize), right, sample_weight, counts)
    return part, np.arange(right.shape[1])


def _checked_weight(sample_weight: Any, X: Any) -> NDArray | None:
    if sample_weight is None:
        return None
    checked: NDArray = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return checked


def _validation_of_several_labels(
    search: Any, X_val: Any, y_val: Any, data: Part, classes: NDArray
) -> Part:
    X_val = _validation_features(search, X_val, y_val)
    right = as_indicator(y_val, X_val.shape[0], len(classes))
    counts = np.where(right.any(axis=1), 1.0, 0.0)
    return Part(normalized(X_val, search.normalize), right, None, counts)


def _validation_features(search: Any, X_val: Any, y_val: Any) -> Any:
    if X_val is None or y_val is None:
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(f"X_val and y_val go together; {missing} is missing")
    return check_input(search, X_val, reset=False)


def _validation_data(search: Any, X_val: Any, y_val: Any, data: Part, classes: NDArray) -> Part:
    X_val = _validation_features(search, X_val, y_val)
    y_val = column_or_1d(y_val)
    check_consistent_length(X_val, y_val)
    # Labels that cannot be compared are refused here, not after the first fits.
    columns = columns_of_labels(y_val, classes, len(y_val), len(classes), name="y_val")
    counts = None
    if search.class_weight is not None:
        weights = np.ones(len(data.y)) if data.weight is None else data.weight
        factors = class_factors(data.y, classes, weights, search.class_weight)
        # A label that has no weight in training, or does not occur there, gets weight one.
        known = (columns != NO_COLUMN) & np.isfinite(factors[columns])
        counts = np.where(known, factors[columns], 1.0)
    return Part(normalized(X_val, search.normalize), y_val, None, counts)


# --- options besides the data --------------------------------------------------------------------


def families_of(search: Any, multilabel: bool = False) -> list[tuple[TopKClassifier, Loss]]:
    """One unfitted classifier for each family to search, parameters checked, and its loss."""
    names = TopKClassifier._get_param_names()
    shared = {name: getattr(search, name) for name in names if hasattr(search, name)}
    listed: Sequence[Any] = [search.loss] if search.losses is None else search.losses
    if isinstance(listed, str | dict) or not hasattr(listed, "__iter__"):
        raise TypeError(f"losses must be a list of names or dictionaries; got {listed!r}")
    families = []
    for entry in listed:
        own = {"loss": entry} if isinstance(entry, str) else entry
        if not isinstance(own, dict):
            raise TypeError(f"every entry of losses must be a name or a dictionary; got {entry!r}")
        allowed = sorted(set(names) - _NOT_PER_FAMILY)
        unknown = sorted(set(own) - set(allowed), key=str)
        if unknown:
            may = f" may set {', '.join(allowed)}; got {unknown[0]!r}"
            raise WordedError("a family in " + Setting("losses") + may)
        changes = {"random_state": None, "verbose": max(0, search.verbose - 1)}
        family = TopKClassifier(**{**shared, **own, **changes})
        families.append((family, check_parameters(family, multilabel)))
    if not families:
        raise ParameterError("losses", "must hold at least one family; it is empty")
    return families


def usable_ks(ks: Any, n_classes: int) -> tuple[int, ...]:
    """The distinct ks below the number of classes, in increasing order."""
    listed = [ks] if isinstance(ks, Integral) else ks
    if isinstance(listed, str | bytes) or not hasattr(listed, "__iter__"):
        raise TypeError(f"ks must be a list of integers; got {ks!r}")
    listed = list(listed)
    if not listed:
        raise ParameterError("ks", "must hold at least one k; it is empty")
    for k in listed:
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            problem = f" must be an integer, 1 or larger; got {k!r}"
            raise WordedError("every k in " + Setting("ks") + problem)
    distinct = sorted({int(k) for k in listed})
    usable = tuple(k for k in distinct if k < n_classes)
    if not usable:
        raise ParameterError(
            "ks",
            f"must hold a k below the number of classes, {n_classes}; got {distinct}: "
            "a shortlist of all labels is always right",
        )
    if len(usable) < len(distinct):
        dropped = ", ".join(str(k) for k in distinct if k >= n_classes)
        warnings.warn(
            f"with {n_classes} classes no model is chosen for k={dropped}: a shortlist of all "
            "labels is always right",
            UserWarning,
            stacklevel=level_outside(),
        )
    return usable


def check_counts(search: Any) -> None:
    """Raise ValueError unless the search's whole numbers are such, and large enough."""
    least = {"max_extensions": 0, "refine": 0, "repeats": 1}
    optional = {"patience": 1, "shots": 1}
    for name, smallest in (least | optional).items():
        value = getattr(search, name)
        if value is None and name in optional:
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or value < smallest:
            or_none = " or None" if name in optional else ""
            raise ParameterError(
                name, f"must be an integer, {smallest} or larger{or_none}; got {value!r}"
            )
    if search.shots is not None and search.cv is not None:
        both = " both say what to train on: give one of them"
        raise WordedError(Setting("shots") + " and " + Setting("cv") + both)


def check_own_k(search: Any, n_classes: int) -> None:
    """Raise unless ``k``, the length of the shortlists it gives, leaves a label out.

    A loss checks its own k, which families in ``losses`` may set.
    """
    check_k(search.k, n_classes - 1, "the number of classes less one")


def check_for_several_labels(search: Any) -> None:
    """Raise ParameterError for what a search takes only with one label per example."""
    several = "is for one label per example; y is an indicator of several"
    if search.class_weight is not None:
        raise ParameterError("class_weight", several)
    if search.shots is not None:
        raise ParameterError("shots", several)
    if search.scoring == "neg_log_loss":
        raise WordedError(Setting("scoring", "neg_log_loss") + f" {several}")


def check_refit(refit: Any) -> None:
    """Raise ValueError unless it is one of the choices."""
    if refit not in ("auto", "all", "train", "train+val"):
        problem = f"must be 'auto', 'all', 'train' or 'train+val'; got {refit!r}"
        raise ParameterError("refit", problem)


def refit_on_what(refit: Any, validation_given: bool, few_shot: bool) -> RefitOn:
    """What the final models are trained on; see :data:`RefitOn`."""
    check_refit(refit)
    if refit == "train+val" and not validation_given:
        raise WordedError(Setting("refit", "train+val") + " needs X_val and y_val")
    if refit in ("all", "train+val") or (refit == "auto" and not (validation_given or few_shot)):
        return "all"
    return "first" if few_shot else "nothing"
