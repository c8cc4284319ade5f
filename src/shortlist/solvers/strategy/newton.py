"""Newton's method for many weights: steps by conjugate gradients on a Hessian of few entries.

The step solves (I + sum_i C_i H_i (x) x_i x_i') step = -gradient, to a share of the gradient only:
the next step starts from another Hessian anyway.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.storage.curvature import Curvature

# Conjugate gradients end when the residual's norm is this share of the gradient's.
CG_SHARE_LEFT = 0.3
# Products with the Hessian that one step may take: then it is taken as it is.
MAX_CG_PRODUCTS = 60
# Within this many times the gap asked for, one step may do: it is solved more exactly. The path on
# CLINC150 over 45 values of C from 1e-6 to 1e5 takes 89, 73, 71, 71 and 70 evaluations at shares of
# 0.5, 0.25, 0.2, 0.15 and 0.1, and 249, 281, 275, 328 and 378 products.
MAX_GAP_RATIO_NEAR, CG_SHARE_LEFT_NEAR = 30.0, 0.2


def is_near(gap: float, wanted: float) -> bool:
    """Whether a step or two with one model will do."""
    return gap <= MAX_GAP_RATIO_NEAR * wanted


@dataclass(frozen=True)
class ListedHessian:
    """I + the curvature, a ``hessian.Model``."""

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
    for _ in range(MAX_CG_PRODUCTS):
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
