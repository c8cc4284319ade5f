"""Hinges with a margin for each class, or for each pair of classes.

A hinge asks that the label lead by 1. With margins c_yj in place of 1 it is the same hinge at
other scores: with offsets o_j = c_yj - 1 at the wrong labels and o_y = 0,

    L(f) = H(f + o),    L*(v) = H*(v) - <o, v>

and the dual step is that of H at q + o. Since only differences of scores count, margins c_yj = c_y
of the classes are o_y = 1 - c_y alone.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist._jit import kernel_array, njit
from shortlist.errors import ParameterError
from shortlist.losses import kernels
from shortlist.losses.domains import domain_of
from shortlist.losses.kernels import Kernels, hash_of_parameters, register, same_parameters


class WithMargins(NamedTuple):
    """A hinge and c - 1, of shape (m, m), or (m, 1) for the margins of classes."""

    base: Any
    offsets: NDArray

    def __eq__(self, other: object) -> bool:
        return same_parameters(self, other)

    def __hash__(self) -> int:
        return hash_of_parameters(self)


@njit
def _offset(loss, y, j):
    if loss.offsets.shape[1] == 1:
        return -loss.offsets[y, 0] if j == y else 0.0
    return loss.offsets[y, j]


@njit
def _moved(loss, f, y):
    g = np.empty_like(f)
    for j in range(f.shape[0]):
        g[j] = f[j] + f.dtype.type(_offset(loss, y, j))
    return g


@njit
def _value_gradient(loss, f, y, v, work):
    return kernels.value_gradient(loss.base, _moved(loss, f, y), y, v, work)


@njit
def _conjugate(loss, v, y):
    value = kernels.conjugate(loss.base, v, y)
    for j in range(v.shape[0]):
        value -= _offset(loss, y, j) * np.float64(v[j])
    return value


@njit
def _violation(loss, v, y):
    return kernels.violation(loss.base, v, y)


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    kernels.dual_step(loss.base, _moved(loss, q, y), y, eta, start, v, work)


@njit
def _ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """The visit of the hinge at s + o, whose share of the gap is the same."""
    moved = _moved(loss, s, y)
    return kernels.ascend(loss.base, moved, y, cost, kappa, start, stands_for, v, delta, work)


@njit
def _on_classes(loss, s, y, classes):
    for a in range(s.shape[0]):
        s[a] += s.dtype.type(_offset(loss, y, classes[a]))
    return loss.base


register(
    WithMargins,
    Kernels(
        _value_gradient,
        _conjugate,
        _violation,
        _dual_step,
        ascend=_ascend,
        on_classes=_on_classes,
        # Margins move scores, not the domain.
        domain=lambda spec: domain_of(spec.base),
    ),
)


def check_margins(margins: ArrayLike) -> NDArray:
    """Margins of classes (m,) or of pairs (m, m); those of a label and itself are set to 0."""
    table = np.array(margins)
    square = table.ndim == 2 and table.shape[0] == table.shape[1]
    if table.dtype.kind not in "fiu" or not (table.ndim == 1 or square) or table.shape[0] < 2:
        raise ParameterError(
            "margins",
            "must be numbers, one for each class or a square matrix of one for each label and "
            f"wrong label; got shape {table.shape} of {table.dtype}",
        )
    table = table.astype(np.float64)
    if square:
        np.fill_diagonal(table, 0.0)
    if not (np.isfinite(table).all() and (table >= 0).all() and table.any()):
        raise ParameterError("margins", "must be finite, zero or larger and not all zero")
    return table


def with_margins(base: Any, margins: NDArray) -> WithMargins:
    """The hinge ``base`` with checked margins."""
    offsets = margins.reshape(len(margins), -1) - 1.0
    if offsets.shape[1] > 1:
        np.fill_diagonal(offsets, 0.0)
    return WithMargins(base, kernel_array(offsets, np.float64))


def ldam_margins(totals: ArrayLike) -> NDArray:
    """Margins n_y^(-1/4), from the number of examples of each class, scaled to a largest of 1.

    The rarer the class, the larger its margin (Cao, Wei, Gaidon, Arechiga and Ma, "Learning
    Imbalanced Datasets with Label-Distribution-Aware Margin Loss", NeurIPS 2019). Weighted
    examples count by their weight. A class without any gets a margin of 1.
    """
    counts = np.array(totals, dtype=np.float64)
    if counts.ndim != 1 or not (np.isfinite(counts).all() and (counts >= 0).all() and counts.any()):
        problem = "must be numbers of examples, one for each class, not all zero"
        raise ParameterError("totals", problem)
    least = counts[counts > 0].min()
    return (least / np.maximum(counts, least)) ** 0.25
