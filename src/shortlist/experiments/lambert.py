"""The Lambert W figure: V(t) = W(exp t), its two approximations, and how exact and fast ours is."""

from dataclasses import dataclass
from timeit import repeat
from typing import Any, ClassVar

import numpy as np
from scipy.special import wrightomega

from shortlist.experiments.report import Prose, Section
from shortlist.experiments.units import Context, Task, Unit
from shortlist.plots.charts import Chart, Series
from shortlist.special import lambertw_exp

_PROSE = Prose("lambert")


@dataclass(frozen=True)
class Measurement:
    """How exact and how fast an implementation of V is."""

    name: str
    largest_error: float
    #: The same in units of the type's precision.
    units: float
    #: The best of several timings, an element.
    nanoseconds: float


@dataclass(frozen=True)
class Measurements:
    """Ours in double and in single precision, and SciPy's in double."""

    double: Measurement
    single: Measurement
    scipy: Measurement


@dataclass(frozen=True)
class LambertTask(Task):
    """Measure errors and times at random arguments."""

    timed: ClassVar[bool] = True
    points: int
    repeats: int
    seed: int

    def run(self, payload: None = None) -> Measurements:
        random = np.random.default_rng(self.seed)
        near = random.normal(scale=4.0, size=self.points // 2)
        t = np.concatenate([near, random.uniform(-80, 700, self.points - len(near))])
        return Measurements(
            self._measure("float64", lambertw_exp, t),
            self._measure("float32", lambertw_exp, t.astype(np.float32)),
            self._measure("SciPy, float64", wrightomega, t),
        )

    def _measure(self, name: str, function: Any, t: Any) -> Measurement:
        # t has the type already: rounding it is not the function's error.
        error = _relative_error(function(t), t)
        seconds = min(repeat(lambda: function(t), number=1, repeat=self.repeats))
        units = error / float(np.finfo(t.dtype).eps)
        return Measurement(name, error, units, 1e9 * seconds / t.size)


def _relative_error(values: Any, t: Any) -> float:
    """The largest relative error, against Newton's method in the widest type there is.

    SciPy's own values are off by a dozen units in the last place here and there.
    """
    t = t.astype(np.longdouble)
    x = given = values.astype(np.longdouble)
    for _ in range(3):
        x = x - (x + np.log(x) - t) * x / (1 + x)
    return float(np.abs(given / x - 1).max())


def run(context: Context, *, points: int = 200_000, repeats: int = 20) -> Section:
    """Compare V with SciPy's Wright omega function, and draw it with its approximations."""
    if context.quick:
        points, repeats = min(points, 2000), 2
    unit = Unit("lambert", LambertTask(points, repeats, context.seed))
    (found,) = context.compute("lambert", [unit], alone=True)
    facts = {"found": found, "points": points}
    return _PROSE.section(
        "lambert",
        facts,
        tables=[_PROSE.written_table("precision", facts)],
        figures_first=True,
        figures=[_PROSE.figure("curves", _charts(), facts)],
        result=found,
    )


def _charts() -> list[Chart]:
    below, above = np.linspace(-10, 0, 121), np.linspace(0, 10, 121)
    beyond_one = above[above >= 1.0]

    def curves(t: Any, name: str, near_t: Any, near: Any) -> list[Series]:
        exact = Series("V(t)", t.tolist(), lambertw_exp(t).tolist())
        return [exact, Series(name, near_t.tolist(), near.tolist(), color=1, dash=1)]

    left = curves(below, "exp t", below, np.exp(below))
    right = curves(above, "t − log t", beyond_one, beyond_one - np.log(beyond_one))
    return [Chart("t", "V(t)", left, "t < 0", y_scale="log"), Chart("t", "V(t)", right, "t > 0")]
