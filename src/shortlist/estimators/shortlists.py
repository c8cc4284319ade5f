"""What the estimators share: from scores to labels, shortlists, probabilities and accuracy."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from shortlist._parameters import check_k
from shortlist.errors import ParameterError
from shortlist.estimators.callers import is_called_from, is_refitted_by_own_score, level_outside
from shortlist.estimators.multilabel import indicator_of
from shortlist.estimators.parameters import check_parameters, loss_of
from shortlist.losses import Loss
from shortlist.losses.registry import entry_of, with_probabilities
from shortlist.metrics import topk_accuracy
from shortlist.metrics.indicators import as_indicator, hit_rate
from shortlist.metrics.ranks import top_columns


def folded(both: NDArray, separable: bool) -> NDArray:
    """The one score, or row of weights, from those of both classes; classes are axis 0.

    Positive for the second class, as in scikit-learn. Of a loss of the scores' differences it is
    s_1 - s_0; softmax's probability of the second class is its sigmoid. One-vs-all losses train two
    models that mirror each other; the score is the second one's, (s_1 - s_0) / 2, and its sigmoid
    the probability.

    Folding keeps the certificate: mirroring the two classes (s_0 to -s_1, s_1 to -s_0) keeps the
    objective, which is convex, so that the mean of weights and their mirror image is no worse.
    """
    difference = both[1:] - both[:1]
    return 0.5 * difference if separable else difference


def unfolded(one: NDArray, separable: bool) -> NDArray:
    """Both classes' scores or weights from the one that :func:`folded` makes of them."""
    second = one if separable else 0.5 * one
    return np.concatenate([-second, second])


def _gives_probabilities(estimator: Any) -> bool:
    if not loss_of(estimator).has_probabilities:
        able = ", ".join(map(repr, with_probabilities(k=1)))
        raise AttributeError(
            f"predict_proba is not available for loss={estimator.loss!r} with k={estimator.k}: it "
            f"does not estimate probabilities. With k=1 these losses do: {able}."
        )
    return True


def _warn_of_search_over_k() -> None:
    warnings.warn(
        "this search varies k and scores each model at its own k, so that the largest k wins. "
        "Measure all models alike: scoring=shortlist.metrics.topk_scorer(5), say.",
        UserWarning,
        stacklevel=level_outside(),
    )


class ShortlistClassifier(ClassifierMixin, BaseEstimator):
    """What all classifiers here share: from scores to labels, shortlists and probabilities.

    A subclass has ``classes_`` and ``_scores(X)``, one column a class. ``multilabel_``
    tells whether it was trained on an indicator of several right labels.
    """

    classes_: NDArray
    n_features_in_: int
    multilabel_: bool = False
    loss: str
    k: int
    variant: str
    smoothing: float
    margins: Any
    rank_weights: Any

    # Whether k was set after the estimator was made, as a search over k does.
    _k_was_set: bool = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn."""
        super().set_params(**params)
        if "k" in params:
            self._k_was_set = True
        return self

    def make_loss(self, multilabel: bool = False) -> Loss:
        """The loss as the parameters have it, for one right label an example or for several."""
        return loss_of(self, multilabel)

    def check_trainable(self, n_classes: int, multilabel: bool = False) -> None:
        """Raise what ``fit`` would refuse, known before there is any data: ValueError, TypeError.

        ``multilabel``: for examples with several right labels.
        """
        check_parameters(self)
        self.make_loss(multilabel).check_classes(n_classes)

    def name_features(self, names: Sequence[str]) -> None:
        """Keep the names of the features, as a fit to a data frame does."""
        check_is_fitted(self)
        if len(names) != self.n_features_in_:
            problem = f"must be {self.n_features_in_}, one for each feature; got {len(names)}"
            raise ParameterError("names", problem)
        self.feature_names_in_ = np.array(names, dtype=object)

    def model_for(self, k: int) -> "ShortlistClassifier":
        """The classifier that answers for shortlists of k; a search has one for each k."""
        return self

    @property
    def _has_one_score(self) -> bool:
        """Whether one score is enough, as there are two classes."""
        return len(self.classes_) == 2 and not self.multilabel_

    @property
    def _separable(self) -> bool:
        """Whether every class has a model of its own."""
        return entry_of(self.loss).separable

    def _warn_if_chosen_by_own_score(self) -> None:
        """Warn, in the user's process, of a search over k that let each model choose its score."""
        if self._k_was_set and is_refitted_by_own_score():
            _warn_of_search_over_k()

    def _scores(self, X: ArrayLike) -> NDArray:
        raise NotImplementedError

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Scores (n_samples, n_classes); of two classes one, positive for the second.

        Of two classes it is the difference of their scores; for one-vs-all losses, whose two
        models mirror each other, the second one's score. Where there are probabilities, its
        sigmoid is the second class's. A model trained on an indicator of several labels gives one
        column a label, also of two.
        """
        scores = self._scores(X)
        if self._has_one_score:
            return folded(scores.T, self._separable)[0]
        return scores

    def predict(self, X: ArrayLike) -> NDArray:
        """The label with the largest score.

        A model trained on an indicator of several labels answers with an indicator matrix of the
        shortlist, the ``k`` labels with the largest scores, however many are right.
        """
        check_is_fitted(self)
        if self.multilabel_:
            scores = self._scores(X)
            return indicator_of(top_columns(scores, self.k), scores.shape[1])
        return self.classes_[self._scores(X).argmax(axis=1)]

    def predict_topk(self, X: ArrayLike, k: int | None = None, return_scores: bool = False) -> Any:
        """The k labels with the largest scores, best first, shape (n_samples, k).

        ``k`` defaults to the estimator's own. ``return_scores=True`` gives their scores too, as a
        second array of that shape.
        """
        check_is_fitted(self)
        k = check_k(self.k if k is None else k, len(self.classes_), "the number of classes")
        scores = self._scores(X)
        columns = top_columns(scores, k)
        labels = self.classes_[columns]
        return (labels, np.take_along_axis(scores, columns, axis=1)) if return_scores else labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Class probabilities: the softmax of the scores, or one-vs-all sigmoids, normalised.

        With several right labels: of a label drawn at random from the right ones.
        """
        return softmax(self._logits(X), axis=1)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> NDArray:
        """The logarithm of :meth:`predict_proba`, finite also where that rounds to zero."""
        return log_softmax(self._logits(X), axis=1)

    def _logits(self, X: ArrayLike) -> NDArray:
        logits = loss_of(self).logits
        assert logits is not None
        return logits(self._scores(X))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Top-k accuracy at the estimator's own k: how often the shortlist holds the label.

        A model trained on an indicator takes one here: the share of examples whose shortlist holds
        at least one right label. Examples without any are left out.

        Not for a search over k: accuracy at its own k prefers the largest k. Such a search warns
        and is to be given ``scoring=shortlist.metrics.topk_scorer(k)``, with one k for all.
        """
        if self._k_was_set and is_called_from("sklearn.model_selection"):
            _warn_of_search_over_k()
        scores = self._scores(X)
        if self.multilabel_:
            return hit_rate(as_indicator(y, *scores.shape), scores, self.k, sample_weight)
        return float(
            topk_accuracy(y, scores, k=self.k, labels=self.classes_, sample_weight=sample_weight)
        )
