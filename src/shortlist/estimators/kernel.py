"""The kernel classifier."""

from collections.abc import Callable
from contextlib import nullcontext
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from shortlist._memory import available_bytes
from shortlist._parameters import KERNELS, is_real
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError, WordedMemoryError
from shortlist.estimators.callbacks import CallbackSupportMixin, with_callbacks
from shortlist.estimators.fitted import (
    accuracy_of_scores,
    all_or_nothing,
    fit_model,
    is_given,
    meta_of_fit,
    restore_fit,
)
from shortlist.estimators.inputs import check_input
from shortlist.estimators.kernel_matrix import (
    KernelFunction,
    KernelMatrix,
    PrecomputedMatrix,
    resolve_gamma,
)
from shortlist.estimators.parameters import constant_feature, takes_several_labels
from shortlist.estimators.paths import PathMixin
from shortlist.estimators.problem import TrainedClassifier
from shortlist.estimators.shortlists import folded, unfolded
from shortlist.estimators.warm_starts import LastFit, Rows
from shortlist.losses import Loss
from shortlist.solvers.memory import gib, training_bytes
from shortlist.solvers.records.run import Callback
from shortlist.solvers.storage import GramStorage, Storage
from shortlist.solvers.storage.base import chunks
from shortlist.solvers.threads import one_blas_thread

_MIB = 1 << 20
# With at most so many examples BLAS runs on one thread. Products with so small a kernel matrix take
# milliseconds, in which threads gain little and may wait for each other. Measured on a busy machine
# only: fits of digits (1797 examples) took more processor time with two threads than with one.
MAX_ROWS_FOR_ONE_THREAD = 3000


def _in_double(X: Any) -> Any:
    """Rows in double: a kernel's distances are differences of large inner products."""
    return X.astype(np.float64, copy=False)


