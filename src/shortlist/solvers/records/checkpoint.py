"""What is kept of an unfinished run, so that another process can go on with it.

No number of a snapshot is trusted with a certificate: the gap is computed anew from its duals and
weights. A snapshot of another problem could only be a bad start.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.duals import Duals, as_array, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.result import Evaluation
from shortlist.solvers.storage.base import State, chunks

# The stages of a run. SDCA while it is the faster; a descent; for hinges, descents on smoothed
# versions; SDCA again for the last digits; the descent on a loss that is not convex.
ASCENT, DESCENT, SMOOTHED, FINISH, NONCONVEX = STAGES = (
    "ascent",
    "descent",
    "smoothed",
    "finish",
    "nonconvex",
)


@dataclass(frozen=True)
class Stage:
    """Where in its course a run is: the stage, and the epochs and looks when it began.

    ``gamma`` is the smoothing of a hinge.
    """

    name: str = ASCENT
    epochs: float = 0.0
    looks: int = 0
    gamma: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """A run between two steps. ``weights`` are those that a descent goes on from."""

    stage: Stage
    solver: str
    duals: Duals
    starts: NDArray
    weights: NDArray | None
    epochs: float
    seconds: float
    history: tuple[Evaluation, ...]


class Keeper(Protocol):
    """Who keeps snapshots. They are offered often; one is made when it is ``due``."""

    def due(self) -> bool: ...
    def keep(self, snapshot: Snapshot) -> None: ...


def restored_state(problem: Problem, snapshot: Snapshot) -> State:
    """The state to go on from: the snapshot's duals and the weights that belong to them.

    Duals outside the domain of the conjugate would certify what is not true. They become zero,
    which is inside for every loss here. A storage that keeps no duals gets none.
    """
    storage, loss, y = problem.storage, problem.loss.dual_loss, problem.costs.y
    state, saved = problem.zero_state(), snapshot.duals
    if not storage.keeps_duals or len(saved) != storage.n:
        return state
    if type(saved) is type(state.duals) is np.ndarray:
        state.duals = saved  # two of them need not fit into memory
    for part in chunks(storage.n, problem.n_classes * 8):
        values = as_array(saved[part])
        outside = ~np.isfinite(loss.row_conjugates(values, y[part]))
        if outside.any() or state.duals is not saved:
            values = np.where(outside[:, None], 0, values).astype(saved.dtype)
            store(state.duals, part, y[part], values)
    state.starts[:] = snapshot.starts
    problem.rebuild(state)
    return state
