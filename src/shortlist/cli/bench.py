"""``shortlist bench``: time to the same objective, against scikit-learn."""

from __future__ import annotations

import timeit
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shortlist.cli.data import read_data
from shortlist.cli.options import OutputOptions, ReadingOptions
from shortlist.cli.output import number, print_json, print_table, told_of_compilation

# A rival is given up when a run has taken longer than both limits and misses the goal: so many
# seconds, and so many times the seconds of Shortlist.
_SECONDS_ALLOWED, _TIMES_OWN_SECONDS_ALLOWED = 10.0, 10.0
# Settings on a rival's ladder: iterations, or ever smaller tolerances.
_MAX_EFFORT = 1 << 14
#: The search for the weakest setting ends when its place is known to within this share of it.
MAX_UNCERTAIN_SHARE = 0.05


def bench(
    *,
    data: str = "letter",
    cost: float = 1.0,
    losses: str = "softmax,hinge",
    tol: float = 1e-3,
    repeat: int = 3,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Time training against scikit-learn, to the same objective value on the same data.

    The goal is an objective at most TOL above the best, which a longer run finds first. Shortlist
    is timed until its own certificate says so, compilation apart. scikit-learn, which has no such
    certificate, is given the answer: the weakest stopping rule that reaches the goal is searched,
    and only that run is timed. No solver fits an intercept, whose regularisation would differ.
    """
    wanted = losses.split(",")
    for name in wanted:
        if name not in _CONTESTS:
            raise ValueError(f"--losses must be among {', '.join(_CONTESTS)}; got {name!r}")
    if repeat < 1:
        raise ValueError(f"--repeat must be 1 or more; got {repeat}")
    examples = read_data(data, reading, "train")
    output.say(examples.describe())
    contests = {name: _contest(name, examples, cost, tol, repeat, output) for name in wanted}
    if output.as_json:
        print_json("bench", {"data": data, "C": cost, "tol": tol, "contests": contests})
        return
    for name, entries in contests.items():
        _print_contest(f"{name}, C={cost:g}, to within {tol:g} of the best objective", entries)


@dataclass(frozen=True)
class Entry:
    """One solver's seconds to the goal, or of its longest run if it did not get there.

    ``ratio`` is its seconds over Shortlist's.
    """

    solver: str
    reached: bool
    seconds: float
    ratio: float
    objective: float


def _contest(
    name: str, examples: Any, cost: float, tol: float, repeat: int, output: OutputOptions
) -> list[Entry]:
    from shortlist import TopKClassifier

    X, y = examples
    objective = _objective(name, X, y, cost)
    own = TopKClassifier(name, C=cost, tol=tol, fit_intercept=False, random_state=0)
    with told_of_compilation(output):
        exact = TopKClassifier(**{**own.get_params(), "tol": tol / 10}).fit(X, y)
    goal = min(objective(exact), exact.result_.primal) * (1 + tol)
    output.say(f"{name}: timing Shortlist")
    seconds = _fastest(lambda: own.fit(X, y), repeat)
    entries = [Entry("shortlist", True, seconds, 1.0, objective(own))]
    for title, make in _CONTESTS[name](cost).items():
        output.say(f"{name}: timing {title}")
        entries.append(_rival(title, make, X, y, objective, goal, repeat, seconds))
    return entries


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
        while enough - too_little > max(1, MAX_UNCERTAIN_SHARE * enough):
            middle = (enough + too_little) // 2
            if self.at(middle)[0] <= goal:
                enough = middle
            else:
                too_little = middle
        return enough

    def best_effort(self) -> tuple[float, float]:
        """Value and seconds of the longest run."""
        return self.tried[max(self.tried)]


def _rival(
    title: str,
    make: Callable[[int], Any],
    X: Any,
    y: Any,
    objective: Callable[[Any], float],
    goal: float,
    repeat: int,
    own_seconds: float,
) -> Entry:
    """Search the least effort that reaches the goal, then time it."""

    def run(place: int) -> tuple[float, float]:
        """Objective and seconds."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(place + 1)
            seconds = _fastest(lambda: model.fit(X, y), 1)
        return objective(model), seconds

    patience = max(_SECONDS_ALLOWED, _TIMES_OWN_SECONDS_ALLOWED * own_seconds)
    search = Search(run, _MAX_EFFORT, patience)
    place = search.weakest(goal)
    runs = [search.best_effort()] if place is None else [run(place) for _ in range(repeat)]
    seconds = min(seconds for _, seconds in runs)
    return Entry(title, place is not None, seconds, seconds / own_seconds, runs[0][0])


def _fastest(work: Callable[[], Any], repeat: int) -> float:
    return min(timeit.repeat(work, number=1, repeat=repeat))


def _objective(name: str, X: Any, y: Any, cost: float) -> Callable[[Any], float]:
    """The primal objective of a fitted linear model, the same for all contestants."""
    import numpy as np

    from shortlist.losses import get

    loss = get(name)
    codes = np.unique(y, return_inverse=True)[1]

    def objective(model: Any) -> float:
        coef = np.asarray(model.coef_, dtype=np.float64)
        if len(coef) == 1:  # of two classes, the second's weights less the first's
            coef = np.concatenate([-0.5 * coef, 0.5 * coef])
        scores = np.asarray(X @ coef.T, dtype=np.float64)
        return float(0.5 * (coef**2).sum() + cost * loss.value(scores, codes).sum())

    return objective


def _logistic_regressions(cost: float) -> dict[str, Callable[[int], Any]]:
    from sklearn.linear_model import LogisticRegression

    def maker(solver: str) -> Callable[[int], Any]:
        # The tolerance is out of the way: max_iter alone decides.
        return lambda iterations: LogisticRegression(
            C=cost, solver=solver, tol=1e-12, max_iter=iterations, fit_intercept=False
        )

    solvers = ("lbfgs", "newton-cg")
    return {f"scikit-learn LogisticRegression ({s})": maker(s) for s in solvers}


def _crammer_singer(cost: float) -> dict[str, Callable[[int], Any]]:
    from sklearn.svm import LinearSVC

    # This solver does not heed max_iter; its tolerance bounds the violation of optimality.
    given = {"C": cost, "multi_class": "crammer_singer", "fit_intercept": False, "random_state": 0}
    return {
        "scikit-learn LinearSVC (crammer_singer)": lambda effort: LinearSVC(
            tol=10.0 / 2 ** (effort / 2), **given
        )
    }


_CONTESTS: dict[str, Callable[[float], dict[str, Callable[[int], Any]]]] = {
    "softmax": _logistic_regressions,
    "hinge": _crammer_singer,
}


def _print_contest(title: str, entries: list[Entry]) -> None:
    rows = []
    for entry in entries:
        more, short = ("", "") if entry.reached else ("> ", " (short of the goal)")
        times = [f"{more}{entry.seconds:.3f}", f"{more}{entry.ratio:.2f} x"]
        rows.append([entry.solver, *times, number(entry.objective) + short])
    print_table(title, ["solver", "seconds", "ratio", "objective"], rows)
