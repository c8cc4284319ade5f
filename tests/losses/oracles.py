"""Conjugates, values and dual steps by a generic convex solver."""

from collections.abc import Callable

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from tests import references
from tests.instances import Instance

# L*(v) as an expression, and the constraints of its domain.
Conjugate = Callable[[cp.Variable], tuple[cp.Expression, list]]

_TOLERANCES = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def _solve(problem: cp.Problem) -> float:
    problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
    assert problem.status == cp.OPTIMAL
    return float(problem.value)


def supremum(conjugate: Conjugate, f: NDArray) -> float:
    """sup over v of <f, v> - L*(v)."""
    v = cp.Variable(len(f))
    expression, constraints = conjugate(v)
    return _solve(cp.Problem(cp.Maximize(f @ v - expression), constraints))


def proximal_point(conjugate: Conjugate, q: NDArray, eta: float) -> NDArray:
    """argmin over v of L*(v) - <q, v> + eta/2 |v|^2."""
    v = cp.Variable(len(q))
    expression, constraints = conjugate(v)
    objective = expression - q @ v + 0.5 * eta * cp.sum_squares(v)
    _solve(cp.Problem(cp.Minimize(objective), constraints))
    return v.value


def _conjugate(row: Instance, v: cp.Variable, y: int) -> tuple[cp.Expression, list]:
    if row.formulas is not None:
        return row.formulas.program(v, y)
    if row.mixed:
        return _of_mixture(row, v, y)
    if row.one_vs_all:
        sign = np.ones(row.m)
        sign[y] = -1.0
        p = cp.multiply(sign, v)
        if row.name == "ova_logistic":
            expression = -cp.sum(cp.entr(p)) - cp.sum(cp.entr(1 - p))
        else:
            expression = -cp.sum(p) + 0.5 * row.smoothing * cp.sum_squares(p)
        return expression, [p >= 0, p <= 1]
    x = v[[j for j in range(row.m) if j != y]]
    s = cp.sum(x)
    if "entropy" in row.name:
        expression = -cp.sum(cp.entr(x)) - cp.entr(1 - s)
    else:
        asked = references.asked_margins(row, y)
        expression = -(asked @ x) + 0.5 * row.smoothing * cp.sum_squares(x)
    return expression, [x >= 0, s <= 1, v[y] == -s, *_bounds_on_ranks(row, x, s)]


def _of_mixture(row: Instance, v: cp.Variable, y: int) -> tuple[cp.Expression, list]:
    """The infimal convolution of the parts: v is split among them, each with its own set."""
    total, expression, constraints = 0, 0, []
    for share, part in row.parts:
        own = cp.Variable(row.m)
        cost, inside = _conjugate(part, own, y)
        total, expression = total + share * own, expression + share * cost
        constraints += inside
    return expression, [*constraints, v == total]


def _bounds_on_ranks(row: Instance, x: cp.Expression, s: cp.Expression) -> list:
    if row.rank_weights is not None:
        share = s if row.variant == "alpha" else 1.0
        sums = np.cumsum(row.rank_weights)
        return [cp.sum_largest(x, r + 1) <= share * total for r, total in enumerate(sums)]
    if row.variant == "printed":
        return [x <= 1.0 / row.k, x <= s / (row.k - 1)]
    return [x <= (s / row.k if row.variant == "alpha" else 1.0 / row.k)]


def value(row: Instance, f: NDArray, y: int) -> float:
    """L(y, f)."""
    return supremum(lambda v: _conjugate(row, v, y), f)


def dual_step(row: Instance, q: NDArray, y: int, eta: float) -> NDArray:
    """The minimiser that a coordinate step asks for."""
    return proximal_point(lambda v: _conjugate(row, v, y), q, eta)
