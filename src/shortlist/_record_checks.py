"""Checks of arrays and of the record of training, for files that hold them.

ValueError or TypeError says what is wrong.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._parameters import is_real

# What ``Result.status`` may say.
_STATUSES = frozenset(["converged", "max_epochs", "interrupted", "stopped", "stalled"])
# By rounding, a dual value may exceed the primal one by this share, and an accuracy 1 by as much.
ROUNDING_SHARE = 1e-4


def require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(message)


def check_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any = None) -> np.ndarray:
    """Return an array of finite floats, checked to have this shape and precision."""
    require(isinstance(array, np.ndarray), f"{name} is not an array")
    require(array.dtype in (np.float32, np.float64), f"{name} is of type {array.dtype}")
    require(dtype is None or array.dtype == dtype, f"{name} is of type {array.dtype}")
    require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    require(np.isfinite(array).all(), f"{name} holds a value that is not finite")
    return array


def check_number(name: str, value: Any) -> None:
    valid = is_real(value) and 0 <= float(value) < math.inf
    require(valid, f"{name} in the training's record is {value!r}")


def check_result(result: Any, convex: bool) -> None:
    """Check the record of training: numbers that a solver could have reported."""
    from .solvers import Result  # which loads numba

    require(isinstance(result, dict), "the training's record is not a dictionary")
    record = Result.from_dict(result)
    if record.status == "imported":  # made from a torch layer: nothing is known of its training
        require(math.isnan(record.primal) and math.isnan(record.dual), "it was never trained")
        require(not record.history and record.epochs == 0, "it was never trained")
        return
    require(record.status in _STATUSES, f"the training's status is {record.status!r}")
    require(isinstance(record.solver, str), "the solver's name is not text")
    require(isinstance(record.by_descent, bool), f"by_descent is {record.by_descent!r}")
    moments: list[Any] = [record, *record.history]
    for moment in moments:
        check_number("primal", moment.primal)
        check_number("seconds", moment.seconds)
        if convex:
            require(is_real(moment.dual) and math.isfinite(moment.dual), "dual is not finite")
            slack = ROUNDING_SHARE * max(1.0, abs(moment.primal))
            require(moment.dual <= moment.primal + slack, "dual is larger than primal")
        else:
            require(isinstance(moment.dual, float), "dual is not a number")
    nearest = math.sqrt(record.gap) * (1 - ROUNDING_SHARE)
    require(
        is_real(record.distance) and not record.distance < nearest,
        f"the distance to the optimum is {record.distance!r}, less than the gap allows",
    )
    check_number("epochs", record.epochs)
    for moment in record.history:
        check_number("epoch", moment.epoch)
        accuracy = moment.accuracy
        valid = accuracy is None or (is_real(accuracy) and 0 <= accuracy <= 1 + ROUNDING_SHARE)
        require(valid, f"an accuracy in the training's record is {accuracy!r}")
    for name in ("gap", "relative_gap", "gain_gap"):
        if name in result:
            stated, computed = result[name], getattr(record, name)
            same = stated == computed or (stated != stated and computed != computed)
            require(same, f"{name} is not what primal and dual say")
