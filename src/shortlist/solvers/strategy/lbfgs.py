"""L-BFGS on top of a model of the Hessian: the steps alone. The caller decides when to stop.

In exact arithmetic these are the steps of plain L-BFGS in variables z = R w, where the model is
R'R.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.records.certificate import Point
from shortlist.solvers.strategy.hessian import Identity, Model

# Pairs of steps and changes of the gradient that the inverse Hessian is modelled from.
MAX_PAIRS = 12
# The conditions of Wolfe on a step. The objective decreases by at least the first share of what its
# slope promises, and at most the second share of the slope is left.
MIN_DECREASE_SHARE, MAX_SLOPE_LEFT = 1e-4, 0.9
# Lengths of one step that are tried, an evaluation each.
MAX_LENGTHS_TRIED = 25
# A step is idle if it decreases the objective by no more than IDLE_DECREASE times its rounding. At
# most MAX_IDLE_STEPS idle steps in a row are taken; one more ends the descent.
MAX_IDLE_STEPS = 5
IDLE_DECREASE = 8.0
# Where a length is too short, so many times it is tried, until one is too long. Between a short and
# a long one the next lies within these shares of the way from the short one.
STEP_GROWTH, MIN_SHARE_OF_WAY, MAX_SHARE_OF_WAY = 4.0, 0.1, 0.7
# Give up when the two are as close as this share of the long one.
MIN_WIDTH = 1e-10
# Pairs with less curvature, relative to the squared change of the gradient, are rounding.
MIN_CURVATURE_OF_PAIR = 1e-16


Objective = Callable[[NDArray], Point]


def lbfgs(
    objective: Objective, start: Point, noise: float, model: Model | None = None
) -> Iterator[Point]:
    """Points of decreasing value from ``start`` on; ends where no step decreases it further.

    ``noise`` is the relative rounding of values: differences below it decide nothing. ``model`` is
    a model of the Hessian.
    """
    model = model if model is not None else Identity()
    steps: list[NDArray] = []
    changes: list[NDArray] = []
    curvatures: list[float] = []
    point = start
    idle = 0
    while True:
        direction = _direction(point.gradient, steps, changes, curvatures, model)
        slope = float(np.vdot(point.gradient, direction))
        if not slope < 0.0:
            if not steps:
                return
            steps, changes, curvatures = [], [], []
            continue
        # The first direction has no curvature to scale it, so its length is a guess.
        first = 1.0 if steps or model.exact else min(1.0, 1.0 / float(np.sqrt(-slope)))
        found = _search(objective, point, direction, slope, first, noise)
        if found is None:
            if not steps:
                return
            steps, changes, curvatures = [], [], []
            continue
        least = IDLE_DECREASE * noise * abs(point.value)
        idle = idle + 1 if found.value >= point.value - least else 0
        if idle > MAX_IDLE_STEPS:
            return
        step, change = found.place - point.place, found.gradient - point.gradient
        curvature = float(np.vdot(step, change))
        if curvature > MIN_CURVATURE_OF_PAIR * float(np.vdot(change, change)):
            steps.append(step)
            changes.append(change)
            curvatures.append(curvature)
            if len(steps) > MAX_PAIRS:
                del steps[0], changes[0], curvatures[0]
        point = found
        yield point


def _direction(
    gradient: NDArray,
    steps: list[NDArray],
    changes: list[NDArray],
    curvatures: list[float],
    model: Model,
) -> NDArray:
    """The two-loop recursion."""
    direction = -gradient
    factors = []
    for step, change, curvature in zip(
        reversed(steps), reversed(changes), reversed(curvatures), strict=True
    ):
        factor = float(np.vdot(step, direction)) / curvature
        factors.append(factor)
        direction -= direction.dtype.type(factor) * change
    direction = np.asarray(model.solve(direction), direction.dtype)
    if steps and not model.exact:
        scale = curvatures[-1] / float(np.vdot(changes[-1], model.solve(changes[-1])))
        direction = direction * direction.dtype.type(scale)
    for step, change, curvature, factor in zip(
        steps, changes, curvatures, reversed(factors), strict=True
    ):
        correction = factor - float(np.vdot(change, direction)) / curvature
        direction += direction.dtype.type(correction) * step
    return direction


def _search(
    objective: Objective,
    point: Point,
    direction: NDArray,
    slope: float,
    step: float,
    noise: float,
) -> Point | None:
    """A point on the ray that meets the conditions of Wolfe; None if there is no decrease."""
    slack = noise * abs(point.value)
    low, low_value, low_slope, high = 0.0, point.value, slope, np.inf
    best: Point | None = None
    for _ in range(MAX_LENGTHS_TRIED):
        trial = objective(point.place + direction.dtype.type(step) * direction)
        trial_slope = float(np.vdot(trial.gradient, direction))
        enough = trial.value <= point.value + MIN_DECREASE_SHARE * step * slope + slack
        if not (enough and np.isfinite(trial.value)):
            high = step
            step = interpolate(low, low_value, low_slope, high, trial.value)
        elif trial_slope < MAX_SLOPE_LEFT * slope:
            best = trial
            low, low_value, low_slope = step, trial.value, trial_slope
            step = 0.5 * (low + high) if np.isfinite(high) else STEP_GROWTH * step
        else:
            return trial
        if np.isfinite(high) and high - low <= MIN_WIDTH * high:
            break
    return best if best is not None and best.value < point.value else None


def interpolate(low: float, value: float, slope: float, high: float, at_high: float) -> float:
    """The minimum of the parabola through both ends, kept away from them."""
    width = high - low
    excess = at_high - value - slope * width
    inner = -0.5 * slope * width * width / excess if np.isfinite(excess) and excess > 0 else 0.0
    return low + min(max(inner, MIN_SHARE_OF_WAY * width), MAX_SHARE_OF_WAY * width)
