"""Softmax cross-entropy for examples with several right labels Y, p = |Y|.

    L(f) = log sum_j exp f_j - mean of f over Y
    L*(v) = <pi, log pi>   for pi = v + 1_Y / p in the unit simplex

the cross-entropy between the uniform distribution on Y and the model's. It is at least log p. With
one label it is softmax. The dual step is the entropic step of ``projections.entropic_labels``.
"""

import math
from typing import NamedTuple

import numpy as np

from shortlist._jit import njit
from shortlist.losses.differences import close_at_label, sum_of_wrong
from shortlist.losses.domains import distributions
from shortlist.losses.entropy import (
    conjugate_of_entropy,
    negative_entropy,
    value_gradient_softmax,
)
from shortlist.losses.kernels import Kernels, register
from shortlist.losses.labels import right_labels, shift_wrong, total, wrong_range
from shortlist.projections.entropic_labels import entropic_step_labels


class MultilabelSoftmax(NamedTuple):
    """Softmax over several right labels."""

    k: int = 1


@njit
def _step(q, labels, eta, start, v, work):
    """Writes v and returns log sum_j exp q_j (for eta = 0) less the mean of q over Y."""
    highest = np.float64(q[labels[0]])
    for y in labels:
        highest = max(highest, np.float64(q[y]))
    height = shift_wrong(q, labels, 1.0, work[0]) - highest
    value = entropic_step_labels(work[0], height, q, labels, highest, eta, start, v)
    for y in labels:
        value += (highest - np.float64(q[y])) / labels.shape[0]
    if labels.shape[0] == 1:
        # v_y is minus the sum of the others: exact also where v is far below rounding of 1.
        close_at_label(v, labels[0], sum_of_wrong(v, labels[0]))
    return value


@njit
def _value_gradient(loss, f, y, v, work):
    labels = right_labels(y)
    if labels.shape[0] == 1:
        return value_gradient_softmax(loss, f, labels[0], v, work)  # keeps the digits near zero
    return _step(f, labels, 0.0, np.zeros(2), v, work)


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    _step(q, right_labels(y), eta, start, v, work)


@njit
def _conjugate(loss, v, y):
    labels = right_labels(y)
    if labels.shape[0] == 1:
        return conjugate_of_entropy(loss, v, labels[0])
    result = 0.0
    begin = 0
    for label in labels:
        result += negative_entropy(v[begin:label], 0)
        begin = label + 1
        pi = max(1.0 / labels.shape[0] + np.float64(v[label]), 0.0)
        result += pi * math.log(pi) if pi > 0.0 else 0.0
    return result + negative_entropy(v[begin:], 0)


@njit
def _violation(loss, v, y):
    labels = right_labels(y)
    balance = abs(total(v))
    if not balance < np.inf:
        return np.inf
    worst = max(balance, -wrong_range(v, labels)[0])
    for label in labels:
        worst = max(worst, -1.0 / labels.shape[0] - np.float64(v[label]))
    return worst


register(
    MultilabelSoftmax,
    Kernels(_value_gradient, _conjugate, _violation, _dual_step, domain=lambda spec: distributions),
)
