"""The contestants of the peers benchmark: what minimises the same objective without an intercept.

A contestant has a ladder of settings, from least to most effort, and a function that trains with
one of them and returns W as (n_classes, n_features). All minimise

    1/2 |W|^2 + C sum_i L(y_i, W'x_i)

in their own words; the benchmark computes that objective itself, for all of them alike.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from benchmarks.data import Examples
from scipy.sparse import issparse

OWN, CYANURE = "shortlist", "Cyanure"
# No solver reaches this limit: the time limit of the benchmark ends it earlier.
ITERATIONS = range(1, 1 << 20)
TOLERANCES = np.geomspace(10, 1e-6, 71).tolist()
# newton-cholesky factorises a Hessian of (d m) x (d m) doubles.
LARGEST_HESSIAN = 1 << 30


@dataclass(frozen=True)
class Solver:
    """A contestant: its name, what its settings mean, the settings, and how to train."""

    name: str
    setting: str
    ladder: Sequence[float]
    train: Callable[[float], np.ndarray]


def own_model(loss: str, C: float, tol: float, max_epochs: int = 100_000) -> Any:
    """The classifier of this library as the benchmarks use it."""
    from shortlist import TopKClassifier

    return TopKClassifier(
        loss, C=C, tol=tol, max_epochs=max_epochs, fit_intercept=False, random_state=0
    )


def solvers_for(loss: str, data: Examples, C: float) -> list[Solver]:
    """This library first, then whatever peers there are for the loss."""
    own = Solver(OWN, "tol", TOLERANCES, lambda tol: own_model(loss, C, tol).fit(*_xy(data)).coef_)
    return [own, *_PEERS[loss](data, C)]


def _xy(data: Examples) -> tuple[Any, np.ndarray]:
    return data.X, data.y


def _logistic(data: Examples, C: float, solver: str) -> Solver:
    from sklearn.linear_model import LogisticRegression

    def train(iterations: float) -> np.ndarray:
        model = LogisticRegression(
            C=C, solver=solver, tol=1e-14, max_iter=int(iterations), fit_intercept=False
        )
        return model.fit(*_xy(data)).coef_

    return Solver(f"scikit-learn {solver}", "max_iter", ITERATIONS, train)


def _crammer_singer(data: Examples, C: float) -> Solver:
    from sklearn.svm import LinearSVC

    # LIBLINEAR passes max_iter to its other solvers only.
    def train(tol: float) -> np.ndarray:
        model = LinearSVC(
            C=C, multi_class="crammer_singer", tol=tol, fit_intercept=False, random_state=0
        )
        return model.fit(*_xy(data)).coef_

    return Solver("LinearSVC crammer_singer", "tol", TOLERANCES, train)


def _one_vs_rest(data: Examples, C: float) -> Solver:
    from sklearn.svm import LinearSVC

    def train(iterations: float) -> np.ndarray:
        model = LinearSVC(
            C=C,
            loss="hinge",
            dual=True,
            tol=1e-14,
            max_iter=int(iterations),
            fit_intercept=False,
            random_state=0,
        )
        return model.fit(*_xy(data)).coef_

    return Solver("LinearSVC hinge", "max_iter", ITERATIONS, train)


def _torch_lbfgs(data: Examples, C: float, loss: str) -> Solver:
    """torch.optim.LBFGS on the full batch, with its strong Wolfe line search."""
    import torch

    from shortlist.torch import functional

    criterion = {
        "softmax": torch.nn.functional.cross_entropy,
        "smooth_hinge": functional.topk_hinge_loss,
    }[loss]
    X, y = torch.from_numpy(np.asarray(data.X)), torch.from_numpy(data.y)

    def train(iterations: float) -> np.ndarray:
        weights = torch.zeros(X.shape[1], data.n_classes, dtype=X.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [weights],
            max_iter=int(iterations),
            max_eval=10 * int(iterations),
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=10,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            # Divided by n C, so that the first step has a sensible length.
            value = criterion(X @ weights, y) + (weights**2).sum() * (0.5 / (C * len(y)))
            value.backward()
            return value

        optimiser.step(closure)
        return weights.detach().numpy().T

    return Solver("torch L-BFGS", "max_iter", ITERATIONS, train)


def _cyanure(data: Examples, C: float) -> Solver:
    from cyanure.estimators import Classifier

    n = len(data.y)
    threads = int(os.environ.get("OMP_NUM_THREADS", "-1"))

    def train(iterations: float) -> np.ndarray:
        model = Classifier(
            loss="multiclass-logistic",
            penalty="l2",
            lambda_1=1.0 / (n * C),
            max_iter=int(iterations),
            tol=1e-14,
            fit_intercept=False,
            verbose=False,
            n_threads=threads,
        )
        model.fit(*_xy(data))
        coef = np.asarray(model.coef_)
        return coef if coef.shape[0] == data.n_classes else coef.T

    return Solver(CYANURE, "max_iter", ITERATIONS, train)


def _softmax(data: Examples, C: float) -> list[Solver]:
    found = [_logistic(data, C, "lbfgs")]
    if 8 * (data.X.shape[1] * data.n_classes) ** 2 <= LARGEST_HESSIAN:
        found.append(_logistic(data, C, "newton-cholesky"))
    if find_spec("torch") and not issparse(data.X):
        found.append(_torch_lbfgs(data, C, "softmax"))
    if find_spec("cyanure"):
        found.append(_cyanure(data, C))
    return found


def _smooth_hinge(data: Examples, C: float) -> list[Solver]:
    return [_torch_lbfgs(data, C, "smooth_hinge")] if find_spec("torch") else []


_PEERS: dict[str, Callable[[Examples, float], list[Solver]]] = {
    "softmax": _softmax,
    "smooth_hinge": _smooth_hinge,
    "hinge": lambda data, C: [_crammer_singer(data, C)],
    "ova_hinge": lambda data, C: [_one_vs_rest(data, C)],
}
LOSSES = tuple(_PEERS)


def quietly(train: Callable[[float], np.ndarray], setting: float) -> np.ndarray:
    """Train without the warnings that a cut iteration count brings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train(setting)
