"""Changes of W that workers add up: each kernel reads and writes its arrays in one pass.

W has shape (d + 1, m), the intercept's row last; or, ``by_class``, (m, d + 1), the intercept's
column last. Kernels return |.|^2 of the features' numbers and of the intercept's.
"""

import numpy as np

from shortlist._jit import njit


@njit(sums=True)
def _subtract(own, weights, begin, end, sigma, change):
    total = 0.0
    for j in range(begin, end):
        change[j] = (own[j] - weights[j]) / sigma
        total += np.float64(change[j]) * np.float64(change[j])
    return total


@njit
def write_change(own, weights, by_class, sigma, sigma_intercept, change):
    """change = (own - weights) / sigma."""
    rows, width = own.shape
    features = 0.0
    intercept = 0.0
    one, other = own.dtype.type(sigma), own.dtype.type(sigma_intercept)
    for i in range(rows):
        if by_class:
            features += _subtract(own[i], weights[i], 0, width - 1, one, change[i])
            intercept += _subtract(own[i], weights[i], width - 1, width, other, change[i])
        elif i < rows - 1:
            features += _subtract(own[i], weights[i], 0, width, one, change[i])
        else:
            intercept += _subtract(own[i], weights[i], 0, width, other, change[i])
    return features, intercept


@njit
def _add(total, change):
    for j in range(total.shape[0]):
        total[j] += change[j]


@njit(sums=True)
def _add_and_copy(total, begin, end, weights, own):
    changed = 0.0
    norm = 0.0
    for j in range(begin, end):
        weights[j] += total[j]
        own[j] = weights[j]
        changed += np.float64(total[j]) * np.float64(total[j])
        norm += np.float64(weights[j]) * np.float64(weights[j])
    return changed, norm


@njit
def sum_worker_changes(changes, by_class, weights, own):
    """weights += the sum of changes; own = weights. Also returns |weights|^2."""
    workers, rows, width = changes.shape
    total = np.empty(width, weights.dtype)
    features = 0.0
    intercept = 0.0
    norm = 0.0
    for i in range(rows):
        for j in range(width):
            total[j] = changes[0, i, j]
        for k in range(1, workers):
            _add(total, changes[k, i])
        of_features = width - 1 if by_class else width if i < rows - 1 else 0
        changed, square = _add_and_copy(total, 0, of_features, weights[i], own[i])
        features += changed
        norm += square
        changed, square = _add_and_copy(total, of_features, width, weights[i], own[i])
        intercept += changed
        norm += square
    return features, intercept, norm
