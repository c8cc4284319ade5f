"""Top-k accuracy as a scikit-learn scorer that survives folds with missing classes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._parameters import TIE_POLICIES, check_k
from shortlist.metrics._topk import topk_accuracy
from shortlist.metrics.checks import check_scores
from shortlist.metrics.indicators import as_indicator, hit_rate

_RESPONSE_METHODS = ("auto", "decision_function", "predict_proba")


def topk_scorer(
    k: int = 1, *, ties: str = "optimistic", response_method: str = "auto"
) -> TopKScorer:
    """A scorer ``scorer(estimator, X, y)`` that returns top-k accuracy, larger is better.

    Use it as ``scoring=`` in ``cross_val_score``, ``cross_validate`` or ``GridSearchCV``. Columns
    are named by the fitted estimator's ``classes_``, so a class that is missing from a training
    fold counts as an error on the test fold instead of making the score undefined. Where y is an
    indicator matrix of several right labels, a shortlist is right if it holds one of them.

    Parameters
    ----------
    k : int
        The length of the shortlist.
    ties : {"optimistic", "pessimistic", "expected"}
        The tie policy of `topk_error`.
    response_method : {"auto", "decision_function", "predict_proba"}
        Where scores come from; "auto" prefers ``decision_function``.
    """
    return TopKScorer(k=k, ties=ties, response_method=response_method)


@dataclass(frozen=True)
class TopKScorer:
    """What `topk_scorer` returns: picklable, comparable, and aware of metadata routing."""

    k: int = 1
    ties: str = "optimistic"
    response_method: str = "auto"
    sample_weight_request: bool | str | None = None

    def __post_init__(self) -> None:
        check_k(self.k)
        if self.ties not in TIE_POLICIES:
            allowed = ", ".join(map(repr, TIE_POLICIES))
            raise ValueError(f"ties must be one of {allowed}; got {self.ties!r}")
        _check_response_method(self.response_method)

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        scores, classes = estimator_scores(estimator, X, self.response_method)
        n_classes = len(classes)
        if self.k >= n_classes:
            from sklearn.exceptions import UndefinedMetricWarning

            warnings.warn(
                f"k={self.k} with {n_classes} classes: a shortlist of every class the estimator "
                "knows is right for all of them",
                UndefinedMetricWarning,
                stacklevel=2,
            )
        k = min(self.k, n_classes)
        if len(np.shape(y)) == 2 and np.shape(y)[1] > 1:
            return hit_rate(as_indicator(y, *scores.shape), scores, k, sample_weight, self.ties)
        return topk_accuracy(y, scores, k, self.ties, labels=classes, sample_weight=sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None) -> TopKScorer:
        """A scorer that asks scikit-learn's metadata routing for ``sample_weight``."""
        return replace(self, sample_weight_request=sample_weight)

    def get_metadata_routing(self) -> Any:
        """What this scorer requests, in scikit-learn's protocol."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.sample_weight_request)
        return request


def estimator_scores(
    estimator: Any, X: Any, response_method: str = "auto"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The scores (n_samples, n_classes) a fitted classifier gives X, and its ``classes_``.

    A binary estimator's one-dimensional decision function becomes two columns.
    """
    _check_response_method(response_method)
    name = type(estimator).__name__
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise TypeError(
            f"{name} has no classes_: a fitted classifier is needed to tell which column of the "
            "scores is which label"
        )
    methods = _RESPONSE_METHODS[1:] if response_method == "auto" else (response_method,)
    method = next((method for method in methods if hasattr(estimator, method)), None)
    if method is None:
        raise TypeError(f"{name} has no {' or '.join(methods)}")
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(f"classes_ of {name} must be one-dimensional, got shape {classes.shape}")
    scores = check_scores(getattr(estimator, method)(X))
    if scores.shape[1] != len(classes):
        raise ValueError(
            f"{method} of {name} returns {scores.shape[1]} columns for {len(classes)} classes"
        )
    return scores, classes


def _check_response_method(response_method: str) -> None:
    if response_method not in _RESPONSE_METHODS:
        allowed = ", ".join(map(repr, _RESPONSE_METHODS))
        raise ValueError(f"response_method must be one of {allowed}; got {response_method!r}")
