"""Examples as kernels see them: dense rows or CSR rows, behind six functions.

    score_row(rows, i, w, s)                    s = W'x_i
    add_row(rows, i, delta, w)                  W += x_i delta'
    score_rows(rows, blas, begin, end, w, s)    the rows of s are W'x_i
    add_rows(rows, blas, begin, end, g, w)      W += sum_i x_i g_i'
    class_score(rows, i, column)                <w_j, x_i> for one class's weights
    add_to_class(rows, i, change, column)       w_j += change x_i

W has shape (d + 1, m). Its last row is the intercept's, met with the constant feature ``bias``.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._jit import njit, overloaded
from shortlist._native import add_transposed, multiply


class DenseRows(NamedTuple):
    x: NDArray
    bias: float


class CsrRows(NamedTuple):
    values: NDArray
    columns: NDArray
    pointers: NDArray
    bias: float


def _dense(rows: Any) -> bool:
    return rows.instance_class is DenseRows


@njit
def _score_dense_row(rows, i, w, s):
    row = rows.x[i]
    d = row.shape[0]
    m = s.shape[0]
    constant = w.dtype.type(rows.bias)
    for j in range(m):
        s[j] = constant * w[d, j]
    c = 0
    while c + 3 < d:
        x0, x1, x2, x3 = row[c], row[c + 1], row[c + 2], row[c + 3]
        for j in range(m):
            s[j] += (x0 * w[c, j] + x1 * w[c + 1, j]) + (x2 * w[c + 2, j] + x3 * w[c + 3, j])
        c += 4
    while c < d:
        for j in range(m):
            s[j] += row[c] * w[c, j]
        c += 1


@njit
def _score_csr_row(rows, i, w, s):
    d = w.shape[0] - 1
    m = s.shape[0]
    constant = w.dtype.type(rows.bias)
    for j in range(m):
        s[j] = constant * w[d, j]
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        x = rows.values[t]
        c = rows.columns[t]
        for j in range(m):
            s[j] += x * w[c, j]


@njit
def _add_dense_row(rows, i, delta, w):
    row = rows.x[i]
    d = row.shape[0]
    m = delta.shape[0]
    for c in range(d):
        x = row[c]
        for j in range(m):
            w[c, j] += x * delta[j]
    if rows.bias != 0.0:
        constant = w.dtype.type(rows.bias)
        for j in range(m):
            w[d, j] += constant * delta[j]


@njit
def _add_csr_row(rows, i, delta, w):
    d = w.shape[0] - 1
    m = delta.shape[0]
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        x = rows.values[t]
        c = rows.columns[t]
        for j in range(m):
            w[c, j] += x * delta[j]
    if rows.bias != 0.0:
        constant = w.dtype.type(rows.bias)
        for j in range(m):
            w[d, j] += constant * delta[j]


@njit
def _score_dense_rows(rows, blas, begin, end, w, s):
    d = rows.x.shape[1]
    multiply(blas, rows.x[begin:end], w[:d], s)
    if rows.bias != 0.0:
        constant = w.dtype.type(rows.bias)
        for b in range(s.shape[0]):
            for j in range(s.shape[1]):
                s[b, j] += constant * w[d, j]


@njit
def _score_csr_rows(rows, blas, begin, end, w, s):
    for i in range(begin, end):
        _score_csr_row(rows, i, w, s[i - begin])


@njit
def _add_dense_rows(rows, blas, begin, end, g, w):
    d = rows.x.shape[1]
    add_transposed(blas, rows.x[begin:end], g, w[:d])
    if rows.bias != 0.0:
        constant = w.dtype.type(rows.bias)
        for b in range(g.shape[0]):
            for j in range(g.shape[1]):
                w[d, j] += constant * g[b, j]


@njit
def _add_csr_rows(rows, blas, begin, end, g, w):
    for i in range(begin, end):
        _add_csr_row(rows, i, g[i - begin], w)


@njit(sums=True)
def _dot(w, x):
    total = w.dtype.type(0)
    for c in range(x.shape[0]):
        total += w[c] * x[c]
    return total


@njit
def _dense_class_score(rows, i, column):
    x = rows.x[i]
    return _dot(column, x) + column.dtype.type(rows.bias) * column[x.shape[0]]


@njit(sums=True)
def _csr_class_score(rows, i, column):
    total = column.dtype.type(0)
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        total += column[rows.columns[t]] * rows.values[t]
    return total + column.dtype.type(rows.bias) * column[column.shape[0] - 1]


@njit
def _add_dense_to_class(rows, i, change, column):
    x = rows.x[i]
    d = x.shape[0]
    for c in range(d):
        column[c] += change * x[c]
    column[d] += change * column.dtype.type(rows.bias)


@njit
def _add_csr_to_class(rows, i, change, column):
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        column[rows.columns[t]] += change * rows.values[t]
    column[column.shape[0] - 1] += change * column.dtype.type(rows.bias)


@overloaded
def score_row(rows, i, w, s):
    return _score_dense_row if _dense(rows) else _score_csr_row


@overloaded
def add_row(rows, i, delta, w):
    return _add_dense_row if _dense(rows) else _add_csr_row


@overloaded
def score_rows(rows, blas, begin, end, w, s):
    return _score_dense_rows if _dense(rows) else _score_csr_rows


@overloaded
def add_rows(rows, blas, begin, end, g, w):
    return _add_dense_rows if _dense(rows) else _add_csr_rows


@overloaded
def class_score(rows, i, column):
    return _dense_class_score if _dense(rows) else _csr_class_score


@overloaded
def add_to_class(rows, i, change, column):
    return _add_dense_to_class if _dense(rows) else _add_csr_to_class


@njit
def gather_rows(x, bias, order, out):
    """Copy the rows ``order`` of x, the constant feature behind each, to ``out``."""
    d = x.shape[1]
    for b in range(order.shape[0]):
        row = x[order[b]]
        target = out[b]
        for c in range(d):
            target[c] = row[c]
        target[d] = bias


@njit(sums=True)
def squared_norm(a):
    """|a|^2 of a vector, summed in double."""
    total = 0.0
    for j in range(a.shape[0]):
        total += np.float64(a[j]) * np.float64(a[j])
    return total
