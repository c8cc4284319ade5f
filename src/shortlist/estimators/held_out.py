"""Top-k accuracy on data held out from training, as a fit goes on."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from shortlist.metrics import topk_accuracy
from shortlist.metrics._indicators import as_indicator, hit_rate
from shortlist.metrics._inputs import columns_of_labels


def is_given(X_val: Any, y_val: Any) -> bool:
    """Whether there is validation data; ValueError if half of it is missing."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val go together: give both or neither")
    return X_val is not None


def accuracy_of_scores(model: Any, n_rows: int, y_val: Any) -> Callable[[NDArray], float]:
    """The top-k accuracy of scores (n_rows, n_classes); labels are checked before training."""
    m = len(model.classes_)
    if model.multilabel_:
        indicator = as_indicator(y_val, n_rows, m)
        return lambda scores: hit_rate(indicator, scores, model.k)
    labels = column_or_1d(y_val)
    check_consistent_length(np.empty(n_rows), labels)
    # Encode labels as column numbers. Labels of another type raise an error here.
    numbers = columns_of_labels(labels, model.classes_, n_rows, m, name="y_val")

    def accuracy(scores: NDArray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(topk_accuracy(numbers, scores, k=model.k, labels=np.arange(m)))

    return accuracy
