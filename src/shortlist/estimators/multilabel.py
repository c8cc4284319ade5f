"""Examples with several right labels: an indicator matrix in, shortlists of labels out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from shortlist.losses.labels import check_indicator, label_rows


def is_indicator(y: Any) -> bool:
    """Whether y is an indicator matrix, dense or sparse, rather than one label per example."""
    if y is None:
        return False
    if not sparse.issparse(y):
        try:
            dimensions = np.asarray(y).ndim
        except ValueError:  # rows of different lengths: later checks raise the error
            return False
        if dimensions != 2:
            return False
    return type_of_target(y, input_name="y") == "multilabel-indicator"


def encode_indicator(y: Any, k: int) -> tuple[NDArray, NDArray]:
    """The right labels of each example, as losses take them, and which examples count.

    An example counts if it has a right label and at least k wrong ones; with fewer wrong labels
    every shortlist of k holds a right one. The others must get a cost of zero. They are given the
    label 0, since kernels expect a right label and k wrong ones.
    """
    check_indicator(y)
    rows = label_rows(y)
    counts = np.count_nonzero(rows >= 0, axis=1)
    asks = (counts >= 1) & (counts <= y.shape[1] - k)
    rows[~asks] = -1
    rows[~asks, 0] = 0
    return rows[:, : max(1, counts[asks].max(initial=1))].copy(), asks


def indicator_of(columns: NDArray, m: int) -> NDArray:
    """The indicator matrix (n, m) of a matrix (n, k) of column numbers."""
    indicator = np.zeros((columns.shape[0], m), np.int64)
    np.put_along_axis(indicator, columns, 1, axis=1)
    return indicator
