"""The weakest setting of a solver that reaches a goal: what a fair race gives to every rival."""

from collections.abc import Callable

#: The place on a ladder is searched to this share of itself.
RESOLUTION = 0.05


class Search:
    """Looks for the weakest setting on a ladder that reaches a goal; every run is made once.

    ``run(place)`` is the value that the setting at a place of the ladder reaches, smaller is
    better, and its seconds. A run that takes longer than ``patience`` and misses the goal is the
    last one.
    """

    def __init__(
        self, run: Callable[[int], tuple[float, float]], length: int, patience: float
    ) -> None:
        self.run, self.length, self.patience = run, length, patience
        self.tried: dict[int, tuple[float, float]] = {}

    def at(self, place: int) -> tuple[float, float]:
        """Value and seconds of the setting at this place."""
        if place not in self.tried:
            self.tried[place] = self.run(place)
        return self.tried[place]

    def weakest(self, goal: float) -> int | None:
        """The place of the weakest setting that reaches the goal; None if it was given up.

        A ladder's settings reach a goal from some place on, so far as solvers are monotone.
        """
        last = self.length - 1
        enough = 0
        while self.at(enough)[0] > goal:
            if self.at(enough)[1] > self.patience or enough == last:
                return None
            enough = min(2 * enough + 1, last)
        too_little = max((p for p, (value, _) in self.tried.items() if value > goal), default=-1)
        too_little = min(too_little, enough - 1)
        while enough - too_little > max(1, RESOLUTION * enough):
            middle = (enough + too_little) // 2
            if self.at(middle)[0] <= goal:
                enough = middle
            else:
                too_little = middle
        return enough

    def best_effort(self) -> tuple[float, float]:
        """Value and seconds of the longest run."""
        return self.tried[max(self.tried)]
