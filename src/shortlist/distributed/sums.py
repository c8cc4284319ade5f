"""Changes of W as workers add them up; W is in C order, or in Fortran's with classes together."""

from __future__ import annotations

from numpy.typing import NDArray

from shortlist.distributed.rounds import Sigma, Squares
from shortlist.solvers.kernels.messages import add_changes, write_change


def subtract(own: NDArray, weights: NDArray, sigma: Sigma, change: NDArray) -> Squares:
    """Write the change of W from ``weights`` to ``own``, divided by sigma."""
    by_class, (own, weights, change) = _rows_together(own, weights, change)
    return Squares(*write_change(own, weights, by_class, *sigma, change))


def add(changes: NDArray, weights: NDArray, own: NDArray) -> tuple[Squares, float]:
    """Add the sum of the changes of all workers to ``weights``, and copy these to ``own``.

    Returns |sum|^2 and |weights|^2.
    """
    by_class, (weights, own) = _rows_together(weights, own)
    if by_class:
        changes = changes.transpose(0, 2, 1)
    features, intercept, norm = add_changes(changes, by_class, weights, own)
    return Squares(features, intercept), norm


def _rows_together(*arrays: NDArray) -> tuple[bool, list[NDArray]]:
    """Whether W is by class, and the arrays as kernels see them."""
    by_class = not arrays[0].flags.c_contiguous
    return by_class, [array.T if by_class else array for array in arrays]
