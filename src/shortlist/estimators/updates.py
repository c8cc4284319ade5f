"""New data for a fitted model: rows that come and go, and classes, from the duals of the last fit.

Training goes on from the duals of the rows that stay: see :mod:`shortlist.estimators.warm_starts`.
The certificate is that of a fit on the data as it is then.
"""

from typing import Any, Self

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
from shortlist.estimators.inputs import check_input
from shortlist.estimators.normalization import normalized
from shortlist.estimators.parameters import check_parameters
from shortlist.estimators.warm_starts import COLD, LastFit, LoadedFit, Rows, from_changed_rows
from shortlist.solvers.duals import outlast_fit
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.run import Callback
from shortlist.solvers.strategy.train import Solution

# Data and duals of at most so many bytes are kept even if the user did not ask for it.
MAX_BYTES_KEPT_UNASKED = 1 << 26


def numbers_kept(removed: ArrayLike | None, n: int) -> NDArray:
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


def changed_rows(old: Rows, kept: NDArray, X: Any, y: Any, sample_weight: ArrayLike | None) -> Rows:
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
        kept = numbers_kept(removed, len(last.rows.y))
        X, y = (last.rows.X[:0], last.rows.y[:0]) if X_new is None else (X_new, y_new)
        X = normalized(check_input(self, X, reset=False, ensure_min_samples=0), self.normalize)
        rows = changed_rows(last.rows, kept, X, y, sample_weight)
        problem = self._problem_of(rows, loss)  # type: ignore[attr-defined]
        same_loss = last.loss == problem.loss
        start = from_changed_rows(last, problem, self.classes_, kept) if same_loss else COLD
        data = {"X": rows.X, "y": rows.y, "metadata": {}}
        solution = train_model(self, problem, rows, start, callback, data)
        self._keep(problem, rows, solution)
        return self

    def _keep(self, problem: Problem, rows: Rows, solution: Solution) -> None:
        """Keep what a warm start or an update goes on from, if asked for or small."""
        updatable = rows.in_memory and not self.multilabel_
        last = LastFit(
            solution, problem.loss, problem.costs, self.classes_, rows if updatable else None
        )
        for outdated in ("_last", "_loaded", "_own_distances"):
            self.__dict__.pop(outdated, None)
        if self.warm_start and not outlast_fit(solution.state.duals):
            self._loaded = LoadedFit(problem.loss, self.classes_)
        elif self.warm_start or (updatable and last.nbytes <= MAX_BYTES_KEPT_UNASKED):
            self._last = last

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        last = state.pop("_last", None)
        if self.warm_start and last is not None:
            state["_last"] = last._replace(rows=None)
        return state
