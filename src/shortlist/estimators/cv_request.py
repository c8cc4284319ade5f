"""A search as it was asked for: its data, folds and grid, and what it runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from shortlist._progress import one_line_for_fits
from shortlist._text import Setting
from shortlist.errors import WordedError
from shortlist.estimators.cv_checks import (
    RefitOn,
    check_counts,
    check_own_k,
    families_of,
    refit_on_what,
    usable_ks,
)
from shortlist.estimators.cv_folds import (
    Fold,
    Part,
    few_shot_folds,
    folds_of,
    joined_parts,
)
from shortlist.estimators.cv_grid import Grid, grid_of
from shortlist.estimators.cv_labels import OneLabel, SeveralLabels
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
from shortlist.estimators.inputs import check_input
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.multilabel import is_indicator
from shortlist.estimators.normalization import normalized
from shortlist.estimators.parameters import seed_of


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
        validation = self.folds[0].validation
        return self.data if validation is None else joined_parts(self.data, validation)


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
    kind = SeveralLabels if several else OneLabel
    kind.check_search(search)
    X, y = check_input(search, X, y=y, ensure_min_samples=2, multi_output=several)
    weight = _checked_weight(sample_weight, X)
    labels = kind(y, weight, search.class_weight)
    data = Part(normalized(X, search.normalize), labels.y, weight, labels.counts)
    classes = labels.classes
    for _, loss in families:
        loss.check_classes(len(classes))
    check_own_k(search, len(classes))
    ks = usable_ks(search.ks, len(classes))
    validation = None
    if given:
        X_val = _validation_features(search, X_val, y_val)
        held_out = labels.of_validation(y_val, X_val)
        validation = Part(normalized(X_val, search.normalize), held_out.y, None, held_out.counts)
    seed = seed_of(search.random_state)
    if search.shots is not None:
        folds = few_shot_folds(data, search.shots, search.repeats, seed, validation)
    elif validation is not None:
        folds = [Fold(0, data, None, None, validation)]
    else:
        folds = folds_of(search.cv, data, groups)
    if refit_on == "nothing" and len(folds) != 1:
        needs = " needs a single split into training and validation; "
        makes = Setting("cv") + f" makes {len(folds)}. Use " + Setting("refit", "all")
        raise WordedError(Setting("refit", "train") + needs + makes + ", or give X_val and y_val.")
    labels.check_folds(folds, families)
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


def _checked_weight(sample_weight: Any, X: Any) -> NDArray | None:
    if sample_weight is None:
        return None
    checked: NDArray = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return checked


def _validation_features(search: Any, X_val: Any, y_val: Any) -> Any:
    if X_val is None or y_val is None:
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(f"X_val and y_val go together; {missing} is missing")
    return check_input(search, X_val, reset=False)
