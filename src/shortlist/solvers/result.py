"""What a solver reports: an immutable record with the certificate of its solution."""

from dataclasses import asdict, dataclass
from typing import Any


class _Bounds:
    """The optimum lies between ``dual`` and ``primal``."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return self.gap / self.primal if self.primal > 0 else max(self.gap, 0.0)


@dataclass(frozen=True)
class Evaluation(_Bounds):
    """The exact state of a run at one moment."""

    epoch: float
    seconds: float
    primal: float
    dual: float
    accuracy: float | None = None


@dataclass(frozen=True)
class Result(_Bounds):
    """How training ended.

    ``gap = primal - dual`` bounds how far the solution's objective is from the optimum; it is
    recomputed from the solution itself. ``relative_gap`` is its share of the primal objective.
    For losses without a dual (the truncated entropy) ``dual`` is NaN.

    ``status`` is "converged", "max_epochs", "interrupted" (Ctrl-C), "stopped" (by a callback) or
    "stalled" (rounding allows no further progress). An epoch is one visit to every example or,
    for phases that work otherwise, the same amount of multiplication. ``seconds`` leaves out what
    compiling kernels takes on their first use. ``history`` holds an :class:`Evaluation` for each
    time the gap was computed.
    """

    primal: float
    dual: float
    epochs: float
    seconds: float
    status: str
    solver: str
    history: tuple[Evaluation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "gap": self.gap, "relative_gap": self.relative_gap}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Result":
        """The inverse of :meth:`to_dict`."""
        fields = {k: v for k, v in data.items() if k not in ("gap", "relative_gap", "history")}
        return cls(**fields, history=tuple(Evaluation(**e) for e in data.get("history", ())))
