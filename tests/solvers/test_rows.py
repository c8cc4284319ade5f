"""Rows of one's own: a NamedTuple type, registered with its kernels."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from shortlist._jit import njit
from shortlist.solvers.kernels import rows
from shortlist.solvers.kernels.rows import RowKernels, class_score, register_rows, score_row


class OneFeature(NamedTuple):
    """Example i has one feature, ``values[i]``, at the place ``columns[i]``."""

    values: NDArray
    columns: NDArray


@njit
def _score(rows, i, w, s):
    s[:] = rows.values[i] * w[rows.columns[i]]


@njit
def _add(rows, i, delta, w):
    w[rows.columns[i]] += rows.values[i] * delta


@njit
def _class_score(rows, i, w, j):
    return rows.values[i] * w[j, rows.columns[i]]


@njit
def _add_to_class(rows, i, change, w, j):
    w[j, rows.columns[i]] += rows.values[i] * change


@njit
def score_two(rows, w, s):
    """A kernel that knows rows by the functions alone."""
    score_row(rows, 0, w, s[0])
    score_row(rows, 1, w, s[1])
    return class_score(rows, 0, w.T, 0)


EXAMPLES = OneFeature(np.array([2.0, 3.0]), np.array([1, 0]))
W = np.array([[1.0, 10.0], [2.0, 20.0]])


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(rows, "_TYPES", dict(rows._TYPES))
    register_rows(OneFeature, RowKernels(_score, _add, _class_score, _add_to_class))


def test_kernels_take_registered_rows(registered):
    s = np.empty((2, 2))
    assert score_two(EXAMPLES, W, s) == 4.0
    np.testing.assert_array_equal(s, [[4.0, 40.0], [3.0, 30.0]])


def test_unregistered_rows_are_named():
    class Unknown(NamedTuple):
        values: NDArray

    message = "Unknown has no kernels: give it some by register_rows"
    with pytest.raises(TypeError, match=message):
        score_row(Unknown(np.ones(2)), 0, W, np.empty(2))
    with pytest.raises(Exception, match=message):  # the compiler may wrap it
        score_two(Unknown(np.ones(2)), W, np.empty((2, 2)))


def test_a_missing_kernel_is_named(registered):
    with pytest.raises(TypeError, match="OneFeature is registered without a kernel score_rows"):
        rows.score_rows(EXAMPLES, None, 0, 2, W, np.empty((2, 2)))
