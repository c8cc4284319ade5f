"""The public face of a loss: checked, batched calls of its kernels, and what is known about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from shortlist._jit import kernel_array, njit
from shortlist._text import Setting
from shortlist.errors import ParameterError
from shortlist.losses import kernels
from shortlist.losses.labels import check_indicator, label_rows

# Scores of zero that are made at a time: 8 MB.
_SCORES_AT_ONCE = 1 << 20


@njit
def _value_gradient_rows(loss, f, y, values, v):
    work = np.empty((2, f.shape[1]), f.dtype)
    for i in range(f.shape[0]):
        values[i] = kernels.value_gradient(loss, f[i], y[i], v[i], work)


@njit
def _conjugate_rows(loss, v, y, tolerance, values):
    for i in range(v.shape[0]):
        if kernels.violation(loss, v[i], y[i]) > tolerance:
            values[i] = np.inf
        else:
            values[i] = kernels.conjugate(loss, v[i], y[i])


@njit
def _dual_step_rows(loss, q, y, eta, v):
    work = np.empty((2, q.shape[1]), q.dtype)
    start = np.zeros(2)
    for i in range(q.shape[0]):
        start[:] = 0.0
        kernels.dual_step(loss, q[i], y[i], eta[i], start, v[i], work)


@dataclass(frozen=True)
class Loss:
    """A loss of one example's scores f in R^m and its label y in 0..m-1.

    Every method takes one example, scores of shape (m,) and an integer label, or a batch of
    shape (n, m) with n labels. float32 stays float32; all else is computed in float64.
    If ``multilabel``, an example has a set of right labels instead, and y is an indicator of the
    shape of the scores: 1 for the right labels, 0 for the others.
    Obtain one from :func:`shortlist.losses.get`.

    The rest of the library asks a loss for its traits, never for its name:

    - ``convex``; ``smooth``: differentiable with a Lipschitz gradient.
    - ``sparse_duals``: most entries of the duals are exactly zero at a solution.
    - ``fewest_classes``: how many classes a restriction of the loss needs at least, the label (or
      all right labels) counted as one. Asked of sparse duals only.
    - ``separable``: a sum over classes, each with its own score: every class trains for itself. All
      other losses depend on differences of scores only.
    - ``logits``: turns scores (n, m) into numbers whose softmax are class probabilities; None: the
      loss does not estimate any.
    - ``with_smoothing``: makes the same loss at another smoothing gamma; None: it has none to
      choose. Smaller ones tend to the loss at 0, and their duals are feasible for it.
    - ``log_lipschitz``: if scores change by at most e each, entries of the gradient change by a
      factor between exp(-2 e) and exp(2 e). It bounds what rounded scores do to a gradient.
    - ``labels_alike``: exchanging two labels and their scores changes nothing.
    - ``with_margins``: makes the same loss with these margins; None: it has no margins to choose.
    - ``start_from``: makes the convex loss whose solution a loss that is not convex starts from.
    - ``has_dual_step``: it has a conjugate and a dual step. A convex loss without them is smooth,
      and trained by descents.
    """

    name: str
    k: int
    variant: str | None
    smoothing: float
    spec: Any
    convex: bool
    smooth: bool
    multilabel: bool = False
    labels_alike: bool = True
    sparse_duals: bool = False
    log_lipschitz: bool = False
    fewest_classes: int = 1
    # Further parameters of hinges. They are left out of comparisons: ``spec`` holds them too.
    margins: NDArray | None = field(default=None, compare=False)
    rank_weights: NDArray | None = field(default=None, compare=False)
    separable: bool = False
    logits: Callable[[NDArray], NDArray] | None = field(default=None, compare=False)
    with_smoothing: Callable[[float], "Loss"] | None = field(default=None, compare=False)
    with_margins: Callable[[ArrayLike], "Loss"] | None = field(default=None, compare=False)
    start_from: Callable[[], "Loss"] | None = field(default=None, compare=False)

    @property
    def has_probabilities(self) -> bool:
        """Whether scores can be turned into class probabilities."""
        return self.logits is not None

    @property
    def smoother(self) -> "Callable[[float], Loss] | None":
        """Makes, for gamma > 0, a smooth loss for this one; None if this is smooth, or has none."""
        return None if self.smooth else self.with_smoothing

    @property
    def has_dual_step(self) -> bool:
        """Whether it has a conjugate and a dual step, so that SDCA can train it."""
        return kernels.kernels_of(type(self.spec)).dual_step is not None

    @property
    def has_lanes(self) -> bool:
        """Whether it has a kernel for many examples at once."""
        return kernels.kernels_of(type(self.spec)).lanes is not None

    @property
    def dual_loss(self) -> "Loss":
        """The convex loss whose duals are kept: this one, or the one it starts from."""
        return self if self.start_from is None else self.start_from()

    def value(self, scores: ArrayLike, y: ArrayLike) -> Any:
        """L(y, scores)."""
        return self._value_gradient(scores, y)[0]

    def gradient(self, scores: ArrayLike, y: ArrayLike) -> NDArray:
        """The gradient of L in the scores; a subgradient where L has a kink."""
        return self._value_gradient(scores, y)[1]

    def value_and_gradient(self, scores: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray]:
        """Both at the price of one."""
        return self._value_gradient(scores, y)

    def row_gradients(self, scores: NDArray, labels: NDArray) -> NDArray:
        """Gradients for rows of scores in double; labels as kernels take them, unchecked."""
        f = kernel_array(scores, np.float64)
        v = np.empty_like(f)
        self.write_gradients(f, kernel_array(labels, np.int64), v)
        return v

    def write_gradients(self, scores: NDArray, labels: NDArray, out: NDArray) -> NDArray:
        """Put the gradients for rows of scores into ``out``; returns the values.

        All arrays are as kernels take them, unchecked.
        """
        values = np.empty(len(scores))
        _value_gradient_rows(self.spec, scores, labels, values, out)
        return values

    def conjugate(self, v: ArrayLike, y: ArrayLike) -> Any:
        """L*(y, v) = sup over f of <f, v> - L(y, f); infinity outside its domain.

        Points within rounding (a few units in the last place, per entry) count as inside.
        """
        self._require_dual("conjugate")
        v, y, single = self._check(v, y, "v", finite=False)
        values = self.row_conjugates(v, y)
        return values[0] if single else values

    def row_conjugates(self, v: NDArray, labels: NDArray) -> NDArray:
        """Conjugates of rows of duals; labels as kernels take them, unchecked."""
        tolerance = 4.0 * np.finfo(v.dtype).eps * v.shape[1]
        values = np.empty(v.shape[0])
        rows, y = kernel_array(v, v.dtype), kernel_array(labels, np.int64)
        _conjugate_rows(self.spec, rows, y, tolerance, values)
        return values

    def dual_step(self, q: ArrayLike, y: ArrayLike, eta: ArrayLike) -> NDArray:
        """Solve  min over v of L*(y, v) - <q, v> + eta/2 |v|^2.

        ``eta`` is a number or one per example, zero or larger; at zero the solution is the
        gradient at q.
        """
        self._require_dual("dual step")
        q, y, single = self._check(q, y, "q")
        eta = np.asarray(eta, dtype=np.float64)
        if eta.shape not in ((), (q.shape[0],)):
            raise ValueError(f"eta must be a number or have shape ({q.shape[0]},); got {eta.shape}")
        if not (np.isfinite(eta).all() and (eta >= 0).all()):
            raise ValueError("eta must be finite and zero or larger")
        v = np.empty_like(q)
        _dual_step_rows(self.spec, q, y, np.broadcast_to(eta, (q.shape[0],)).copy(), v)
        return v[0] if single else v

    def check_classes(self, n_classes: int) -> None:
        """Raise ValueError unless the loss is defined for this number of classes."""
        if n_classes < 2:
            raise ValueError(f"a loss needs scores of at least 2 classes; got {n_classes}")
        if self.k > n_classes - 1:
            problem = f"must lie between 1 and the number of classes less one, here {n_classes - 1}"
            got = Setting("k", self.k) + f" with {n_classes} classes"
            raise ParameterError("k", f"{problem}; got " + got)
        if self.rank_weights is not None and len(self.rank_weights) > n_classes - 1:
            raise ParameterError(
                "rank_weights",
                f"may hold at most {n_classes - 1} positive numbers, one for each wrong label; "
                f"got {len(self.rank_weights)} with {n_classes} classes",
            )
        if self.margins is not None and len(self.margins) != n_classes:
            problem = f"are for {len(self.margins)} classes; there are {n_classes} classes"
            raise ParameterError("margins", problem)

    def values_at_zero(self, n_classes: int) -> NDArray:
        """L(y, 0) for every label y."""
        if self.labels_alike:
            return np.full(n_classes, self.value(np.zeros(n_classes), 0))
        values = np.empty(n_classes)
        chunk = max(1, _SCORES_AT_ONCE // n_classes)
        for begin in range(0, n_classes, chunk):
            labels = np.arange(begin, min(begin + chunk, n_classes))
            values[labels] = self.value(np.zeros((len(labels), n_classes)), labels)
        return values

    def _value_gradient(self, scores: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray]:
        f, y, single = self._check(scores, y, "scores")
        values = np.empty(f.shape[0])
        v = np.empty_like(f)
        _value_gradient_rows(self.spec, f, y, values, v)
        return (values[0], v[0]) if single else (values, v)

    def _require_dual(self, what: str) -> None:
        if not self.has_dual_step:
            raise TypeError(
                f"{self.name} has no {what} here, only a value and a gradient. "
                "Train it by a descent."
            )

    def _check(
        self, scores: ArrayLike, y: ArrayLike, name: str, finite: bool = True
    ) -> tuple[NDArray, NDArray, bool]:
        f = np.asarray(scores)
        if f.dtype.kind not in "fiub":
            raise TypeError(f"{name} must be real numbers; got an array of dtype {f.dtype}")
        if f.ndim not in (1, 2):
            raise ValueError(f"{name} must have shape (m,) or (n, m); got {f.shape}")
        dtype = np.float32 if f.dtype in (np.float32, np.float16) else np.float64
        rows = kernel_array(np.atleast_2d(f), dtype)
        self.check_classes(rows.shape[1])
        if np.isnan(rows).any() or (finite and not np.isfinite(rows).all()):
            raise ValueError(f"{name} must be finite; it has NaN or infinite entries")
        if self.multilabel:
            return rows, self._label_rows(y, f, name), f.ndim == 1
        labels = np.asarray(y)
        whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
        if labels.dtype.kind not in "iu" and not whole:
            raise TypeError(f"y must be integer labels; got dtype {labels.dtype}")
        expected = () if f.ndim == 1 else (rows.shape[0],)
        if labels.shape != expected:
            raise ValueError(f"y must have shape {expected} to match {name}; got {labels.shape}")
        labels = np.atleast_1d(labels).astype(np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= rows.shape[1]):
            raise ValueError(
                f"y must lie between 0 and {rows.shape[1] - 1}, the last column of {name}; "
                f"got values from {labels.min()} to {labels.max()}"
            )
        return rows, labels, f.ndim == 1

    def _label_rows(self, y: Any, f: NDArray, name: str) -> NDArray:
        if sparse.issparse(y):
            y = y.toarray()
        indicator = np.asarray(y)
        if indicator.shape != f.shape:
            raise ValueError(
                f"y must be an indicator of the right labels, of the shape {f.shape} of {name}; "
                f"got shape {indicator.shape}"
            )
        check_indicator(indicator)
        indicator = np.atleast_2d(indicator)
        counts = np.count_nonzero(indicator, axis=1)
        most = indicator.shape[1] - self.k
        if counts.size and (counts.min() < 1 or counts.max() > most):
            raise ValueError(
                f"every example needs from 1 to {most} right labels (all but k={self.k}); "
                f"got from {counts.min()} to {counts.max()}"
            )
        return label_rows(indicator)
