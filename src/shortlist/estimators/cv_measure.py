"""The accuracy of a search's model on held-out examples, with bounds for its exact optimum."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from shortlist.estimators.cv_folds import Part
from shortlist.estimators.linear import TopKClassifier
from shortlist.metrics.checks import NO_COLUMN, check_sample_weight, columns_of_labels
from shortlist.metrics.indicators import best_right
from shortlist.metrics.ranks import Ranks, ranks_of_columns
from shortlist.solvers.storage.base import shares_of
from shortlist.solvers.threads import Crew

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Measured:
    """One model on one held-out part.

    ``accuracies`` are top-k accuracies, one for each of the ks. ``certified`` is the share of the
    shortlists that are provably those of the exact optimum; its accuracies lie between ``lowest``
    and ``highest``. ``score`` is the value of the user's scorer, if there is one.
    """

    accuracies: NDArray
    certified: NDArray
    lowest: NDArray
    highest: NDArray
    score: float | None

    @property
    def criteria(self) -> NDArray:
        """What C is chosen by: the score alone, or the accuracies, each for its own k."""
        return self.accuracies if self.score is None else np.array([self.score])


@dataclass(frozen=True)
class Measure:
    """Measures models at all ``ks`` from one matrix of scores, and by ``scorer``."""

    ks: tuple[int, ...]
    scorer: Scorer | None = None

    def __call__(self, model: TopKClassifier, part: Part, crew: Crew | None = None) -> Measured:
        """Measure ``model`` on ``part``.

        Ties count by chance, so that a model that scores all labels alike gains nothing by it. A
        label that the model has not seen is an error for every k. Of several right labels the
        one with the highest score counts. The threads of a crew share the examples.
        """
        crew = crew or Crew()
        n, most = len(part.y), len(model.classes_)
        lengths = np.minimum(self.ks, most)

        def some(begin: int, end: int) -> tuple[NDArray, NDArray, NDArray]:
            return _ranked(model, part.X[begin:end], part.y[begin:end], lengths)

        found = crew.run(some, shares_of(0, n, crew.size))
        best, worst, certain = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
        ranks = Ranks(best, worst, check_sample_weight(part.counts, n), most)
        accuracies = ranks.expected()[lengths] / ranks.total
        bounds = _bounds(ranks, certain, lengths)
        return Measured(accuracies, *bounds, score=self._score(model, part))

    def _score(self, model: TopKClassifier, part: Part) -> float | None:
        if self.scorer is None:
            return None
        weights = {}
        if part.weight is not None and "sample_weight" in signature(self.scorer).parameters:
            weights["sample_weight"] = part.weight
        score = float(self.scorer(model, part.X, part.y, **weights))
        if not np.isfinite(score):
            raise ValueError(f"scoring gives {score} at C={model.C:g}; it must be a finite number")
        return score


def scorer_of(scoring: Any, estimator: Any) -> Scorer | None:
    """What ``scoring`` means, as in scikit-learn: a name or a callable; None for top-k accuracy."""
    if scoring is None:
        return None
    if not (isinstance(scoring, str) or callable(scoring)):
        raise TypeError(
            f"scoring must be the name of a scorer, a callable scorer(model, X, y) or None; "
            f"got {scoring!r}"
        )
    if scoring == "neg_log_loss":
        return _minus_log_loss
    scorer: Scorer = check_scoring(estimator, scoring=scoring)
    return scorer


def _minus_log_loss(
    model: TopKClassifier, X: Any, y: NDArray, sample_weight: NDArray | None = None
) -> float:
    """scikit-learn's "neg_log_loss", also where the held-out examples lack a class."""
    logs = model.predict_log_proba(X)
    columns = columns_of_labels(y, model.classes_, *logs.shape)
    own = np.where(columns != NO_COLUMN, logs[np.arange(len(logs)), columns], -np.inf)
    return float(np.average(own, weights=sample_weight))


def _ranked(
    model: TopKClassifier, X: Any, y: NDArray, lengths: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Best and worst ranks of the right labels, and which shortlists are certain: (ks, n)."""
    scores = model._scores_of(X)
    if model.multilabel_:
        columns = best_right(y, scores)
    else:
        columns = columns_of_labels(y, model.classes_, *scores.shape)
    return *ranks_of_columns(scores, columns), model._certain(X, scores, lengths)


def _bounds(ranks: Ranks, certain: NDArray, lengths: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Three shares: certified shortlists, certain hits, and examples that are not certain errors.

    ``ranks`` are those of the right labels.
    """
    in_list = ranks.best <= lengths[:, None]
    certified = certain @ ranks.weights / ranks.total
    hits = (certain & in_list) @ ranks.weights / ranks.total
    return certified, hits, hits + 1 - certified
