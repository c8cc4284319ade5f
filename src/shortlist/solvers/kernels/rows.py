"""Examples as kernels see them: dense rows, CSR rows or inner products, behind eight functions.

    fetch_weights(rows, i, w)                   let the processor fetch what score_row reads of W
    fetch_features(rows, i)                     let the processor fetch x_i: soon it is read
    score_row(rows, i, w, s)                    s = W'x_i
    add_row(rows, i, delta, w)                  W += x_i delta'
    score_rows(rows, blas, begin, end, w, s)    the rows of s are W'x_i
    add_rows(rows, blas, begin, end, g, w)      W += sum_i x_i g_i'
    class_score(rows, i, w, j)                  <w_j, x_i>, the rows of w being the classes' weights
    add_to_class(rows, i, change, w, j)         w_j += change x_i

W has shape (d + 1, m). Its last row is the intercept's, met with the constant feature ``bias``.

Where only inner products are known, the scores of all examples take the place of W, shape (n, m),
a class's scores lying together. Reading them costs nothing; adding x_i delta' to W adds a row of
the matrix to every class that delta changes. Visits only: the functions of several rows have no
such version.

A type of rows is a NamedTuple, registered with its kernels by :func:`register_rows`. The functions
of these names pick the kernel by the type of ``rows`` while their caller compiles.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import add_transposed, multiply
from shortlist._jit import njit, overloaded
from shortlist._native import prefetch

# A number that is computed and rounded errs by two units of roundoff at most. This is the square.
SQUARED_ROUNDING = 4.0


class DenseRows(NamedTuple):
    x: NDArray
    bias: float


class CsrRows(NamedTuple):
    values: NDArray
    columns: NDArray
    pointers: NDArray
    bias: float


class GramRows(NamedTuple):
    """The matrix of inner products, to whose entries ``square``, the intercept's, is added."""

    gram: NDArray
    square: float


@njit
def _fetch_nothing(rows, i):
    pass


@njit
def _fetch_no_weights(rows, i, w):
    pass


class RowKernels(NamedTuple):
    """The kernels of a type of rows. Those of several rows are for descents and certificates."""

    score_row: Callable
    add_row: Callable
    class_score: Callable
    add_to_class: Callable
    score_rows: Callable | None = None
    add_rows: Callable | None = None
    fetch_features: Callable = _fetch_nothing
    fetch_weights: Callable = _fetch_no_weights


_TYPES: dict[type, RowKernels] = {}


def register_rows(rows_type: type, kernels: RowKernels) -> None:
    """Give a NamedTuple type of rows its kernels."""
    _TYPES[rows_type] = kernels


def _kernel(rows: Any, name: str) -> Any:
    rows_type = rows.instance_class
    if rows_type not in _TYPES:
        raise TypeError(f"{rows_type.__name__} has no kernels: give it some by register_rows")
    kernel = getattr(_TYPES[rows_type], name)
    if kernel is None:
        raise TypeError(f"{rows_type.__name__} is registered without a kernel {name}")
    return kernel


@njit(sums=True)
def add_four(x0, x1, x2, x3, w0, w1, w2, w3, s):
    """s += x0 w0 + ... + x3 w3: four at a time spare three passes over s."""
    for j in range(s.shape[0]):
        s[j] += (x0 * w0[j] + x1 * w1[j]) + (x2 * w2[j] + x3 * w3[j])


@njit(sums=True)
def add_scaled(x, row, target):
    """target += x row."""
    for j in range(target.shape[0]):
        target[j] += x * row[j]


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
    x, columns = rows.values, rows.columns
    t, end = rows.pointers[i], rows.pointers[i + 1]
    while t + 3 < end:
        w0, w1, w2, w3 = w[columns[t]], w[columns[t + 1]], w[columns[t + 2]], w[columns[t + 3]]
        add_four(x[t], x[t + 1], x[t + 2], x[t + 3], w0, w1, w2, w3, s)
        t += 4
    while t < end:
        add_scaled(x[t], w[columns[t]], s)
        t += 1


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
        add_scaled(rows.values[t], delta, w[rows.columns[t]])
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
def _dense_class_score(rows, i, w, j):
    x = rows.x[i]
    column = w[j]
    return _dot(column, x) + column.dtype.type(rows.bias) * column[x.shape[0]]