class KernelTopKClassifier(PathMixin, CallbackSupportMixin, TrainedClassifier):
    """Classifier with a kernel, trained for its shortlist of k labels, with a certificate.

    Minimises  1/2 |f|^2 + C sum_i w_i L(y_i, f(x_i))  over the functions of the kernel's space,
    one per class, to a relative duality gap of at most ``tol``:
    f(x) = sum_i K(x, x_i) a_i + intercept.

    Parameters
    ----------
    loss, k, variant, smoothing, margins, rank_weights, C, tol, max_epochs, fit_intercept, \
            intercept_scaling, class_weight, warm_start, random_state, verbose, checkpoint, \
            checkpoint_every
        Those of :class:`TopKClassifier`. The truncated entropy and the mixtures, which have no
        dual step, have no kernel version. An intercept adds the constant
        ``intercept_scaling ** 2`` to the kernel.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed"} or callable, default="rbf"
        A callable is given two matrices of rows and returns the matrix of its values, which must
        be positive semidefinite. With "precomputed", ``fit`` takes the kernel matrix of the
        training examples and ``predict`` that between new examples and all training examples.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", exp(-gamma |x - z|^2), and "poly". "scale" is 1 / (n_features * X.var()), with
        sample weights counted; "auto" is 1 / n_features.
    degree : int, default=3
        Of "poly", (gamma <x, z> + coef0) ** degree.
    coef0 : float, default=0.0
        Of "poly".
    cache_size : float, default=1024
        Mebibytes for the kernel matrix. If all of it fits (n_samples ** 2 numbers), it is
        computed once. Otherwise as many of its rows as fit are kept and the others computed
        each time they are visited.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether y was an indicator of several right labels.
    support_ : ndarray of shape (n_support,)
        Numbers of the training examples with a nonzero coefficient. With the hinge losses these
        are few; only they are kept.
    support_vectors_ : matrix of shape (n_support, n_features)
        Those examples, empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_support, n_classes)
        The coefficients a_i.
    intercept_ : ndarray of shape (n_classes,)
    gamma_ : float
        The value of gamma that was used.
    n_iter_ : int
        Epochs taken.
    result_ : Result
        The certificate, as of :class:`TopKClassifier`.

    Notes
    -----
    Training holds the kept rows of the kernel matrix (at most ``cache_size``), two to three
    numbers per example and class (duals and coefficients), the examples in double precision and
    blocks of a few dozen megabytes. With 20000 examples and 26 classes in single precision this
    is 1 GiB + 6 MiB + 0.3 GiB at the default cache size. float32 input halves the matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import KernelTopKClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelTopKClassifier("smooth_hinge", k=3, C=10, random_state=0)
    >>> model.fit(X[:500], y[:500]).predict_topk(X[500:502]).shape
    (2, 3)
    """

    # Not parameters here: the kernel decides how examples count, and its matrix has its own limit.
    normalize: None = None
    memory_limit: None = None

    def __init__(
        self,
        loss: str = "entropy",
        *,
        k: int = 1,
        variant: str = "alpha",
        smoothing: float = 1.0,
        margins: Any = None,
        rank_weights: Any = None,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        cache_size: float = 1024,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.loss = loss
        self.k = k
        self.variant = variant
        self.smoothing = smoothing
        self.margins = margins
        self.rank_weights = rank_weights
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cache_size = cache_size
        self.tol = tol
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.classifier_tags.multi_label = takes_several_labels(self)
        return tags

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on X, rows or a kernel matrix, and labels y of any type or an indicator matrix.

        Indicators of several right labels are taken as by :meth:`TopKClassifier.fit`.
        With ``X_val`` and ``y_val`` the history also records the top-k accuracy on them. Their
        kernel values with all training examples are computed once and kept for the fit; with a
        precomputed kernel, ``X_val`` is the matrix of these.
        ``callback`` is called with a :class:`shortlist.solvers.Progress` after every epoch and
        ends training by returning True; scikit-learn's own callbacks, set with
        ``set_callbacks`` (scikit-learn 1.9 and later), are told of every epoch too. Ctrl-C keeps
        the model reached so far.
        """
        small = _num_samples(X) <= MAX_ROWS_FOR_ONE_THREAD
        with one_blas_thread() if small else nullcontext():
            problem, _, solution = fit_model(
                self, X, y, sample_weight, callback, validation=(X_val, y_val)
            )
        self.__dict__.pop("_last", None)
        if self.warm_start:
            self._last = LastFit(solution, problem.loss, problem.costs, self.classes_)
        return self

    def _accuracy_on(self, rows: Rows, X_val: Any, y_val: Any) -> Callable[[NDArray], float] | None:
        if not is_given(X_val, y_val):
            return None
        X_val = self._validated(X_val, reset=False)
        accuracy = accuracy_of_scores(self, X_val.shape[0], y_val)
        if self.kernel == "precomputed":
            K = X_val
        else:
            K = self._function()(_in_double(X_val), _in_double(rows.X))
        square = constant_feature(self) ** 2
        return lambda weights: accuracy(K @ weights + square * weights.sum(axis=0))

    def _checked(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Any]:
        self._check_kernel_parameters()
        if self.fit_intercept == "free":
            free = Setting("fit_intercept", "free")
            raise WordedError(free + " is for TopKClassifier; kernels take True or False")
        if not loss.has_dual_step:
            what = Setting("loss", self.loss) + " with " + Setting("k", self.k)
            kind = "is trained by descents" if loss.convex else "is not convex"
            able = "another" if loss.convex else "a convex"
            why = f" {kind} and has no kernel version: use {able} loss, or TopKClassifier"
            raise WordedError(what + why)
        return self._validated(X, y=y, ensure_min_samples=2, multi_output=loss.multilabel)

    def _storage(self, rows: Rows, n_classes: int, loss: Loss) -> Storage:
        X, dtype = rows.X, rows.X.dtype
        cache_bytes = self._check_memory(X, n_classes)
        self.gamma_ = self._gamma(X, rows.sample_weight)
        matrix: KernelMatrix | PrecomputedMatrix
        if self.kernel == "precomputed":
            matrix = PrecomputedMatrix(X)
        else:
            matrix = KernelMatrix(self._function(), _in_double(X), dtype, cache_bytes)
        diagonal = matrix.diagonal
        if (diagonal < 0).any():
            raise ValueError(
                f"the kernel is not positive semidefinite: an example has K(x, x) = "
                f"{diagonal.min():g}"
            )
        return GramStorage(matrix, diagonal, dtype, constant_feature(self), matrix.whole)

    def _gamma(self, X: Any, sample_weight: Any) -> float:
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return resolve_gamma(self.gamma, X, sample_weight)

    def _validated(self, X: Any, **options: Any) -> Any:
        accept_sparse = False if self.kernel == "precomputed" else "csr"
        return check_input(self, X, accept_sparse=accept_sparse, **options)

    def _check_kernel_parameters(self) -> None:
        if not callable(self.kernel) and self.kernel not in KERNELS:
            allowed = ", ".join(map(repr, KERNELS))
            problem = f"must be one of {allowed} or a function; got {self.kernel!r}"
            raise ParameterError("kernel", problem)
        size = self.cache_size
        if not is_real(size) or not 0 <= float(size) < np.inf:
            problem = f"must be a number of mebibytes, 0 or larger; got {size!r}"
            raise ParameterError("cache_size", problem)
        if self.kernel == "poly":
            for name in ("degree", "coef0"):
                value = getattr(self, name)
                if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
                    problem = f"must be a finite number, 0 or larger; got {value!r}"
                    raise ParameterError(name, problem)

    def _check_memory(self, X: Any, n_classes: int) -> int:
        """Bytes for the kernel matrix; MemoryError, with advice, if training cannot fit."""
        n = X.shape[0]
        matrix = n * n * X.dtype.itemsize if self.kernel != "precomputed" else 0
        cache = min(matrix, int(self.cache_size * _MIB))
        free = available_bytes()
        need = training_bytes(n, n, n_classes, X.dtype.itemsize) + cache
        if free is not None and need > free:
            found = (
                f"training on {n} examples and {n_classes} classes needs about "
                f"{gib(need)}, of which {gib(cache)} for the kernel matrix, and {gib(free)} is "
                "free. Use a smaller "
            )
            advice = Setting("cache_size") + ", float32 input or fewer examples."
            raise WordedMemoryError(found + advice)
        return cache

    def _function(self) -> KernelFunction:
        return KernelFunction(self.kernel, self.gamma_, self.degree, self.coef0)

    def _attributes(self, coefficients: NDArray, rows: Rows) -> dict[str, Any]:
        """The attributes from which a model with these coefficients predicts."""
        if self._has_one_score:
            coefficients = unfolded(folded(coefficients.T, self._separable), self._separable).T
        support = np.flatnonzero(coefficients.any(axis=1))
        dual_coef = coefficients[support]
        if self.kernel == "precomputed":
            vectors = np.empty((0, self.n_features_in_), coefficients.dtype)
        else:
            vectors = _in_double(rows.X[support])
        square = constant_feature(self) ** 2
        sums = dual_coef.sum(axis=0, dtype=np.float64)
        return {
            "support_": support,
            "dual_coef_": dual_coef,
            "support_vectors_": vectors,
            "intercept_": (square * sums).astype(coefficients.dtype),
        }

    def _scores(self, X: ArrayLike) -> NDArray:
        """Scores in chunks of rows, so that the kernel values take a few dozen megabytes."""
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        dtype = self.dual_coef_.dtype
        scores = np.empty((rows.shape[0], self.dual_coef_.shape[1]), dtype)
        for part in chunks(rows.shape[0], max(1, len(self.support_)) * 8):
            scores[part] = (
                self._kernel_values(rows[part]).astype(dtype, copy=False) @ self.dual_coef_
            )
        return scores + self.intercept_

    def _kernel_values(self, X: Any) -> NDArray:
        """K between rows of X and the support vectors."""
        if self.kernel == "precomputed":
            return X[:, self.support_]
        if len(self.support_) == 0:
            return np.zeros((X.shape[0], 0))
        return self._function()(_in_double(X), self.support_vectors_)

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        check_is_fitted(self)
        arrays = {
            "support": self.support_,
            "dual_coef": self.dual_coef_,
            "intercept": self.intercept_,
        }
        meta = meta_of_fit(self) | {"support_vectors": self.support_vectors_, "gamma": self.gamma_}
        return arrays, meta

    @classmethod
    def _from_state(
        cls, arrays: dict[str, NDArray], meta: dict[str, Any]
    ) -> "KernelTopKClassifier":
        model = cls(**meta["params"])
        model.support_, model.dual_coef_ = arrays["support"], arrays["dual_coef"]
        model.intercept_ = arrays["intercept"]
        vectors = meta["support_vectors"]
        model.support_vectors_ = vectors.tocsr() if sparse.issparse(vectors) else vectors
        model.gamma_ = meta["gamma"]
        restore_fit(model, meta)
        return model
