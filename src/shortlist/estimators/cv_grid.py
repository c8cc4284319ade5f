"""The values of C a search visits: the grid, its early end, its growth and its refinement."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._parameters import is_integer
from shortlist.estimators.paths import check_path

# Accuracies are quotients of counts. Smaller differences between them are rounding errors.
ACCURACY_ROUNDING = 1e-12
# The largest ratio of a value of C that is added to the one at the end of the grid.
MAX_RATIO = 10.0
# Ranges of C as powers of ten. A grid of at most 9 values covers the paper's range, one a decade.
# A finer grid covers the range of the linear probes of DINOv2 and DINOv3.
_PAPER_EXPONENTS, _MAX_PAPER_VALUES = (-5.0, 3.0), 9
_PROBE_EXPONENTS = (-6.0, 5.0)


def grid_of(Cs: Any) -> list[float]:
    """The values of C in increasing order, from a list of them or the number of them."""
    if is_integer(Cs):
        if Cs < 1:
            raise ValueError(f"Cs must be at least 1 when it is a number of values; got {Cs}")
        ends = _PAPER_EXPONENTS if Cs <= _MAX_PAPER_VALUES else _PROBE_EXPONENTS
        return [float(C) for C in np.logspace(*ends, int(Cs))]
    if isinstance(Cs, str | bytes | Real) or not hasattr(Cs, "__iter__"):
        raise TypeError(f"Cs must be a list of values of C or how many to try; got {Cs!r}")
    return sorted(set(check_path(Cs)))


def best_row(means: NDArray) -> int:
    """The first of the largest entries: with rows in increasing C, the strongest regularisation."""
    return int(np.flatnonzero(means >= means.max() - ACCURACY_ROUNDING)[0])


@dataclass
class Grid:
    """One family's values of C and their accuracies.

    ``scores[C]`` has shape (folds, columns), a column for each k or one for a scorer. Values are
    visited in increasing order. With ``patience``, the rest are left out once so many in a row
    were worse than the best before them, in every column.

    Then an edge is extended, by the ratio of its two last values but at most tenfold, while the
    best C of some column lies on it and the last extension raised that column's best; at most
    ``limit`` times on each side. If all values tie below 100 %, both edges are extended. At last,
    ``refine`` times, both sides of the best C of each column are halved, in logarithm.
    """

    start: list[float]
    limit: int
    patience: int | None = None
    refine: int = 0
    scores: dict[float, NDArray] = field(default_factory=dict)
    _added: dict[str, int] = field(default_factory=lambda: {"low": 0, "high": 0})
    _best_before: dict[str, NDArray] = field(default_factory=dict)
    _refined: int = 0

    @property
    def Cs(self) -> list[float]:
        return sorted(self.scores)

    def means(self) -> NDArray:
        """Mean over folds, shape (values of C, columns)."""
        return np.array([self.scores[C].mean(axis=0) for C in self.Cs])

    def pending(self) -> list[float]:
        """The values to evaluate next: the grid, then extensions, then refinements, then none."""
        if coming := self._coming():
            return coming
        if not self._refined:
            extensions = [self._extend(side) for side in ("low", "high") if self._wants(side)]
            if extensions:
                return extensions
        while self._refined < self.refine:
            self._refined += 1
            if between := self._beside_the_best():
                return between
        return []

    def open_edges(self) -> dict[str, NDArray]:
        """The ends of the grid that would grow but for the limit, and for which columns."""
        if self.limit == 0:
            return {}
        return {
            side: wanting
            for side in ("low", "high")
            if self._added[side] >= self.limit and (wanting := self._at_edge(side)).any()
        }

    def _coming(self) -> list[float]:
        """What is left of the grid; with patience one value at a time."""
        left = [C for C in self.start if C not in self.scores]
        if self.patience is None:
            return left
        return [] if self._out_of_patience(self.patience) else left[:1]

    def _out_of_patience(self, patience: int) -> bool:
        means = np.array([self.scores[C].mean(axis=0) for C in self.start if C in self.scores])
        if len(means) <= patience:
            return False
        best_before = means[:-patience].max(axis=0)
        return bool((means[-patience:] < best_before - ACCURACY_ROUNDING).all())

    def _beside_the_best(self) -> list[float]:
        Cs, means = self.Cs, self.means()
        found = set()
        for row in {best_row(column) for column in means.T}:
            for neighbour in (row - 1, row + 1):
                if 0 <= neighbour < len(Cs):
                    found.add(float(np.sqrt(Cs[row]) * np.sqrt(Cs[neighbour])))
        return sorted(found - set(Cs))

    def _wants(self, side: str) -> bool:
        return self._added[side] < self.limit and bool(self._at_edge(side).any())

    def _at_edge(self, side: str) -> NDArray:
        """Which columns have their best C at this end, and gained by its last extension."""
        means = self.means()
        edge = 0 if side == "low" else len(means) - 1
        chosen = np.array([best_row(column) for column in means.T])
        flat = (np.ptp(means, axis=0) <= ACCURACY_ROUNDING) & (means[0] < 1)
        wanting = (chosen == edge) | flat
        if side in self._best_before:
            wanting &= means.max(axis=0) > self._best_before[side] + ACCURACY_ROUNDING
        return wanting

    def _extend(self, side: str) -> float:
        Cs = self.Cs
        ends = Cs[:2] if side == "low" else Cs[-2:]
        ratio = min(ends[1] / ends[0], MAX_RATIO) if len(Cs) > 1 else MAX_RATIO
        self._added[side] += 1
        self._best_before[side] = self.means().max(axis=0)
        return Cs[0] / ratio if side == "low" else Cs[-1] * ratio
