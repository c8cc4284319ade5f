"""CoCoA+ rounds that follow each other: what is known after each, and when they end.

Whoever adds up the workers' changes counts the rounds: the driver, or every worker of one machine
for itself, all with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The next round's sigma is this many times the least one that would have been safe in the last.
SIGMA_OVER_NEEDED = 1.1

Kind = Literal["epoch", "polish"]


class Visited(NamedTuple):
    """What a round did on one shard: its gap, rounding, |change of W|^2, seconds of the call."""

    gap: float
    rounding: float
    change: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Rounds:
    """Visits to all examples, or cheap ones on the support, in parts.

    ``sigma`` is how much longer each worker takes its own steps to be for W, since the others'
    changes are added. As many as there are workers is always safe. A round's dual objective is sure
    to grow if sigma is at least |sum of changes|^2 / sum of |change|^2, which is known after the
    round. Changes agree less and less as training goes on, so the next round takes what the last
    one would have needed, and a little more.

    A pass over the examples, or a ``share`` of them, takes ``per_pass`` rounds. Rounds end after
    ``most``, or with a pass that saw at most ``gap_left`` of the first one's gap. ``number`` counts
    those made, ``gaps`` has the gap of each pass, ``rounding`` adds up as in ``State``.
    """

    kind: Kind
    seed: int
    n_workers: int
    sigma: float
    per_pass: int
    most: int
    gap_left: float = 0.0
    share: float = 1.0
    number: int = 0
    gaps: tuple[float, ...] = ()
    rounding: float = 0.0

    @property
    def over(self) -> bool:
        if self.number >= self.most:
            return True
        between = self.number > 0 and self.number % self.per_pass == 0
        return between and self.gaps[-1] <= self.gap_left * self.gaps[0]

    def after(self, visited: Sequence[Visited], change: NDArray, weights: NDArray) -> Rounds:
        """The rounds after one more, which changed W by ``change`` to ``weights``."""
        from shortlist.solvers.storage.base import squared_norm

        gap = sum(report.gap for report in visited)
        if self.number % self.per_pass == 0:
            gaps = (*self.gaps, gap)
        else:
            gaps = (*self.gaps[:-1], self.gaps[-1] + gap)
        squares = sum(report.change for report in visited)
        adding = (2.0 + math.log2(self.n_workers)) * (squared_norm(weights) + squares)
        rounding = self.rounding + sum(report.rounding for report in visited) + adding
        sigma = self.sigma
        if squares > 0:
            needed = SIGMA_OVER_NEEDED * squared_norm(change) / squares
            sigma = float(np.clip(needed, 1.0, self.n_workers))
        number = self.number + 1
        return replace(self, number=number, gaps=gaps, rounding=rounding, sigma=sigma)
