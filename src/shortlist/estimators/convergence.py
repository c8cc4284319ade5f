"""Telling the user of training that ended short of its tolerance."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from shortlist._text import Setting
from shortlist.errors import Worded
from shortlist.estimators.callers import level_outside
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
            + _advice_on_precision(result, C, tol, row_squares, precision)
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


def _advice_on_precision(
    result: Result, C: float, tol: float, row_squares: NDArray, precision: np.dtype
) -> str:
    """Advice if rounded scores change the objective by more than the gap asked for, else "".

    A score is rounded by about a unit in the last place of |x| |W|, and |W|^2 is at most 2 P. The
    hinge on CLINC150 at C = 1000 is not solved in 100 seconds in single precision, and in 3 in
    double.
    """
    if precision != np.float32 or not np.isfinite(result.relative_gap):
        return ""
    unit = 0.5 * float(np.finfo(np.float32).eps)
    rounding = unit * C * float(np.sqrt(row_squares).sum()) * float(np.sqrt(2.0 * result.primal))
    if rounding <= tol * result.primal:
        return ""
    return " float32 may be too coarse for this C: try float64 input."


def _advice_on_scale(mean_square: float) -> str:
    if mean_square <= MAX_SCALED_SQUARE:
        return ""
    return (
        f" The features are large (the squared length of an example is {mean_square:.2g} in the "
        "mean): scale them first, as StandardScaler does; it helps most."
    )
