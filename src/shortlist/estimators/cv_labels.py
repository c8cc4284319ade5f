"""The labels of a search: one for each example, or an indicator of several.

Both kinds are asked in the same way, and checked in the user's terms.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from shortlist.estimators.cv_checks import check_for_several_labels
from shortlist.estimators.cv_folds import Fold, check_folds, check_folds_of_several_labels
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.targets import class_factors, encode_labels
from shortlist.losses import Loss
from shortlist.metrics.checks import NO_COLUMN, columns_of_labels
from shortlist.metrics.indicators import as_indicator

Families = list[tuple[TopKClassifier, Loss]]


class HeldOut(NamedTuple):
    """Labels to measure by, and the examples' weights in accuracy (None: all one)."""

    y: NDArray
    counts: NDArray | None


class OneLabel:
    """One label for each example.

    An example counts in accuracy by its weight times that of its class.
    """

    def __init__(self, y: NDArray, weight: NDArray | None, class_weight: Any) -> None:
        self.y, self.counts, self._factors = y, weight, None
        self.classes, codes = encode_labels(y)
        if class_weight is not None:
            weights = np.ones(len(y)) if weight is None else weight
            self._factors = factors = class_factors(y, self.classes, weights, class_weight)
            zeros = np.zeros(len(y))
            self.counts = np.multiply(weights, factors[codes], where=weights > 0, out=zeros)

    @staticmethod
    def check_search(search: Any) -> None:
        """Every parameter of a search goes with one label."""

    def of_validation(self, y: ArrayLike, X: Any) -> HeldOut:
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        # Labels that cannot be compared are refused here, not after the first fits.
        n, m = len(labels), len(self.classes)
        columns = columns_of_labels(labels, self.classes, n, m, name="y_val")
        if self._factors is None:
            return HeldOut(labels, None)
        # A label that has no weight in training, or does not occur there, gets weight one.
        factors = self._factors[columns]
        known = (columns != NO_COLUMN) & np.isfinite(factors)
        return HeldOut(labels, np.where(known, factors, 1.0))

    def check_folds(self, folds: list[Fold], families: Families) -> None:
        check_folds(folds, families, self.classes)


class SeveralLabels:
    """An indicator of several right labels. Examples without any do not count in accuracy."""

    def __init__(self, y: Any, weight: NDArray | None, class_weight: Any) -> None:
        self.y = as_indicator(y, *y.shape)
        weights = np.ones(len(self.y)) if weight is None else weight
        self.counts = np.where(self.y.any(axis=1), weights, 0.0)
        self.classes = np.arange(self.y.shape[1])

    @staticmethod
    def check_search(search: Any) -> None:
        check_for_several_labels(search)

    def of_validation(self, y: ArrayLike, X: Any) -> HeldOut:
        right = as_indicator(y, X.shape[0], len(self.classes))
        return HeldOut(right, np.where(right.any(axis=1), 1.0, 0.0))

    def check_folds(self, folds: list[Fold], families: Families) -> None:
        check_folds_of_several_labels(folds)
