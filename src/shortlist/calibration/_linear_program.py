"""The expected hinge losses as linear programs, solved by HiGHS.

    top-k hinge beta    L(y, g) = min  l + 1/k sum_j x_j,   l >= 0
    top-k hinge alpha   L(y, g) = min  max(0, l + 1/k sum_j x_j),   l free
        over x_j >= max(0, 1 + g_j - g_y - l), j != y
    one-vs-all hinge    L(y, g) = min  sum_j x_j  over x_j >= max(0, 1 -+ g_j)

The first two write the sum of the k largest terms by its dual, k l + sum_j max(0, term_j - l).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from shortlist.losses import Loss

Vector = NDArray[np.float64]


class _Program:
    """Minimise cost . z subject to rows . z <= limits and z >= lower, built term by term."""

    def __init__(self, n_scores: int) -> None:
        self.cost = [0.0] * n_scores
        self.lower: list[float | None] = [None] * n_scores
        self.limits: list[float] = []
        self._entries: list[tuple[int, int, float]] = []

    def variable(self, cost: float, lower: float | None = 0.0) -> int:
        self.cost.append(cost)
        self.lower.append(lower)
        return len(self.cost) - 1

    def at_most(self, coefficients: dict[int, float], limit: float) -> None:
        """Require sum of coefficient * variable <= limit."""
        row = len(self.limits)
        self._entries += [(row, column, value) for column, value in coefficients.items()]
        self.limits.append(limit)

    def solve(self) -> Vector:
        rows, columns, values = zip(*self._entries, strict=True)
        found = linprog(
            self.cost,
            A_ub=coo_array((values, (rows, columns)), shape=(len(self.limits), len(self.cost))),
            b_ub=self.limits,
            bounds=[(low, None) for low in self.lower],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise RuntimeError(f"the linear program was not solved: {found.message}")
        return found.x


def hinge_optimum(loss: Loss, p: Vector, shortlist: NDArray[np.bool_] | None = None) -> Vector:
    """Scores that minimise the expected hinge loss, free or with this shortlist on top."""
    n_classes = len(p)
    program = _Program(n_classes)
    if loss.name == "ova_hinge":
        _add_ova_hinge(program, p)
    else:
        for y in range(n_classes):
            _add_topk_hinge(program, p[y], y, n_classes, loss)
    if shortlist is not None:
        for i in np.flatnonzero(shortlist).tolist():
            for j in np.flatnonzero(~shortlist).tolist():
                program.at_most({j: 1.0, i: -1.0}, 0.0)
    return program.solve()[:n_classes]


def _add_ova_hinge(program: _Program, p: Vector) -> None:
    for j, probability in enumerate(p):
        as_label = program.variable(probability)
        as_other = program.variable(1.0 - probability)
        program.at_most({j: -1.0, as_label: -1.0}, -1.0)
        program.at_most({j: 1.0, as_other: -1.0}, -1.0)


def _add_topk_hinge(program: _Program, weight: float, y: int, n_classes: int, loss: Loss) -> None:
    joint = loss.variant == "alpha"
    level_cost, excess_cost = (0.0, 0.0) if joint else (weight, weight / loss.k)
    level = program.variable(level_cost, None if joint else 0.0)
    excesses = []
    for j in range(n_classes):
        if j != y:
            excess = program.variable(excess_cost)
            program.at_most({j: 1.0, y: -1.0, level: -1.0, excess: -1.0}, -1.0)
            excesses.append(excess)
    if joint:
        value = program.variable(weight)
        mean = {level: 1.0} | dict.fromkeys(excesses, 1.0 / loss.k)
        program.at_most(mean | {value: -1.0}, 0.0)
