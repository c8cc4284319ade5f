"""Probabilities for any classifier: temperature scaling, which keeps the ranking of the labels."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from shortlist._responses import CHUNK_ELEMENTS, Responses
from shortlist.metrics.checks import check_scores, columns_of_labels

__all__ = ["TemperatureScaling", "expected_calibration_error"]

#: Bounds of the inverse temperature, in units of one over the spread of the scores.
_MIN_SCALED_INVERSE, _MAX_SCALED_INVERSE = 1e-4, 1e4
#: Added to a probability before its logarithm is a score, as in scikit-learn.
_ADDED_TO_PROBABILITY = 1e-12


def expected_calibration_error(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 15,
    *,
    labels: ArrayLike | None = None,
) -> float:
    """How far the probability of the first label is from how often it is right.

    Examples are sorted by the largest probability and cut into ``n_bins`` bins with as many
    examples each. The error is the mean over bins of the difference, without sign, between the
    mean probability and the share of right labels.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        The true labels: column numbers, or whatever ``labels`` names the columns.
    probabilities : array of shape (n_samples, n_classes)
    n_bins : int
    labels : array of shape (n_classes,), optional
        The label of each column, such as an estimator's ``classes_``.
    """
    matrix = check_scores(probabilities)
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    columns = columns_of_labels(y_true, labels, *matrix.shape)
    return _top_label_error(matrix.max(axis=1), matrix.argmax(axis=1) == columns, n_bins)


def _top_label_error(confidence: NDArray, right: NDArray[np.bool_], n_bins: int = 15) -> float:
    order = np.argsort(confidence, kind="stable")
    excess = confidence[order] - right[order]
    bins = np.array_split(excess, min(n_bins, len(excess)))
    return float(sum(abs(one.sum()) for one in bins) / len(excess))


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(self.model, method))


class TemperatureScaling(ClassifierMixin, BaseEstimator):
    """Probabilities softmax(scores / T) around a fitted classifier, with T fitted to held-out data.

    T > 0 is the temperature with the least log loss. Dividing by it changes neither the order of
    the labels nor what is predicted. It works for every model with a ``decision_function``, hinges
    too; of a model that has only ``predict_proba`` the scores are the logarithms of those.

    Parameters
    ----------
    model : fitted classifier
        A classifier of this package or of scikit-learn's, a Pipeline too. It is never fitted here.

    Attributes
    ----------
    temperature_ : float
    classes_ : ndarray of shape (n_classes,)
    report_ : dict
        What `report` says of the examples that T was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import TopKClassifier
    >>> from shortlist.probabilities import TemperatureScaling
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKClassifier("hinge", C=0.01, random_state=0).fit(X[:900] / 16, y[:900])
    >>> scaled = TemperatureScaling(model).fit(X[900:] / 16, y[900:])
    >>> scaled.predict_proba(X[:2] / 16).shape
    (2, 10)
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __sklearn_clone__(self) -> TemperatureScaling:
        # The model is fitted elsewhere. A clone with an unfitted model would be of no use.
        return type(self)(self.model)

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Find the temperature on examples that the model was not trained on.

        Holds the scores of all of them, n_samples x n_classes doubles.
        """
        responses = Responses.of(self.model, "scores")
        columns = responses.columns(X, y)
        scores = np.concatenate([_logits(responses, part) for _, part in responses.chunks(X)])
        self.temperature_ = _best_temperature(scores, columns)
        self.classes_ = responses.classes
        self.report_ = self.report(X, y)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The scores divided by the temperature; of two classes, the second's less the first's."""
        scores = self._scaled(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities, one column a class."""
        return softmax(self._scaled(X), axis=1)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the probabilities, finite even where those are zero."""
        return log_softmax(self._scaled(X), axis=1)

    @_has("predict")
    def predict(self, X: Any) -> NDArray:
        """The model's prediction, which the temperature does not change."""
        return self.model.predict(X)

    @_has("predict_topk")
    def predict_topk(self, X: Any, k: int | None = None) -> NDArray:
        """The model's shortlist, which the temperature does not change."""
        return self.model.predict_topk(X, k)

    def report(self, X: Any, y: ArrayLike) -> dict[str, Any]:
        """Log loss and calibration error on labelled examples, before and after scaling.

        Before are the model's own probabilities or, where it has none, the softmax of its scores;
        "probabilities_before" says which. The calibration error is that of
        `expected_calibration_error`.
        """
        check_is_fitted(self)
        before = Responses.of(self.model, "probabilities")
        columns = before.columns(X, y)
        own = before.method == "predict_proba"
        after = Responses(self, self.classes_, "probabilities")
        was, now = _Quality.of(before, X, columns), _Quality.of(after, X, columns)
        return {
            "temperature": self.temperature_,
            "n_samples": len(columns),
            "probabilities_before": "predict_proba" if own else "softmax of decision_function",
            "log_loss_before": was.log_loss,
            "log_loss": now.log_loss,
            "calibration_error_before": was.calibration_error,
            "calibration_error": now.calibration_error,
        }

    def _scaled(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        responses = Responses.of(self.model, "scores")
        parts = [_logits(responses, part) for _, part in responses.chunks(X)]
        return np.concatenate(parts) / self.temperature_

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        return {}, {
            "model": self.model,
            "temperature": self.temperature_,
            "report": self.report_,
        }

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> TemperatureScaling:
        scaled = cls(meta["model"])
        scaled.temperature_, scaled.report_ = meta["temperature"], meta["report"]
        scaled.classes_ = scaled.model.classes_
        return scaled


def _logits(responses: Responses, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores, or the logarithms of probabilities if the model has no scores."""
    if responses.method == "predict_proba":
        return np.log(values + _ADDED_TO_PROBABILITY)
    return values


def _best_temperature(scores: NDArray[np.float64], columns: NDArray[np.intp]) -> float:
    """argmin over T > 0 of the mean of log sum_j exp(s_j / T) - s_y / T.

    The log loss is convex in 1 / T. So T is where its slope changes sign, which is searched on a
    logarithmic scale between bounds that follow the spread of the scores.
    """
    spread = float((scores.max(axis=1) - scores.mean(axis=1)).mean())
    if spread == 0:
        warnings.warn(
            "all scores of each example are the same: every temperature gives the uniform "
            "distribution, and 1 is taken",
            stacklevel=3,
        )
        return 1.0
    low, high = (math.log(bound / spread) for bound in (_MIN_SCALED_INVERSE, _MAX_SCALED_INVERSE))

    def slope(log_inverse: float) -> float:
        return _slope(scores, columns, math.exp(log_inverse))

    if slope(low) >= 0:
        warnings.warn(
            "the model's scores say nothing of the labels of these examples: the temperature is "
            "at its upper bound, and probabilities are nearly uniform",
            stacklevel=3,
        )
        return math.exp(-low)
    if slope(high) <= 0:
        warnings.warn(
            "the model ranks the label of every example first: the temperature is at its lower "
            "bound, and probabilities are nearly 0 or 1. Use more examples, which the model was "
            "not trained on",
            stacklevel=3,
        )
        return math.exp(-high)
    return math.exp(-brentq(slope, low, high, xtol=1e-12))


def _slope(scores: NDArray[np.float64], columns: NDArray[np.intp], inverse: float) -> float:
    """The derivative of the mean log loss by the inverse temperature."""
    total = 0.0
    step = max(1, CHUNK_ELEMENTS // scores.shape[1])
    for start in range(0, len(scores), step):
        part, mine = scores[start : start + step], columns[start : start + step]
        expected = np.einsum("ij,ij->i", softmax(inverse * part, axis=1), part)
        total += float((expected - part[np.arange(len(part)), mine]).sum())
    return total / len(scores)


@dataclass(frozen=True)
class _Quality:
    """How good probabilities are."""

    log_loss: float
    calibration_error: float

    @classmethod
    def of(cls, probabilities: Responses, X: Any, columns: NDArray[np.intp]) -> _Quality:
        own, confidence = np.empty(len(columns)), np.empty(len(columns))
        right = np.empty(len(columns), dtype=bool)
        for rows, values in probabilities.chunks(X):
            own[rows] = values[np.arange(len(values)), columns[rows]]
            confidence[rows] = values.max(axis=1)
            right[rows] = values.argmax(axis=1) == columns[rows]
        # A probability of zero counts as the rounding error of one, as in scikit-learn.
        losses = -np.log(np.maximum(own, np.finfo(np.float64).eps))
        return cls(float(losses.mean()), _top_label_error(confidence, right))
