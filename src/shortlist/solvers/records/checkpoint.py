"""What is kept of an unfinished run, so that another process can go on with it.

No number of a snapshot is trusted with a certificate: the gap is computed anew from its duals and
weights. A snapshot of another problem could only be a bad start.
"""

from dataclasses import dataclass
from typing import Protocol

from numpy.typing import NDArray

from shortlist.solvers.duals import Duals
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.result import Evaluation
from shortlist.solvers.storage.base import State

# The stages of a run, in the order in which they may follow each other:
STAGES = (
    ASCENT := "ascent",  # SDCA, while it is the faster
    DESCENT := "descent",  # L-BFGS or Newton's method
    SMOOTHED := "smoothed",  # of a hinge: problems that are smooth, with a gamma each
    FINISH := "finish",  # SDCA again, for the last digits
    NONCONVEX := "nonconvex",  # the descent on a loss that is not convex
)


@dataclass(frozen=True)
class Stage:
    """The position of a run: its stage, and the epochs and evaluations at which the stage began.

    ``gamma`` is the smoothing of a hinge.
    """

    name: str = ASCENT
    epochs: float = 0.0
    looks: int = 0
    gamma: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """A run between two steps. ``weights`` are those that a descent goes on from.

    Where the duals are too many to be kept, there are none, and SDCA's weights instead.
    """

    stage: Stage
    solver: str
    duals: Duals
    starts: NDArray
    weights: NDArray | None
    epochs: float
    seconds: float
    history: tuple[Evaluation, ...]


class Keeper(Protocol):
    """Keeps snapshots of a run. Training offers them often; one is made when it is ``due``."""

    def due(self) -> bool: ...
    def keep(self, snapshot: Snapshot) -> None: ...


def restored_state(problem: Problem, snapshot: Snapshot) -> State:
    """The state to go on from: the snapshot's duals and the weights that belong to them.

    A snapshot without duals has weights, whose gradients are duals. Where no duals are kept, there
    are none to restore.
    """
    storage, state, saved = problem.storage, problem.zero_state(), snapshot.duals
    if not problem.keeps_duals:
        return state
    if len(saved) == storage.n:
        loss = problem.loss.dual_loss
        state.duals = storage.restore_duals(loss, problem.costs, state.duals, saved)
        state.starts[:] = snapshot.starts
        problem.rebuild(state)
    elif snapshot.weights is not None and problem.loss.convex and problem.loss.smooth:
        problem.fill_duals(snapshot.weights, state)
    return state
