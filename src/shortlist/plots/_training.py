"""How training went: relative duality gap, objective or accuracy against time or epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.plots._style import axes_for, line_style, mark_level, style_curves

_AXIS_LABELS = {
    "seconds": "Time (seconds)",
    "epoch": "Epochs",
    "relative_gap": "Relative duality gap",
    "gap": "Duality gap",
    "primal": "Primal objective",
    "dual": "Dual objective",
    "accuracy": "Accuracy",
}
#: Quantities that fall by orders of magnitude towards zero.
_LOGARITHMIC = frozenset({"relative_gap", "gap"})
#: Rounding may make a gap zero or negative; a logarithmic axis shows it at this level instead.
_MIN_GAP = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ConvergenceCurve:
    """One training run: a name and the recorded history."""

    name: str
    history: Sequence[Any]

    def column(self, key: str) -> NDArray[np.float64]:
        """The recorded values of a quantity, NaN where a record lacks it."""
        values = self._values(key)
        if np.isnan(values).all():
            names = sorted({name for record in self.history for name in _names(record)})
            known = ", ".join(name for name in names if not np.isnan(self._values(name)).all())
            raise ValueError(f"the history of {self.name!r} has no {key!r}; it has {known}")
        return values

    def _values(self, key: str) -> NDArray[np.float64]:
        return np.array([_entry(record, key) for record in self.history], dtype=np.float64)


class ConvergenceDisplay:
    """Training curves of one or several runs.

    Parameters
    ----------
    curves : sequence of ConvergenceCurve

    Attributes
    ----------
    curves : the runs
    lines_, ax_, figure_ : matplotlib's objects, after ``plot``
    """

    def __init__(self, curves: Iterable[ConvergenceCurve]) -> None:
        self.curves = tuple(curves)
        if not self.curves:
            raise ValueError("curves is empty: at least one training run is needed")
        for curve in self.curves:
            if len(curve.history) == 0:
                raise ValueError(f"the history of {curve.name!r} is empty")

    @classmethod
    def from_results(
        cls,
        results: Any,
        *,
        x: str = "seconds",
        y: str = "relative_gap",
        tol: float | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> ConvergenceDisplay:
        """Draw result records: a mapping from names to records, a sequence of them, or one.

        A record has a ``history`` (or is one): a sequence of mappings or objects with entries
        such as seconds, epoch, primal, dual, relative_gap and, where it was measured, accuracy.
        The other parameters are those of ``plot``.
        """
        return cls(_curves(results)).plot(ax, x=x, y=y, tol=tol, **line_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "seconds",
        y: str = "relative_gap",
        tol: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> ConvergenceDisplay:
        """Draw how a fitted estimator converged, from its ``result_``."""
        result = getattr(estimator, "result_", None)
        if result is None:
            raise TypeError(f"{type(estimator).__name__} has no result_: fit it first")
        curve = ConvergenceCurve(name or type(estimator).__name__, _history(result))
        return cls([curve]).plot(ax, x=x, y=y, tol=tol, **line_options)

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "seconds",
        y: str = "relative_gap",
        tol: float | None = None,
        **line_options: Any,
    ) -> ConvergenceDisplay:
        """Draw quantity `y` against quantity `x`, gaps on a logarithmic axis.

        `tol` marks the tolerance the runs aimed at; `line_options` go to ``ax.plot``.
        """
        columns = [(curve.name, curve.column(x), curve.column(y)) for curve in self.curves]
        self.ax_, self.figure_ = axes_for(f"{type(self).__name__}.plot", ax)
        self.lines_ = []
        for name, horizontal, vertical in columns:
            if y in _LOGARITHMIC:
                vertical = np.maximum(vertical, _MIN_GAP)
            recorded = ~np.isnan(horizontal) & ~np.isnan(vertical)
            options: dict[str, Any] = {"label": name, "marker": "o", "markersize": 3}
            options |= line_style(len(self.ax_.lines))
            self.lines_ += self.ax_.plot(
                horizontal[recorded], vertical[recorded], **(options | line_options)
            )
        style_curves(self.ax_)
        if y in _LOGARITHMIC:
            self.ax_.set_yscale("log")
        self.ax_.legend()
        if tol is not None:
            # Drawn after the legend so that the tolerance is named in place, not listed.
            mark_level(self.ax_, tol, f"tol = {tol:g}")
        self.ax_.set(xlabel=_axis_label(x), ylabel=_axis_label(y))
        return self


def _axis_label(key: str) -> str:
    return _AXIS_LABELS.get(key, key.replace("_", " ").capitalize())


def _curves(results: Any) -> list[ConvergenceCurve]:
    if isinstance(results, Mapping) and "history" not in results:
        return [ConvergenceCurve(str(name), _history(run)) for name, run in results.items()]
    if isinstance(results, Sequence) and not _is_history(results):
        runs = [_history(run) for run in results]
        return [ConvergenceCurve(f"run {number}", run) for number, run in enumerate(runs, 1)]
    return [ConvergenceCurve("training", _history(results))]


def _is_history(records: Any) -> bool:
    """Whether these are the records of one run rather than several runs."""
    if not isinstance(records, Sequence) or isinstance(records, str):
        return False
    return all(not isinstance(r, Sequence) and _find_history(r) is None for r in records)


def _find_history(result: Any) -> Any:
    if isinstance(result, Mapping):
        return result.get("history")
    return getattr(result, "history", None)


def _history(result: Any) -> Sequence[Any]:
    history = _find_history(result)
    if history is not None:
        return tuple(history)
    if _is_history(result):
        return tuple(result)
    raise TypeError(
        f"a result must have a history (or be a sequence of records), got {type(result).__name__}"
    )


def _raw(record: Any, key: str) -> Any:
    value = record.get(key) if isinstance(record, Mapping) else getattr(record, key, None)
    return None if value is None else float(value)


def _entry(record: Any, key: str) -> float:
    value = _raw(record, key)
    if value is None and key in ("gap", "relative_gap"):
        primal, dual = _raw(record, "primal"), _raw(record, "dual")
        if primal is not None and dual is not None:
            value = primal - dual
            if key == "relative_gap":
                value /= max(abs(primal), np.finfo(np.float64).tiny)
    return np.nan if value is None else value


def _names(record: Any) -> list[str]:
    if isinstance(record, Mapping):
        return [str(key) for key in record]
    names = [name for name in dir(record) if not name.startswith("_")]
    return [name for name in names if not callable(getattr(record, name))]
