"""The expected hinge losses as linear programs, solved by HiGHS.

    top-k hinge beta    L(y, g) = min  l + 1/k sum_j x_j,   l >= 0
    top-k hinge alpha   L(y, g) = min  max(0, l + 1/k sum_j x_j),   l free
        over x_j >= max(0, 1 + g_j - g_y - l), j != y
    one-vs-all hinge    L(y, g) = min  sum_j x_j  over x_j >= max(0, 1 -+ g_j)

The first two write the sum of the k largest terms by its dual, k l + sum_j max(0, term_j - l). The
printed hinge bounds two such means; weights of ranks are a mixture of means over k; margins take
the place of 1.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from shortlist.calibration._minimise import Optimum, centred, risk_and_gradient, with_exact_ties
from shortlist.losses import Loss
from shortlist.losses.hinge_projection import AlphaHinge, BetaHinge
from shortlist.losses.margins import WithMargins
from shortlist.losses.ordered import OrderedHinge
from shortlist.losses.ova import OVAHinge
from shortlist.losses.printed import PrintedHinge

Vector = NDArray[np.float64]
Margins = NDArray[np.float64]
#: The largest error of the risk that the solver's tolerances of 1e-10 allow.
_MAX_RISK_ERROR = 1e-8
#: Scores closer than this count as tied: the solver's tolerances cannot separate them.
_NEAR_A_TIE = 1e-9


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


def hinge_infimum(loss: Loss, p: Vector, shortlist: NDArray[np.bool_] | None = None) -> Optimum:
    """Minimise the expected hinge loss over all scores, or those with this shortlist on top."""
    program = _Program(len(p))
    _add_expected_loss(loss.spec, program, p, np.ones((len(p), len(p))))
    if shortlist is not None:
        for i in np.flatnonzero(shortlist).tolist():
            for j in np.flatnonzero(~shortlist).tolist():
                program.at_most({j: 1.0, i: -1.0}, 0.0)
    scores = centred(loss, program.solve()[: len(p)])
    if shortlist is not None:
        scores = with_exact_ties(scores, shortlist, ~shortlist, _NEAR_A_TIE)
    risk, _ = risk_and_gradient(loss, scores, p)
    return Optimum(scores, risk, "linear program", _MAX_RISK_ERROR)


@singledispatch
def _add_expected_loss(spec: Any, program: _Program, p: Vector, margins: Margins) -> None:
    name = type(spec).__name__
    raise ValueError(
        f"no way to minimise {name}: it has kinks, and its linear program is not known"
    )


@_add_expected_loss.register
def _(spec: OVAHinge, program: _Program, p: Vector, margins: Margins) -> None:
    for j, probability in enumerate(p):
        as_label = program.variable(probability)
        as_other = program.variable(1.0 - probability)
        program.at_most({j: -1.0, as_label: -1.0}, -1.0)
        program.at_most({j: 1.0, as_other: -1.0}, -1.0)


@_add_expected_loss.register
def _(spec: BetaHinge, program: _Program, p: Vector, margins: Margins) -> None:
    for y, probability in enumerate(p):
        _add_positive_mean(program, y, margins[y], spec.k, probability)


@_add_expected_loss.register
def _(spec: AlphaHinge, program: _Program, p: Vector, margins: Margins) -> None:
    for y, probability in enumerate(p):
        value = program.variable(probability)
        _add_bound(program, value, {spec.k: 1.0}, y, margins[y])


@_add_expected_loss.register
def _(spec: PrintedHinge, program: _Program, p: Vector, margins: Margins) -> None:
    for y, probability in enumerate(p):
        value = program.variable(probability)
        _add_bound(program, value, {spec.k: 1.0}, y, margins[y])
        _add_bound(program, value, {spec.k - 1: 1.0 - 1.0 / spec.k}, y, margins[y])


@_add_expected_loss.register
def _(spec: OrderedHinge, program: _Program, p: Vector, margins: Margins) -> None:
    drops = spec.weights - np.append(spec.weights[1:], 0.0)
    shares = {k: k * drop for k, drop in enumerate(drops.tolist(), start=1) if drop > 0}
    for y, probability in enumerate(p):
        if spec.joint:
            value = program.variable(probability)
            _add_bound(program, value, shares, y, margins[y])
        else:
            for k, share in shares.items():
                _add_positive_mean(program, y, margins[y], k, probability * share)


@_add_expected_loss.register
def _(spec: WithMargins, program: _Program, p: Vector, margins: Margins) -> None:
    _add_expected_loss(spec.base, program, p, margins + spec.offsets)


def _add_positive_mean(
    program: _Program, y: int, margins: Vector, k: int, probability: float
) -> None:
    """At this cost, the mean of the k largest positive parts of the terms."""
    level = program.variable(probability)
    _add_excesses(program, y, margins, level, probability / k)


def _add_bound(
    program: _Program, value: int, shares: dict[int, float], y: int, margins: Vector
) -> None:
    """Require value >= sum over k of shares[k] times the mean of the k largest terms."""
    mean = {value: -1.0}
    for k, share in shares.items():
        level = program.variable(0.0, lower=None)
        mean[level] = share
        mean |= dict.fromkeys(_add_excesses(program, y, margins, level, 0.0), share / k)
    program.at_most(mean, 0.0)


def _add_excesses(program: _Program, y: int, margins: Vector, level: int, cost: float) -> list[int]:
    """Variables x_j >= margin_j + g_j - g_y - level for j != y, each at this cost."""
    excesses = []
    for j, margin in enumerate(margins.tolist()):
        if j != y:
            excess = program.variable(cost)
            program.at_most({j: 1.0, y: -1.0, level: -1.0, excess: -1.0}, -margin)
            excesses.append(excess)
    return excesses
