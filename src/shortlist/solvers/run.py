"""One training run: the clock, the count of epochs, what was measured, who is told."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.clock import working_time
from shortlist.solvers.problem import Problem
from shortlist.solvers.result import Evaluation, Result
from shortlist.solvers.rows import State


class StopTraining(Exception):
    """Raise it in a callback to end training with the model as it is."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each epoch: the epoch, and the last exact evaluation."""

    epoch: float
    max_epochs: float
    seconds: float
    tol: float
    last: Evaluation | None
    weights: NDArray


Callback = Callable[[Progress], object]


@dataclass
class Run:
    """State and records of a run; every phase of training works on one of these."""

    problem: Problem
    state: State
    tol: float
    max_epochs: float
    callback: Callback | None = None
    accuracy: Callable[[NDArray], float] | None = None
    solver: str = "sdca"
    epochs: float = 0.0
    # Of a phase that keeps no duals: its best weights, so that a cut there loses nothing, and the
    # weights whose gradients were the best duals, if better than those of the state.
    best: NDArray | None = None
    best_for_dual: NDArray | None = None
    clock: float = field(default_factory=working_time)
    history: list[Evaluation] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds of training so far; those of compiling kernels do not count."""
        return working_time() - self.clock

    def record(self, primal: float, dual: float, weights: NDArray) -> Evaluation:
        """Note an exact evaluation. Time spent on validation accuracy is not training time."""
        seconds = self.seconds
        accuracy = None
        if self.accuracy is not None:
            accuracy = self.accuracy(weights)
            self.clock += self.seconds - seconds
        self.history.append(Evaluation(self.epochs, seconds, primal, dual, accuracy))
        return self.history[-1]

    def evaluate(self) -> Evaluation:
        """Compute and note the gap of the state, taking its weights for those of its duals."""
        return self.record(*self.problem.evaluate(self.state), self.state.weights)

    def rebuilt(self) -> NDArray:
        """The weights that belong to the duals, free of accumulated rounding."""
        return self.problem.rows.rebuild(self.state.duals, self.problem.costs.cost)

    def certify(
        self, found: Evaluation | None = None, rebuilt: NDArray | None = None
    ) -> Evaluation:
        """The exact gap between the weights and the duals, which rounding lets drift apart.

        ``found`` is what :meth:`evaluate` has just told of the state, ``rebuilt`` what
        :meth:`rebuilt` has; either spares a pass.

        The dual objective is that of the duals alone, at weights rebuilt from them, W(v). The gap
        is then 1/2 |W - W(v)|^2 more than the sum of the examples' shares: second order in the
        drift, which in single precision and for a large C can be a thousandth of W.
        """
        rows = self.problem.rows
        rebuilt = self.rebuilt() if rebuilt is None else rebuilt
        norm = rows.squared_norm(rebuilt)
        if norm is None:  # the weights are the duals but for a factor
            self.state.weights = rebuilt
            return self.evaluate()
        if found is None:
            return self.record(*self.problem.evaluate(self.state, norm), self.state.weights)
        taken = rows.squared_norm(self.state.weights) or 0.0
        return self.record(found.primal, found.dual + 0.5 * (taken - norm), self.state.weights)

    def stop_drift(self) -> None:
        """Go on from the weights that belong to the duals."""
        self.state.weights = self.rebuilt()

    def tell(self, weights: NDArray) -> None:
        """Call the callback; training ends if it returns True or raises StopTraining."""
        if self.callback is None:
            return
        last = self.history[-1] if self.history else None
        progress = Progress(self.epochs, self.max_epochs, self.seconds, self.tol, last, weights)
        answer = self.callback(progress)
        # Comparing the numbers of an evaluation gives NumPy's True.
        if isinstance(answer, bool | np.bool_) and answer:
            raise StopTraining

    def result(self, status: str) -> Result:
        last = self.history[-1]
        return Result(
            last.primal,
            last.dual,
            self.epochs,
            self.seconds,
            status,
            self.solver,
            tuple(self.history),
        )
