"""The scores of a saved linear model, without what training needs.

Importing scikit-learn and numba takes longer than a prediction. A model that is only to answer is
read into this class, which takes neither. Its answers are those of ``TopKClassifier``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.metrics.ranks import top_columns


@dataclass(frozen=True)
class LinearScores:
    """Answers as a fitted ``TopKClassifier``, of which it has the attributes named here."""

    classes_: NDArray
    multilabel_: bool
    coef_: NDArray
    intercept_: NDArray
    n_features_in_: int
    feature_names_in_: NDArray | None
    loss: str
    k: int
    C: float
    data_: Mapping[str, Any] | None = None

    @staticmethod
    def can_hold(estimator: str, meta: Mapping[str, Any]) -> bool:
        """Whether the scores of a saved model are X W' + b."""
        return estimator == "TopKClassifier" and meta["params"].get("normalize") is None

    @classmethod
    def from_state(
        cls, arrays: Mapping[str, NDArray], meta: Mapping[str, Any], data: Any
    ) -> LinearScores:
        """Make one of a checked state."""
        names = meta.get("feature_names_in")
        return cls(
            classes_=np.asarray(meta["classes"]),
            multilabel_=meta.get("multilabel", False),
            coef_=arrays["coef"],
            intercept_=arrays["intercept"],
            n_features_in_=meta["n_features_in"],
            feature_names_in_=None if names is None else np.asarray(names, dtype=object),
            **{name: meta["params"][name] for name in ("loss", "k", "C")},
            data_=data,
        )

    def model_for(self, k: int) -> LinearScores:
        """What answers for shortlists of k, as the estimators have it."""
        return self

    def decision_function(self, X: Any) -> NDArray:
        """The scores, one column a class, also of two."""
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def predict_topk(self, X: Any, k: int, return_scores: bool = False) -> Any:
        """The k labels with the largest scores, best first, and those scores."""
        scores = self.decision_function(X)
        columns = top_columns(scores, k)
        labels = self.classes_[columns]
        return (labels, np.take_along_axis(scores, columns, axis=1)) if return_scores else labels