@njit(sums=True)
def _csr_class_score(rows, i, w, j):
    column = w[j]
    total = column.dtype.type(0)
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        total += column[rows.columns[t]] * rows.values[t]
    return total + column.dtype.type(rows.bias) * column[column.shape[0] - 1]


@njit
def _add_dense_to_class(rows, i, change, w, j):
    column = w[j]
    x = rows.x[i]
    d = x.shape[0]
    for c in range(d):
        column[c] += change * x[c]
    column[d] += change * column.dtype.type(rows.bias)


@njit
def _add_csr_to_class(rows, i, change, w, j):
    column = w[j]
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        column[rows.columns[t]] += change * rows.values[t]
    column[column.shape[0] - 1] += change * column.dtype.type(rows.bias)


@njit
def _read_scores(rows, i, w, s):
    for j in range(s.shape[0]):
        s[j] = w[i, j]


@njit
def _add_to_scores(rows, i, delta, w):
    for j in range(delta.shape[0]):
        if delta[j] != 0:
            for c in range(w.shape[0]):
                w[c, j] += delta[j] * (rows.gram[i, c] + rows.square)


@njit
def _read_class_score(rows, i, w, j):
    return w[j, i]


@njit
def _add_gram_to_class(rows, i, change, w, j):
    for c in range(w.shape[1]):
        w[j, c] += change * (rows.gram[i, c] + rows.square)


@njit
def _fetch_dense_row(rows, i):
    prefetch(rows.x, i, rows.x.shape[1] * rows.x.itemsize)


@njit
def _fetch_csr_row(rows, i):
    begin, count = rows.pointers[i], rows.pointers[i + 1] - rows.pointers[i]
    prefetch(rows.columns, begin, count * rows.columns.itemsize)
    prefetch(rows.values, begin, count * rows.values.itemsize)


@njit
def _fetch_weights_of_csr_row(rows, i, w):
    size = w.shape[1] * w.itemsize
    for t in range(rows.pointers[i], rows.pointers[i + 1]):
        prefetch(w, rows.columns[t], size)


register_rows(
    DenseRows,
    RowKernels(
        _score_dense_row,
        _add_dense_row,
        _dense_class_score,
        _add_dense_to_class,
        _score_dense_rows,
        _add_dense_rows,
        fetch_features=_fetch_dense_row,
    ),
)
register_rows(
    CsrRows,
    RowKernels(
        _score_csr_row,
        _add_csr_row,
        _csr_class_score,
        _add_csr_to_class,
        _score_csr_rows,
        _add_csr_rows,
        _fetch_csr_row,
        _fetch_weights_of_csr_row,
    ),
)
register_rows(
    GramRows,
    RowKernels(_read_scores, _add_to_scores, _read_class_score, _add_gram_to_class),
)


@overloaded
def fetch_weights(rows, i, w):
    """Let the processor fetch the weights of example i's features, where they lie apart."""
    return _kernel(rows, "fetch_weights")


@overloaded
def fetch_features(rows, i):
    """Let the processor fetch the features of example i, where many lie together."""
    return _kernel(rows, "fetch_features")


@overloaded
def score_row(rows, i, w, s):
    return _kernel(rows, "score_row")


@overloaded
def add_row(rows, i, delta, w):
    return _kernel(rows, "add_row")


@overloaded(apart=True)
def score_rows(rows, blas, begin, end, w, s):
    return _kernel(rows, "score_rows")


@overloaded(apart=True)
def add_rows(rows, blas, begin, end, g, w):
    return _kernel(rows, "add_rows")


@overloaded
def class_score(rows, i, w, j):
    return _kernel(rows, "class_score")


@overloaded
def add_to_class(rows, i, change, w, j):
    return _kernel(rows, "add_to_class")


@njit
def add_to_classes(rows, y, cost, w):
    """w_j += sum of C_i x_i over the examples of label j, the rows of w being the classes'."""
    for i in range(y.shape[0]):
        if cost[i] != 0.0:
            add_to_class(rows, i, cost[i], w, y[i])


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
