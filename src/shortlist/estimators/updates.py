"""New data for a fitted model: rows that come and go, and classes, from the duals of the last fit.

The dual of an example stays feasible whatever happens to the others, so that training goes on from
the duals of the rows that stay and from zero for new rows. The certificate is that of a fit on the
data as it is then.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from shortlist.estimators.callbacks import with_callbacks
from shortlist.estimators.fitted import all_or_nothing, train_model
from shortlist.estimators.normalization import normalized
from shortlist.estimators.training import check_input, check_parameters
from shortlist.losses import Loss
from shortlist.solvers.duals import Duals, as_array, may_be_changed, outlast_fit, store
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.run import Callback
from shortlist.solvers.storage import Costs, State
from shortlist.solvers.storage.base import chunks
from shortlist.solvers.strategy.path import state_from_duals
from shortlist.solvers.strategy.train import Solution

# Data and duals of at most so many bytes are kept whether or not the user asked for it.
SMALL = 1 << 26
# New rows are visited first if they are at most this share: more of them change all others' duals.
MOST_FRESH = 0.1


class Rows(NamedTuple):
    """Examples as they were checked: features, labels and the user's weights, if any."""

    X: Any
    y: NDArray
    sample_weight: NDArray | None

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
    """What a model was trained for whose duals are gone: from a file, or by workers."""

    loss: Loss
    classes: NDArray


def start_from_weights(problem: Problem, weights: NDArray) -> tuple[State | None, NDArray | None]:
    """Where to start from weights alone: where the loss has gradients, they are good duals.

    Hinges start cold: a descent on their smoothed versions takes longer than SDCA from zero, also
    from weights that are nearly the best.
    """
    if not problem.loss.smooth:
        return None, None
    if not (problem.keeps_duals and problem.loss.convex):
        return None, weights
    state = problem.zero_state()
    problem.fill_duals(weights, state)
    return state, weights


def duals_fit(last: LastFit, problem: Problem) -> bool:
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


def stay(removed: ArrayLike | None, n: int) -> NDArray:
    """Numbers of the rows that stay; ``removed`` are numbers of rows, or a mask."""
    if removed is None:
        return np.arange(n)
    given = np.atleast_1d(np.asarray(removed))
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(~given)
    if given.size and (given.dtype.kind not in "iu" or given.ndim != 1):
        raise ValueError(
            f"removed must hold numbers of rows, or be a mask of {n} rows; got dtype "
            f"{given.dtype} and shape {given.shape}"
        )
    if given.size and not (given.min() >= 0 and given.max() < n):
        raise ValueError(
            f"removed must hold numbers of rows from 0 to {n - 1}; got {given.min()} to "
            f"{given.max()}"
        )
    return np.delete(np.arange(n), given.astype(np.intp))


