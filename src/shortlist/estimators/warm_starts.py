"""Where training begins: at zero, or at the duals or weights that an earlier fit has left.

``of_fit``             a fit with ``warm_start``: the same rows again, C and weights may differ
``from_changed_rows``  an update: rows came and went
``from_weights``       only weights are left: a model from a file, or one that workers trained

A path over C has its own starts (:mod:`shortlist.solvers.strategy.path`). Both go by the rule of
:func:`~shortlist.solvers.strategy.path.way_on`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shortlist.estimators.parameters import constant_feature
from shortlist.losses import Loss
from shortlist.solvers.duals import Duals, as_array, may_be_changed, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, State
from shortlist.solvers.storage.base import chunks
from shortlist.solvers.strategy.changed_data import (
    best_shortened,
    smooth_relative,
    train_new_classes,
)
from shortlist.solvers.strategy.path import state_from_duals, way_on
from shortlist.solvers.strategy.starts import move_towards
from shortlist.solvers.strategy.train import Solution

# New rows are visited first if they are at most this share of all rows. More of them change the
# duals of all others.
MAX_SHARE_OF_FRESH_ROWS = 0.1


class Start(NamedTuple):
    """A state of duals to go on from, weights to descend from, both, or neither."""

    state: State | None = None
    weights: NDArray | None = None


COLD = Start()


class Rows(NamedTuple):
    """Examples as they were checked: features, labels and the user's weights, if any."""

    X: Any
    y: NDArray
    sample_weight: NDArray | None

    @property
    def in_memory(self) -> bool:
        return isinstance(self.X, np.ndarray) or sparse.issparse(self.X)

    @property
    def nbytes(self) -> int:
        parts = (
            (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else [self.X]
        )
        return sum(part.nbytes for part in parts)


class LastFit(NamedTuple):
    """The state from which a warm start or an update continues."""

    solution: Solution
    loss: Loss
    costs: Costs
    classes: NDArray
    rows: Rows | None = None

    @property
    def nbytes(self) -> int:
        return self.solution.state.duals.nbytes + (0 if self.rows is None else self.rows.nbytes)


class LoadedFit(NamedTuple):
    """The loss and classes of a model whose duals are gone: from a file, or trained by workers."""

    loss: Loss
    classes: NDArray


def of_fit(model: Any, problem: Problem) -> Start:
    """The start of a classifier's ``fit``: cold, unless ``warm_start`` has something that fits."""
    if not model.warm_start:
        return COLD
    if (last := getattr(model, "_last", None)) is not None:
        return _from_last_fit(last, problem)
    if (loaded := getattr(model, "_loaded", None)) is not None:
        return _from_loaded(model, loaded, problem)
    return COLD


def _from_last_fit(last: LastFit, problem: Problem) -> Start:
    """Go on from the duals, the weights or both, if the labels and the loss are the same."""
    if not _duals_fit(last, problem):
        return COLD
    solution, state = last.solution, last.solution.state
    shape = problem.storage.zero_weights(problem.n_classes).shape
    same_features = problem.storage.explicit and solution.weights.shape == shape
    weights = solution.weights if same_features else None
    costs_fell = bool((problem.costs.cost < last.costs.cost).any())
    descends, takes_duals = way_on(problem, solution, costs_fell=costs_fell)
    if weights is None:  # the features are others: all that is left are duals
        takes_duals = problem.keeps_duals
    if not takes_duals:
        return Start(weights=weights)
    start = state_from_duals(problem, state.duals, state.starts)
    start.best = weights
    return Start(start, weights if descends else None)


def _from_loaded(model: Any, loaded: LoadedFit, problem: Problem) -> Start:
    """Go on from the weights, if the loss, the classes and the number of features are the same."""
    weights = problem.storage.zero_weights(problem.n_classes)
    same_classes = np.array_equal(loaded.classes, model.classes_)
    if loaded.loss != problem.loss or not same_classes:
        return COLD
    if model.coef_.shape[1] != len(weights) - 1:
        return COLD
    coef, intercept = model._class_weights()
    bias = constant_feature(model)
    weights[:-1], weights[-1] = coef.T, intercept / bias if bias else 0.0
    return from_weights(problem, weights)


def starts_from_weights(loss: Loss) -> bool:
    """Whether weights alone are a start for a loss: where it has gradients, they are good duals.

    Hinges start cold: a descent on their smoothed versions takes longer than SDCA from zero, also
    from weights that are nearly the best.
    """
    return loss.smooth


def from_weights(problem: Problem, weights: NDArray) -> Start:
    """Go on from weights alone, with gradients for duals where there are any to keep."""
    if not starts_from_weights(problem.loss):
        return COLD
    if not (problem.keeps_duals and problem.loss.convex):
        return Start(weights=weights)
    state = problem.zero_state()
    problem.fill_duals(weights, state)
    return Start(state, weights)


def _duals_fit(last: LastFit, problem: Problem) -> bool:
    """Whether the duals of the last fit are a start for ``problem``, whose costs may differ."""
    state = last.solution.state
    same_shape = state.duals.shape == (problem.storage.n, problem.n_classes)
    if not same_shape or state.duals.dtype != problem.storage.dtype:
        return False
    # Duals for another loss or other labels may be infeasible.
    if last.loss != problem.loss or not np.array_equal(last.costs.y, problem.costs.y):
        return False
    # The arrays may be read-only memory maps.
    return may_be_changed(state.duals) and state.starts.flags.writeable


def from_changed_rows(last: LastFit, problem: Problem, classes: NDArray, kept: NDArray) -> Start:
    """Go on from the duals of the rows ``kept``, which come first in ``problem``.

    The dual of an example stays feasible whatever happens to the others. New rows start from zero.
    A new class begins with the weights that are best for it alone. Where it asks for a share of all
    duals, or classes are gone, duals move towards gradients as far as the dual objective rises.
    """
    there = np.isin(last.classes, classes)
    columns = np.searchsorted(classes, last.classes[there])
    new = np.setdiff1d(np.arange(len(classes)), columns)
    solution = last.solution
    weights = problem.storage.zero_weights(len(classes))
    weights[:, columns] = solution.weights[:, there]
    trained = train_new_classes(problem, weights, new) if new.size else True
    if not problem.keeps_duals:
        return Start(weights=best_shortened(problem, weights))
    duals, changed = _carried(problem, solution.state.duals, kept, there, columns)
    starts = np.zeros((problem.storage.n, 2))
    if not new.size:
        starts[: len(kept)] = solution.state.starts[kept]
    state = state_from_duals(problem, duals, starts)
    smooth = smooth_relative(problem.loss)
    if smooth is not None and (new.size or changed.any()):
        changed[len(kept) :] = True
        move_towards(problem, state, _with_shares(problem, smooth, duals, weights, changed, new))
    few = problem.storage.n - len(kept) <= MAX_SHARE_OF_FRESH_ROWS * problem.storage.n
    if few:
        state.fresh = np.arange(len(kept), problem.storage.n)
    state.best = weights
    descends = problem.loss.convex and solution.result.by_descent and trained
    return Start(state, best_shortened(problem, weights) if descends else None)


def _carried(
    problem: Problem, old: Duals, kept: NDArray, there: NDArray, columns: NDArray
) -> tuple[Duals, NDArray]:
    """The duals of the rows that stay, in their new columns; zero for those of new rows.

    Shares of classes that are gone are given back to the label. A row for which that is not
    feasible starts from zero. Also returns a mask of the rows that had such shares.
    """
    loss, m, y = problem.loss.dual_loss, problem.n_classes, problem.costs.y
    duals, changed = problem.zero_duals(), np.zeros(problem.storage.n, bool)
    for part in chunks(len(kept), m * duals.dtype.itemsize):
        before = as_array(old[kept[part]])
        now = np.zeros((len(before), m), duals.dtype)
        now[:, columns] = before[:, there]
        given_back = before[:, ~there].sum(axis=1)
        changed[part] = given_back != 0
        if not loss.separable:
            now[np.arange(len(now)), y[part]] += given_back
            infeasible = ~np.isfinite(loss.row_conjugates(now, y[part]))
            now[infeasible & changed[part]] = 0
        store(duals, part, y[part], now)
    return duals, changed


def _with_shares(
    problem: Problem, smooth: Loss, duals: Duals, weights: NDArray, whole: NDArray, new: NDArray
) -> Duals:
    """The duals with the new classes' shares of the gradients at ``weights``.

    A share of zero would stay near zero for long. The old classes' shares are scaled to leave room.
    Where that is not feasible, and for the rows ``whole``, the gradient is taken as a whole.
    ``smooth`` is the loss whose gradients are meant.
    """
    loss, y, m = problem.loss.dual_loss, problem.costs.y, problem.n_classes
    found = problem.zero_duals()
    problem.storage.fill_duals(smooth, weights, problem.costs, found, problem.crew)
    for part in chunks(problem.storage.n, m * duals.dtype.itemsize):
        gradient, mixed = as_array(found[part]), as_array(duals[part]).copy()
        share = gradient[:, new]
        if not loss.separable:
            given = share.sum(axis=1)
            mixed *= (1 - given)[:, None]
            mixed[np.arange(len(mixed)), y[part]] -= given
        mixed[:, new] = share
        taken = whole[part] | ~np.isfinite(loss.row_conjugates(mixed, y[part]))
        mixed[taken] = gradient[taken]
        store(found, part, y[part], mixed)
    return found
