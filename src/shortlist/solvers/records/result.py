"""What a solver reports: an immutable record with the certificate of its solution."""

import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from shortlist.solvers.records.certificate import distance_to_optimum

# A gap that is no larger a share of the objective is rounding in double.
MIN_RESOLVED_GAP = 1e-13


class Status(StrEnum):
    """How training, or a part of it, ended. ``Result.status`` holds the value, a plain string."""

    CONVERGED = "converged"
    MAX_EPOCHS = "max_epochs"
    # Ctrl-C.
    INTERRUPTED = "interrupted"
    # By a callback.
    STOPPED = "stopped"
    # Rounding allows no further progress.
    STALLED = "stalled"
    # A part only: another way is expected to take less time.
    SLOW = "slow"
    # A part only: single precision is too coarse for the gap asked for.
    COARSE = "coarse"
    # A part only: the steps it was given are used up.
    STEPS = "steps"


class _Bounds:
    """The optimum lies between ``dual`` and ``primal``; P(0) is ``at_zero``."""

    primal: float
    dual: float
    at_zero: float

    @property
    def gap(self) -> float:
        """P - D, never negative."""
        return max(self.primal - self.dual, 0.0) if not math.isnan(self.dual) else math.nan

    @property
    def relative_gap(self) -> float:
        """The gap's share of the primal objective."""
        return self.gap / self.primal if self.primal > 0 else self.gap

    @property
    def gain_gap(self) -> float:
        """The gap's share of what training can gain at most, P(0) - D.

        Where C is small the objective is nearly P(0) whatever the model, and a small share of it
        says little.
        """
        gain = self.at_zero - self.dual
        return self.gap / gain if gain > 0 else self.relative_gap

    def within(self, tol: float) -> bool:
        """Whether the gap is at most ``tol`` of both the objective and the possible gain.

        Where nothing can be gained, W = 0 being a solution, the gain is rounding too.
        """
        relative = self.relative_gap
        return relative <= tol and (self.gain_gap <= tol or relative <= MIN_RESOLVED_GAP)


@dataclass(frozen=True)
class Evaluation(_Bounds):
    """The best primal and the best dual bound known at one moment of a run."""

    epoch: float
    seconds: float
    primal: float
    dual: float
    at_zero: float = math.nan
    accuracy: float | None = None


@dataclass(frozen=True)
class Result(_Bounds):
    """How training ended.

    ``gap = primal - dual`` bounds how far the solution's objective is from the optimum; it is
    recomputed from the solution itself. ``relative_gap`` is its share of the primal objective,
    ``gain_gap`` its share of what training can gain, P(0) - dual; converged means that both are
    at most tol, or that nothing is left to gain (see ``Run.solved``). For losses without a dual
    (the truncated entropy) ``dual`` is NaN.

    ``distance`` bounds |W - W*|, how far the weights are from those of the optimum: between the
    roots of the gap and of twice the gap, and of what rounding adds. It is NaN without a dual, and
    with an intercept that is not regularised.

    ``status`` is "converged", "max_epochs", "interrupted" (Ctrl-C), "stopped" (by a callback) or
    "stalled" (rounding allows no further progress). An epoch is one visit to every example or,
    for phases that work otherwise, the same amount of multiplication. ``seconds`` leaves out what
    compiling kernels takes on their first use. ``history`` holds an :class:`Evaluation` for each
    time the gap was computed. ``by_descent`` tells whether a descent had a part in it: SDCA alone
    was slow.
    """

    primal: float
    dual: float
    epochs: float
    seconds: float
    status: str
    solver: str
    history: tuple[Evaluation, ...] = ()
    at_zero: float = math.nan
    distance: float = math.nan
    by_descent: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        derived = ("gap", "relative_gap", "gain_gap")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Result":
        """The inverse of :meth:`to_dict`."""
        derived = ("gap", "relative_gap", "gain_gap", "history")
        fields = {name: value for name, value in data.items() if name not in derived}
        found = cls(**fields, history=tuple(Evaluation(**e) for e in data.get("history", ())))
        # Files of earlier versions do not tell these.
        if "by_descent" not in data:
            found = replace(found, by_descent="l-bfgs" in found.solver)
        if "distance" not in data:
            found = replace(found, distance=distance_to_optimum(found.gap))
        return found