def joined(old: Rows, kept: NDArray, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
    """The old rows that stay, followed by the new ones, which are checked."""
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if len(kept) + len(y) < 2:
        raise ValueError(f"training needs at least 2 rows; this update leaves {len(kept) + len(y)}")
    if (y.dtype.kind in "UO") != (old.y.dtype.kind in "UO"):
        raise TypeError(f"labels were of type {old.y.dtype}, and the new ones are {y.dtype}")
    weights = None
    if old.sample_weight is not None or sample_weight is not None:
        before = np.ones(len(old.y)) if old.sample_weight is None else old.sample_weight
        new = np.ones(0)
        if len(y):
            new = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = np.concatenate([before[kept], new])
    dtype = old.X.dtype
    if sparse.issparse(old.X):
        both = sparse.vstack([old.X[kept], sparse.csr_array(X, dtype=dtype)], format="csr")
    else:
        dense = X.toarray() if sparse.issparse(X) else X
        both = np.concatenate([old.X[kept], np.asarray(dense, dtype)])
    return Rows(both, np.concatenate([old.y[kept], y]), weights)


def go_on(
    last: LastFit, problem: Problem, classes: NDArray, kept: NDArray
) -> tuple[State | None, NDArray | None]:
    """The start: a state, weights or both. The rows ``kept`` come first in ``problem``."""
    there = np.isin(last.classes, classes)
    columns = np.searchsorted(classes, last.classes[there])
    solution = last.solution
    weights = problem.storage.zero_weights(len(classes))
    weights[:, columns] = solution.weights[:, there]
    if not problem.keeps_duals:
        return None, weights
    new_classes = len(columns) < len(classes)
    duals = _carried(problem, solution.state.duals, kept, there, columns)
    starts = np.zeros((problem.storage.n, 2))
    if not new_classes:
        starts[: len(kept)] = solution.state.starts[kept]
    elif problem.loss.dual_loss.smooth:
        _give_shares(problem, duals, weights, len(kept), columns)
    state = state_from_duals(problem, duals, starts)
    few = problem.storage.n - len(kept) <= MOST_FRESH * problem.storage.n
    if few and not new_classes:  # all rows have to make room for a new class
        state.fresh = np.arange(len(kept), problem.storage.n)
    by_descent = problem.loss.convex and solution.result.by_descent
    return state, weights if by_descent else None


def _carried(
    problem: Problem, old: Duals, kept: NDArray, there: NDArray, columns: NDArray
) -> Duals:
    """The duals of the rows that stay, in their new columns; zero for those of new rows.

    A row that had a share on a class that is gone starts from zero.
    """
    m, y = problem.n_classes, problem.costs.y
    duals = problem.zero_duals()
    for part in chunks(len(kept), m * duals.dtype.itemsize):
        before = as_array(old[kept[part]])
        now = np.zeros((len(before), m), duals.dtype)
        now[:, columns] = before[:, there]
        now[before[:, ~there].any(axis=1)] = 0
        store(duals, part, y[part], now)
    return duals


def _give_shares(
    problem: Problem, duals: Duals, weights: NDArray, n_kept: int, columns: NDArray
) -> None:
    """Give new classes the shares of the gradients at ``weights``, where they are zero.

    A share of zero would stay near zero for long. The old classes' shares, in ``columns``, are
    scaled to leave room. Where that is not feasible, the gradient is taken as a whole.
    """
    loss, y, m = problem.loss.dual_loss, problem.costs.y, problem.n_classes
    new = np.setdiff1d(np.arange(m), columns)
    state = problem.zero_state()
    problem.fill_duals(weights, state)
    for part in chunks(n_kept, m * duals.dtype.itemsize):
        gradient, mixed = as_array(state.duals[part]), as_array(duals[part]).copy()
        share = gradient[:, new]
        if loss.separable:
            # At scores of zero every row is half in the class; few are.
            share = share * (1 - n_kept / problem.storage.n)
        else:
            given = share.sum(axis=1)
            mixed *= (1 - given)[:, None]
            mixed[np.arange(len(mixed)), y[part]] -= given
        mixed[:, new] = share
        infeasible = ~np.isfinite(loss.row_conjugates(mixed, y[part]))
        mixed[infeasible] = gradient[infeasible]
        store(duals, part, y[part], mixed)


class UpdateMixin:
    """``update`` for the linear classifier."""

    classes_: NDArray
    multilabel_: bool
    normalize: str | None
    warm_start: bool

    @all_or_nothing
    @with_callbacks
    def update(
        self,
        X_new: ArrayLike | None = None,
        y_new: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        removed: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on changed data: rows added, removed or relabelled, and new classes.

        The model is that of ``fit`` on the data as it is then, with its own certificate. Training
        goes on from the duals of the rows that stay, which as a rule takes fewer epochs than a fit.

        ``X_new`` and ``y_new`` are added at the end. ``removed`` are the rows to leave out, by
        number or as a mask: those of the last ``fit`` in their order, followed by those of every
        ``update`` since. To relabel rows, remove them and add them with their new labels.

        The data and duals of the last fit are needed. They are kept, the data without a copy, if
        together they take at most 64 MiB, or with ``warm_start=True`` whatever their size; they
        are neither saved nor pickled.
        """
        check_is_fitted(self)
        loss = check_parameters(self)
        last: LastFit | None = getattr(self, "_last", None)
        if last is None or last.rows is None:
            raise ValueError(
                "update needs the data of the last fit, which this model has not kept: large data "
                "is kept with warm_start=True only, and none is saved with a model or kept for "
                "indicators of several labels. Use fit"
            )
        if (X_new is None) != (y_new is None):
            raise ValueError("X_new and y_new go together: give both or neither")
        kept = stay(removed, len(last.rows.y))
        X, y = (last.rows.X[:0], last.rows.y[:0]) if X_new is None else (X_new, y_new)
        X = normalized(check_input(self, X, reset=False, ensure_min_samples=0), self.normalize)
        rows = joined(last.rows, kept, X, y, sample_weight)
        problem = self._problem_of(rows, loss)  # type: ignore[attr-defined]
        same_loss = last.loss == problem.loss
        start = go_on(last, problem, self.classes_, kept) if same_loss else (None, None)
        data = {"X": rows.X, "y": rows.y, "metadata": {}}
        solution = train_model(self, problem, rows, start, callback, data)
        self._keep(problem, rows, solution)
        return self

    def _keep(self, problem: Problem, rows: Rows, solution: Solution) -> None:
        """Keep what a warm start or an update goes on from, if asked for or small."""
        in_memory = isinstance(rows.X, np.ndarray) or sparse.issparse(rows.X)
        updatable = in_memory and not self.multilabel_
        last = LastFit(
            solution, problem.loss, problem.costs, self.classes_, rows if updatable else None
        )
        for outdated in ("_last", "_loaded", "_own_distances"):
            self.__dict__.pop(outdated, None)
        if self.warm_start and not outlast_fit(solution.state.duals):
            self._loaded = LoadedFit(problem.loss, self.classes_)
        elif self.warm_start or (updatable and last.nbytes <= SMALL):
            self._last = last

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        last = state.pop("_last", None)
        if self.warm_start and last is not None:
            state["_last"] = last._replace(rows=None)
        return state
