"""The values of C a search visits: the grid, its growth at the edges, and the choice per k."""

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.estimators.paths import check_path

# Accuracies are quotients of counts: what differs by less than this differs by rounding alone.
_SAME = 1e-12
# The paper's range.
_LOWEST, _HIGHEST = 1e-5, 1e3


def grid_of(Cs: Any) -> list[float]:
    """The values of C in increasing order, from a list of them or the number of them."""
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs must be at least 1 when it is a number of values; got {Cs}")
        return [float(C) for C in np.geomspace(_LOWEST, _HIGHEST, int(Cs))]
    if isinstance(Cs, str | bytes | Real) or not hasattr(Cs, "__iter__"):
        raise TypeError(f"Cs must be a list of values of C or how many to try; got {Cs!r}")
    return sorted(set(check_path(Cs)))


def best_row(means: NDArray) -> int:
    """The first of the largest entries: with rows in increasing C, the strongest regularisation."""
    return int(np.flatnonzero(means >= means.max() - _SAME)[0])


@dataclass
class Grid:
    """One family's values of C and their accuracies, growing where the best is at an edge.

    ``scores[C]`` has shape (folds, ks). An edge is extended, by the ratio of its two last values
    but at most tenfold, while the best C of some k lies on it and the last extension raised that
    k's accuracy; at most ``limit`` times on each side. Where all values do equally well, short
    of perfection, the best may lie beyond either edge.
    """

    start: list[float]
    limit: int
    scores: dict[float, NDArray] = field(default_factory=dict)
    _added: dict[str, int] = field(default_factory=lambda: {"low": 0, "high": 0})
    _best_before: dict[str, NDArray] = field(default_factory=dict)

    @property
    def Cs(self) -> list[float]:
        return sorted(self.scores)

    def means(self) -> NDArray:
        """Mean accuracy over folds, shape (values of C, ks)."""
        return np.array([self.scores[C].mean(axis=0) for C in self.Cs])

    def pending(self) -> list[float]:
        """The values to evaluate next: at first the grid, then extensions, then none."""
        if not self.scores:
            return list(self.start)
        return [self._extend(side) for side in ("low", "high") if self._wants(side)]

    def open_edges(self) -> dict[str, NDArray]:
        """For each side where the limit alone stopped the growth, which ks would go on."""
        if self.limit == 0:
            return {}
        return {
            side: wanting
            for side in ("low", "high")
            if self._added[side] >= self.limit and (wanting := self._at_edge(side)).any()
        }

    def _wants(self, side: str) -> bool:
        return self._added[side] < self.limit and bool(self._at_edge(side).any())

    def _at_edge(self, side: str) -> NDArray:
        """Which ks have their best C on this edge, and did gain when it was last extended."""
        means = self.means()
        edge = 0 if side == "low" else len(means) - 1
        chosen = np.array([best_row(column) for column in means.T])
        flat = (np.ptp(means, axis=0) <= _SAME) & (means[0] < 1)
        wanting = (chosen == edge) | flat
        if side in self._best_before:
            wanting &= means.max(axis=0) > self._best_before[side] + _SAME
        return wanting

    def _extend(self, side: str) -> float:
        Cs = self.Cs
        ends = Cs[:2] if side == "low" else Cs[-2:]
        ratio = min(ends[1] / ends[0], 10.0) if len(Cs) > 1 else 10.0
        self._added[side] += 1
        self._best_before[side] = self.means().max(axis=0)
        return Cs[0] / ratio if side == "low" else Cs[-1] * ratio
