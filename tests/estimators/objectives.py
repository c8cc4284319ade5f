"""The objective of a fitted linear model, as the formula reads and without the library."""

import math

import numpy as np
from numpy.typing import NDArray

from tests import references
from tests.instances import Instance
from tests.solvers.problems import make_data

NAMES = np.array(["ant", "bee", "cat", "dog"])


def named_data(n: int = 60, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Four overlapping clusters in five dimensions, labelled by name."""
    X, y = make_data(n=n, seed=seed)
    return X, NAMES[y]


def objective(
    loss: str,
    coef: NDArray,
    X: NDArray,
    codes: NDArray,
    cost: NDArray | float,
    *,
    k: int = 1,
    intercept: NDArray | float = 0.0,
    intercept_scaling: float = 1.0,
) -> float:
    """1/2 |W|^2 + sum_i C_i L(y_i, W'x_i), the intercept's weight in W among the others."""
    row = Instance("entropy" if loss == "softmax" else loss, m=len(coef), k=k)
    bias = np.broadcast_to(intercept, len(coef))
    scores = np.asarray(X, float) @ np.asarray(coef, float).T + bias
    values = [references.value(row, s, label) for s, label in zip(scores, codes, strict=True)]
    norm = (np.asarray(coef, float) ** 2).sum() + ((bias / intercept_scaling) ** 2).sum()
    return 0.5 * float(norm) + float(np.sum(np.broadcast_to(cost, len(codes)) * values))


def certified_distance(*models) -> float:
    """The most two models' weights can differ by, from their certificates.

    The primal is 1-strongly convex: W is within sqrt(2 gap) of the optimum.
    """
    return sum(math.sqrt(2 * max(model.result_.gap, 0.0)) for model in models)
