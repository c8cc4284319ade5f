"""Parts of a matrix of inner products, and scores from it."""

import numpy as np

from shortlist._jit import njit

# Columns at a time: what the scores of a class add up in stays in the first cache.
COLUMNS_AT_ONCE = 1024


@njit
def gather_square(gram, rows, out):
    """out = gram[rows][:, rows]."""
    for a in range(rows.shape[0]):
        row = gram[rows[a]]
        for b in range(rows.shape[0]):
            out[a, b] = row[rows[b]]


@njit
def add_listed(gram, weights, scores):
    """scores += weights' gram, where few of the weights (n, m) are not zero."""
    n, m = weights.shape
    places = np.empty(n * m, np.int32)
    begin = np.zeros(n + 1, np.int64)
    count = 0
    for i in range(n):
        for j in range(m):
            if weights[i, j] != 0:
                places[count] = j
                count += 1
        begin[i + 1] = count
    for first in range(0, scores.shape[1], COLUMNS_AT_ONCE):
        last = min(first + COLUMNS_AT_ONCE, scores.shape[1])
        for i in range(n):
            row = gram[i, first:last]
            for t in range(begin[i], begin[i + 1]):
                j = places[t]
                weight = weights[i, j]
                target = scores[j, first:last]
                for c in range(last - first):
                    target[c] += weight * row[c]
