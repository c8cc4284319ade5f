"""Fits along a range of C, each from the duals of the one before: what the estimators share."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from shortlist.estimators.training import check_scale, make_costs
from shortlist.solvers.path import carry_over
from shortlist.solvers.problem import Problem
from shortlist.solvers.rows import State
from shortlist.solvers.train import Solution

Model = TypeVar("Model")


def check_path(Cs: Any) -> list[float]:
    """The values of C as numbers, in the order given; errors name the value that is wrong."""
    if isinstance(Cs, str) or not isinstance(Cs, Iterable):
        raise TypeError(f"Cs must be a list of numbers; got {Cs!r}")
    wanted = list(Cs)
    if not wanted:
        raise ValueError("Cs must hold at least one value")
    for C in wanted:
        real = isinstance(C, Real) and not isinstance(C, bool)
        if not real or not 0 < float(C) < np.inf:
            raise ValueError(f"every C in Cs must be a positive finite number; got {C!r}")
    return [float(C) for C in wanted]


def follow_path(
    problem: Problem,
    Cs: list[float],
    train: Callable[[Problem, float, State | None], Solution],
    model_of: Callable[[float, Solution], Model],
    callback: Callable[[Model], object] | None,
) -> list[Model]:
    """One model for every C, trained in increasing order and returned in the order given.

    The costs of ``problem`` are those at C = 1. After an interrupt only the models reached so far
    are returned.
    """
    check_scale(problem.rows, make_costs(problem.costs.y, problem.costs.cost, max(Cs)))
    models: dict[float, Model] = {}
    state: State | None = None
    last = 1.0
    try:
        for C in sorted(set(Cs)):
            step = replace(problem, costs=make_costs(problem.costs.y, problem.costs.cost, C))
            if state is not None:
                carry_over(step, state, C / last)
            solution = train(step, C, state)
            state, last = solution.state, C
            models[C] = model_of(C, solution)
            stop = callback is not None and callback(models[C]) is True
            if stop or solution.result.status == "interrupted":
                break
    except KeyboardInterrupt:  # between two fits; within one, training ends by itself
        if not models:
            raise
    returned: set[float] = set()
    answer = []
    for C in Cs:
        if C in models:
            # A value asked for twice gives two models, so that no two share their arrays.
            answer.append(copy.deepcopy(models[C]) if C in returned else models[C])
            returned.add(C)
    return answer


def copy_fitted(source: Any, target: Any, *names: str) -> None:
    """Copies of those of the named attributes that the source has."""
    for name in names:
        if hasattr(source, name):
            setattr(target, name, copy.copy(getattr(source, name)))
