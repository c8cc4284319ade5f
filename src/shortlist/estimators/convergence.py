"""Telling the user of training that ended short of its tolerance, and where warnings point."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from shortlist._text import Setting
from shortlist.errors import Worded
from shortlist.solvers.records.result import Result

# Features whose examples have a larger mean squared length were probably not scaled.
MAX_SCALED_SQUARE = 1000.0


class NotConvergedWarning(Worded, ConvergenceWarning):
    """scikit-learn's ConvergenceWarning; the command names its parameters as options."""


def warn_unless_converged(
    result: Result, C: float, tol: float, row_squares: NDArray, precision: np.dtype
) -> None:
    """A ConvergenceWarning, at the user's line, unless the gap is at most tol.

    ``row_squares`` are the squared lengths of the examples: features that were not scaled slow
    training down most. ``precision`` is that of training. No warning if the user stopped it.
    """
    if result.relative_gap <= tol:
        return
    known = np.isfinite(result.relative_gap)
    gap = f"the relative duality gap is {result.relative_gap:.2g}, tol={tol:g}"
    if result.status == "max_epochs":
        reached = gap if known else f"the objective can still decrease, tol={tol:g}"
        text = (
            f"not converged after {result.epochs:g} epochs at C={C:g}: {reached}. Raise "
            + Setting("max_epochs")
            + " or "
            + Setting("tol")
            + ", or lower "
            + Setting("C")
            + "."
            + _advice_on_scale(float(np.mean(row_squares)))
        )
    elif result.status == "stalled":
        reached = gap if known else "no further decrease was possible"
        finer = "float64 input or " if precision == np.float32 else ""
        text = (
            f"training stalled at C={C:g}: {reached}. This is as far as {precision.name} goes; "
            f"use {finer}a larger " + Setting("tol") + "."
        )
    else:
        return
    warnings.warn(NotConvergedWarning(text), stacklevel=level_outside())


def _advice_on_scale(mean_square: float) -> str:
    if mean_square <= MAX_SCALED_SQUARE:
        return ""
    return (
        f" The features are large (the squared length of an example is {mean_square:.2g} in the "
        "mean): scale them first, as StandardScaler does; it helps most."
    )


def level_outside() -> int:
    """The stacklevel of the first caller outside this package and scikit-learn's decorator."""
    inside = (__name__.partition(".")[0], "sklearn.callback")
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if not any(_is_within(package, module) for package in inside):
            break
        frame, level = frame.f_back, level + 1
    return level


# scikit-learn does not tell an estimator that it is part of a search, nor how it will be judged:
# clones and set_params look the same with any ``scoring``, and metadata goes to ``score`` only if
# the user routes it. So a search over k by each model's own score is recognised by the frames that
# call. Frames are read, never changed: if scikit-learn renames things, only the warning is missing.
# A note that clones share would not do: a search in other processes copies it, and its warning is
# lost there.


def is_called_from(package: str) -> bool:
    """Whether a function of that package is among the callers."""
    return next(_callers(package), None) is not None


def is_refitted_by_own_score() -> bool:
    """Whether a search of scikit-learn without ``scoring`` is among the callers.

    In the user's process it trains the model that it has chosen. What it measured may have been
    in others, whose warnings do not reach a notebook.
    """
    for frame in _callers("sklearn.model_selection"):
        search: Any = frame.f_locals.get("self")
        if hasattr(search, "scoring") and hasattr(search, "best_params_"):
            return bool(search.scoring is None)
    return False


def _callers(package: str) -> Iterator[FrameType]:
    """The frames of that package's functions among the callers."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if _is_within(package, frame.f_globals.get("__name__", "")):
            yield frame
        frame = frame.f_back


def _is_within(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
