"""CoCoA+ rounds that follow each other: what is known after each, and when they end.

Whoever adds up the workers' changes counts the rounds: the driver, or every worker of one machine
for itself, all with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

# Sigma of the next round, relative to the smallest that would have been safe in the last round.
SIGMA_OVER_NEEDED = 1.1

Kind = Literal["epoch", "polish"]


class Squares(NamedTuple):
    """|change of W|^2, of the features' rows and of the intercept's."""

    features: float
    intercept: float


class Sigma(NamedTuple):
    """Safety factors of a round: workers visit with costs sigma C_i.

    So the sum of their changes does not overshoot. The intercept has its own factor. Its feature
    is the same in all examples, so that workers change it alike: two of them with 256 examples a
    round need 1.2 for it, and 1.01 for the features.
    """

    features: float
    intercept: float


class Visited(NamedTuple):
    """What a round did on one shard: its gap, rounding, examples whose duals moved, change of W.

    ``seconds`` are those of the call so far.
    """

    gap: float
    rounding: float
    moved: float = 0.0
    features: float = 0.0
    intercept: float = 0.0
    seconds: float = 0.0

    def with_change(self, change: Squares) -> Visited:
        return self._replace(features=change.features, intercept=change.intercept)


@dataclass(frozen=True)
class Rounds:
    """Visits to all examples, or cheap ones on the support, in parts.

    With ``sigma`` as large as the number of workers the dual objective is sure to grow. It is also
    if sigma is at least |sum of changes|^2 / sum of |change|^2, for features and intercept apart,
    which is known after the round. Changes agree less and less as training goes on, so the next
    round takes what the last one would have needed, and a little more.

    A pass over the examples, or a ``share`` of them, takes ``parts`` rounds. A further pass is over
    those that the last one moved, and has no more parts than give ``rows_per_part`` to a worker.
    After one round in ``whole_every``, and after the last of a pass, workers add up changes of all
    of W; after the others those of the intercept alone, which is little to send.
    Rounds end after so many ``passes``, or with one that saw at most ``gap_left`` of the first
    one's gap. ``number`` counts those made, ``part`` those of the pass, ``gaps`` has the gap of
    each pass, ``moved`` counts a worker's examples that moved in it, ``rounding`` adds up as in
    ``State``.
    """

    kind: Kind
    seed: int
    n_workers: int
    sigma: Sigma
    parts: int
    passes: int = 1
    gap_left: float = 0.0
    share: float = 1.0
    rows_per_part: int = 1
    whole_every: int = 1
    number: int = 0
    part: int = 0
    gaps: tuple[float, ...] = ()
    moved: float = 0.0
    rounding: float = 0.0

    @property
    def of_pass(self) -> int:
        """The number of the pass that the next round belongs to."""
        return len(self.gaps) - (self.part > 0)

    @property
    def whole(self) -> bool:
        """Whether changes of all of W are added up after the next round."""
        return (self.part + 1) % self.whole_every == 0 or self.part + 1 == self.parts

    @property
    def settled(self) -> bool:
        """Whether all changes so far have been added up."""
        return self.part % self.whole_every == 0

    @property
    def over(self) -> bool:
        if self.part > 0 or not self.gaps:
            return False
        return self.of_pass >= self.passes or self.gaps[-1] <= self.gap_left * self.gaps[0]

    def after(self, visited: Sequence[Visited], change: Squares, norm: float) -> Rounds:
        """The rounds after one more, which changed W by ``change``; ``norm`` is |W|^2 then."""
        gap = sum(report.gap for report in visited)
        gaps = (*self.gaps[: self.of_pass], sum(self.gaps[self.of_pass :], gap))
        moved = self.moved + max(report.moved for report in visited)
        part, parts = self.part + 1, self.parts
        if part == parts:
            part, parts = 0, min(parts, max(1, math.ceil(moved / self.rows_per_part)))
        apart = Squares(
            sum(report.features for report in visited), sum(report.intercept for report in visited)
        )
        adding = (4.0 + math.log2(self.n_workers)) * (norm + sum(apart))
        return replace(
            self,
            sigma=Sigma(*map(self._next_sigma, self.sigma, change, apart)),
            parts=parts,
            number=self.number + 1,
            part=part,
            gaps=gaps,
            moved=moved if part else 0.0,
            rounding=self.rounding + sum(report.rounding for report in visited) + adding,
        )

    def _next_sigma(self, sigma: float, together: float, apart: float) -> float:
        """By |sum of changes|^2 and the sum of |change|^2."""
        if apart <= 0:
            return sigma
        return min(max(SIGMA_OVER_NEEDED * together / apart, 1.0), float(self.n_workers))
