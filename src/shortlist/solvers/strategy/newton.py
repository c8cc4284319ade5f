"""Newton's method for many weights: steps by conjugate gradients on a Hessian of few entries.

The step solves (I + sum_i C_i H_i (x) x_i x_i') step = -gradient, to a share of the gradient only:
the next step starts from another Hessian anyway.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.storage.curvature import Curvature

# What is left of the gradient when a step is good enough.
SHARE_LEFT = 0.3
MOST_PRODUCTS = 60
# A gap of at most so many times the one asked for is close to it. Then a model lasts for several
# steps, each corrected by those before at the price of an evaluation: exact ones do not pay.
CLOSE, SHARE_LEFT_CLOSE_BY = 30.0, 0.5


def is_close(gap: float, wanted: float) -> bool:
    """Whether a few steps with one model will do."""
    return gap <= CLOSE * wanted


@dataclass(frozen=True)
class ListedHessian:
    """I + the curvature; implements ``conditioning.Model``."""

    curvature: Curvature
    share_left: float
    exact = True

    def solve(self, gradient: NDArray) -> NDArray:
        right = np.ascontiguousarray(gradient.T)
        found = conjugate_gradients(lambda v: v + self.curvature.times(v), right, self.share_left)
        return found.T


def conjugate_gradients(
    times: Callable[[NDArray], NDArray], right: NDArray, share_left: float
) -> NDArray:
    """Solve ``times(x) = right`` for a positive definite map, to this share of |right|."""
    x = np.zeros_like(right)
    left = right.copy()
    direction = left.copy()
    square = float(np.vdot(left, left))
    enough = share_left**2 * square
    for _ in range(MOST_PRODUCTS):
        product = times(direction)
        bend = float(np.vdot(direction, product))
        if not bend > 0.0:
            break
        step = right.dtype.type(square / bend)
        x += step * direction
        left -= step * product
        before, square = square, float(np.vdot(left, left))
        if square <= enough:
            break
        direction *= right.dtype.type(square / before)
        direction += left
    return x
