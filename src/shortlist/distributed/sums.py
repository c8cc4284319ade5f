"""Changes of W as workers add them up: of all its rows, or of the last, which is the intercept's.

W is in C order, or in Fortran's, with the weights of a class together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shortlist.distributed.rounds import Sigma, Squares
from shortlist.solvers.kernels.messages import sum_worker_changes, write_change


def subtract(own: NDArray, weights: NDArray, sigma: Sigma, change: NDArray) -> Squares:
    """Write the change of W from ``weights`` to ``own``, divided by sigma."""
    by_class = _by_class(weights)
    if by_class:
        own, weights, change = own.T, weights.T, change.T
    own, weights = np.ascontiguousarray(own), np.ascontiguousarray(weights)
    return Squares(*write_change(own, weights, by_class, *sigma, change))


def add(changes: NDArray, weights: NDArray, own: NDArray) -> tuple[Squares, float]:
    """Add the sum of the changes of all workers to ``weights``, and copy these to ``own``.

    Returns |sum|^2 and |weights|^2.
    """
    by_class = _by_class(weights)
    if by_class:
        changes, weights, own = changes.transpose(0, 2, 1), weights.T, own.T
    summed, copied = np.ascontiguousarray(weights), np.ascontiguousarray(own)
    *squares, norm = sum_worker_changes(np.ascontiguousarray(changes), by_class, summed, copied)
    if not np.shares_memory(summed, weights):  # one row of W in Fortran's order
        weights[:], own[:] = summed, copied
    return Squares(*squares), norm


def _by_class(weights: NDArray) -> bool:
    return len(weights) > 1 and not weights.flags.c_contiguous
