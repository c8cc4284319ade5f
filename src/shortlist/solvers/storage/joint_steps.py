"""Joint steps of all duals on the support, for examples with explicit features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import blas_for
from shortlist._native import SIGNAL_STRIDE
from shortlist.losses.base import Loss
from shortlist.solvers.kernels.joint import LAST_DUAL
from shortlist.solvers.kernels.joint_features import (
    JointStep,
    joint_step_of_features,
    subtract_dual_changes,
)
from shortlist.solvers.threads import Crew

# Terms that a thread hands over: two slopes and three bends.
N_TERMS = 5


class JointSteps:
    """Steps along the last changes of weights by classes, (m, d + 1), and of their duals.

    The r-th of ``numbers`` has the entries ``begin[r]`` to ``begin[r + 1]`` of ``classes``, kept at
    ``slots``. ``past`` holds their duals now (see ``kernels.joint``).
    """

    def __init__(
        self,
        view: Any,
        numbers: NDArray,
        weights: NDArray,
        y: NDArray,
        cost: NDArray,
        duals: Any,
        begin: NDArray,
        classes: NDArray,
        slots: NDArray,
        past: NDArray,
    ) -> None:
        self.view, self.numbers, self.weights = view, numbers, weights
        self.y, self.cost, self.duals = y, cost, duals
        self.listed = (begin, classes, slots)
        self.first_duals, self.first_weights = past[LAST_DUAL].copy(), weights.copy()
        now, change, target = np.empty((3, classes.size), past.dtype)
        self.work = JointStep(
            *(past, now, change, target),
            *(weights.copy(), np.zeros_like(weights), np.empty_like(weights)),
            outside=np.empty(numbers.size, np.int64),
            terms=np.empty((0, N_TERMS)),
            answer=np.empty(2),
        )
        # How many steps were taken.
        self.taken = 0

    def step(self, loss: Loss, crew: Crew) -> float:
        """Take the best step, if it raises the dual objective; returns by how much."""
        threads = crew.awake
        by_example = np.linspace(0, self.numbers.size, threads + 1).astype(np.int64)
        by_class = np.linspace(0, len(self.weights), threads + 1).astype(np.int64)
        given = (
            *(loss.spec, not loss.smooth, blas_for(self.weights.dtype), self.view, self.numbers),
            *(self.weights, self.y, self.cost, self.duals, *self.listed),
            self.work._replace(terms=np.empty((threads, N_TERMS))),
            *(by_example, by_class, np.zeros(threads * SIGNAL_STRIDE, np.int64)),
        )
        rise: float = crew.together(threads, lambda t: joint_step_of_features(*given, t))[0]
        self.taken += rise > 0.0
        return rise

    def weights_anew(self) -> NDArray:
        """The weights, made from those before the first step and what the duals changed since.

        A step repeats the rounding errors of the changes that it is made of.
        """
        anew = self.first_weights.astype(np.float64)
        entries = (*self.listed, self.first_duals)
        subtract_dual_changes(self.view, self.numbers, self.cost, self.duals, *entries, anew)
        return anew.astype(self.weights.dtype)
