"""Certificates with 50 digits for the other losses, storages and ways to train."""

from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shortlist import TopKClassifier
from shortlist.datasets.on_disk import rows_on_disk
from shortlist.losses.labels import label_rows
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, PiecedStorage, open_storage
from shortlist.solvers.strategy.train import train
from tests.instances import Instance, by_id
from tests.multilabel import Case
from tests.solvers import exact
from tests.solvers.problems import make_data, make_problem, make_storage

FEW = 16
BIAS = 0.5
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Powers of two, so that they sum to 1 and single precision has them.
RANKS = (0.5, 0.375, 0.125)
# Shares of 1/2 for k = 1 and for k = 2.
MIXED = (0.75, 0.25)
CLASS_MARGINS = (0.5, 2.0, 1.0, 1.5)
PAIR_MARGINS = tuple(tuple(abs(i - j) / 2 for j in range(4)) for i in range(4))
BEYOND = [
    Instance("ova_hinge", m=4),
    Instance("hinge", m=4, k=2, variant="printed"),
    Instance("smooth_hinge", m=4, k=3, variant="printed", smoothing=0.5),
    Instance("hinge", m=4, variant="alpha", rank_weights=RANKS),
    Instance("hinge", m=4, variant="beta", rank_weights=RANKS),
    Instance("smooth_hinge", m=4, variant="alpha", smoothing=0.5, rank_weights=RANKS),
    Instance("smooth_hinge", m=4, variant="beta", smoothing=0.5, rank_weights=RANKS),
    Instance("hinge", m=4, margins=CLASS_MARGINS),
    Instance("smooth_hinge", m=4, k=2, variant="beta", smoothing=1.0, margins=PAIR_MARGINS),
    Instance("mixed_smooth_hinge", m=4, variant="alpha", smoothing=0.5, rank_weights=MIXED),
    Instance("mixed_entropy", m=4, variant="alpha", rank_weights=MIXED),
]
# C_i, the scale of the features.
SETTINGS = {
    "C 1": (np.ones(FEW), 1.0),
    "C 1e4": (np.full(FEW, 1e4), 1.0),
    "large features": (np.ones(FEW), 1e3),
    "weights 1e-12 to 1e12": (
        10.0 ** np.random.default_rng(0).permutation(np.linspace(-12, 12, FEW)),
        1.0,
    ),
}
SOFTMAX, HINGE, SMOOTH = (
    Instance("entropy", m=4),
    Instance("hinge", m=4),
    Instance("smooth_hinge", m=4, k=2, smoothing=1.0),
)


def few_examples(scale=1.0, seed=0):
    """Multiples of 1/16 but for the scale: the products of two rows have few digits too."""
    X, y = make_data(n=FEW, seed=seed)
    return (scale * np.round(16 * X) / 16).astype(np.float32), y


# What better_primal found: storages and precisions of the same problem share it.
FOUND: dict[tuple, Any] = {}


def better_primal(row, X, y, cost, free_intercept=False):
    """The exact primal at weights that double has trained for longer."""
    key = (row, X.tobytes(), y.tobytes(), cost.tobytes(), free_intercept)
    if key not in FOUND:
        FOUND[key] = _better_primal(row, X, y, cost, free_intercept)
    return FOUND[key]


def _better_primal(row, X, y, cost, free_intercept):
    problem = make_problem("dense", row.loss(), X.astype(np.float64), y, cost, BIAS)
    if free_intercept:
        problem = with_free_intercept(row, X.astype(np.float64), y, cost)
    best = train(problem, tol=1e-7, max_epochs=300, seed=1).weights
    return exact.primal(row, best, X, y, cost, BIAS, free_intercept)


def with_free_intercept(row, X, y, cost):
    return Problem(open_storage(X, BIAS), Costs(y, cost), row.m, row.loss(), free_intercept=BIAS)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("row", BEYOND, ids=by_id)
def test_losses_beyond_the_paper(row, setting):
    cost, scale = SETTINGS[setting]
    X, y = few_examples(scale)
    reference = better_primal(row, X, y, cost)
    for dtype in (np.float32, np.float64):
        problem = make_problem("dense", row.loss(), X.astype(dtype), y, cost, BIAS)
        solution = train(problem, tol=1e-3, max_epochs=100, seed=0)
        exact.check_result(row, solution, X, y, cost, BIAS, reference)


@PRECISIONS
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("row", [SOFTMAX, HINGE, SMOOTH], ids=by_id)
def test_sparse_rows(row, setting, dtype):
    cost, scale = SETTINGS[setting]
    X, y = few_examples(scale)
    problem = make_problem("csr", row.loss(), X.astype(dtype), y, cost, BIAS)
    solution = train(problem, tol=1e-3, max_epochs=100, seed=0)
    exact.check_result(row, solution, X, y, cost, BIAS, better_primal(row, X, y, cost))


@PRECISIONS
@pytest.mark.parametrize("storage", ["gram", "whole gram"])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("row", [SOFTMAX, HINGE, SMOOTH], ids=by_id)
def test_kernels(row, setting, storage, dtype):
    """Of rows whose inner products both precisions have, so that the problem is the same."""
    cost, scale = SETTINGS[setting]
    X, y = few_examples(2.0 ** np.round(np.log2(scale)))
    problem = make_problem(storage, row.loss(), X.astype(dtype), y, cost, BIAS)
    solution = train(problem, tol=1e-3, max_epochs=100, seed=0)
    W = exact.kernel_weights(solution.weights, X, BIAS)
    exact.check_result(row, solution, X, y, cost, BIAS, better_primal(row, X, y, cost), W)


@PRECISIONS
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize(
    "row",
    [SOFTMAX, SMOOTH, Instance("entropy", m=4, k=2), Instance("ova_logistic", m=4)],
    ids=by_id,
)
def test_an_intercept_that_is_not_regularised(row, C, dtype):
    X, y = few_examples()
    cost = C * np.linspace(0.5, 2.0, FEW)
    solution = train(with_free_intercept(row, X.astype(dtype), y, cost), tol=1e-3, seed=0)
    reference = better_primal(row, X, y, cost, free_intercept=True)
    exact.check_result(row, solution, X, y, cost, BIAS, reference=reference, free_intercept=True)
    assert solution.result.dual > 0


KINDS_OF_DUALS = [
    (row, duals) for row in (SOFTMAX, HINGE, SMOOTH) for duals in ("memory", "mapped")
]
KINDS_OF_DUALS += [(SOFTMAX, "none"), (SMOOTH, "none")]
MATRICES = {"dense": np.asarray, "csr": csr_matrix}
# Each pair of duals, matrix and precision in one case of two: the rounding of each is its own.
PIECES = [
    pytest.param(
        *(row, duals, matrix, dtype),
        id=f"{row.id}-{duals}-{matrix}-{np.dtype(dtype).name}",
        marks=pytest.mark.slow if duals == "mapped" and (matrix == "csr") == wide else (),
    )
    for row, duals in KINDS_OF_DUALS
    for matrix in MATRICES
    for wide, dtype in enumerate((np.float32, np.float64))
]


@pytest.mark.parametrize(("row", "duals", "matrix", "dtype"), PIECES)
def test_rows_in_pieces(row, duals, matrix, dtype):
    X, y = few_examples()
    for C in (1e-3, 1.0, 1e3):
        cost = np.full(FEW, C)
        storage = PiecedStorage(rows_on_disk(MATRICES[matrix](X.astype(dtype))), BIAS, 5, duals)
        assert storage.n_pieces == 4
        problem = Problem(storage, Costs(y, cost), 4, row.loss())
        solution = train(problem, tol=1e-3, max_epochs=100, seed=0)
        exact.check_result(row, solution, X, y, cost, BIAS, better_primal(row, X, y, cost))


SEVERAL = [
    Case("entropy", m=4),
    Case("hinge", m=4),
    Case("hinge", m=4, k=2, variant="alpha"),
    Case("hinge", m=4, k=2, variant="beta"),
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("case", SEVERAL, ids=by_id)
def test_several_right_labels(case, setting):
    cost, scale = SETTINGS[setting]
    X, _ = few_examples(scale)
    right = case.indicators(seed=0, n=FEW)

    def solve(dtype, tol, max_epochs, seed):
        storage = make_storage("dense", X.astype(dtype), BIAS)
        problem = Problem(storage, Costs(label_rows(right), cost), 4, case.loss())
        return train(problem, tol=tol, max_epochs=max_epochs, seed=seed)

    best = solve(np.float64, 1e-7, 300, 1).weights
    reference = exact.primal(case, best, X, right, cost, BIAS)
    for dtype in (np.float32, np.float64):
        solution = solve(dtype, 1e-3, 100, 0)
        exact.check_result(case, solution, X, right, cost, BIAS, reference)


def solution_of(model):
    """What a check reads, from a classifier."""
    W = np.vstack([model.coef_.T, model.intercept_ / np.float32(BIAS)])
    return SimpleNamespace(result=model.result_, weights=W, state=model._last.solution.state)


@PRECISIONS
@pytest.mark.parametrize("row", [SOFTMAX, HINGE, SMOOTH], ids=by_id)
def test_warm_starts_and_updates(row, dtype):
    """Nothing of a certificate is carried over to other data or another C."""
    X, y = few_examples()
    X = X.astype(dtype)
    parameters = {"k": row.k, "smoothing": row.smoothing, "intercept_scaling": BIAS}
    model = TopKClassifier(row.name, C=1.0, warm_start=True, random_state=0, **parameters)

    def check(X, y, C):
        cost = np.full(len(y), C)
        reference = better_primal(row, X, y, cost)
        exact.check_result(row, solution_of(model), X, y, cost, BIAS, reference)

    model.fit(X, y)
    for C in (100.0, 1e-3):
        check_of = model.set_params(C=C).fit(X, y)
        assert check_of is model
        check(X, y, C)
    new, labels = few_examples(seed=1)
    model.set_params(C=1.0).update(new[:8].astype(dtype), labels[:8], removed=[4, 7])
    kept = np.delete(np.arange(FEW), [4, 7])
    check(np.concatenate([X[kept], new[:8]]), np.concatenate([y[kept], labels[:8]]), 1.0)


@pytest.mark.parametrize("row", [*BEYOND, *SEVERAL], ids=by_id)
def test_exact_values_and_conjugates_are_those_of_the_losses(row):
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.normal(size=(FEW, 4))
    y = row.indicators(0, FEW) if isinstance(row, Case) else row.labels(n=FEW)
    v = row.loss().gradient(scores, y)
    with mpmath.workdps(exact.DIGITS):
        values = [
            float(exact.value(row, exact.exactly(f[None])[0], label))
            for f, label in zip(scores, y, strict=True)
        ]
    np.testing.assert_allclose(row.loss().value(scores, y), values, rtol=1e-12, atol=1e-13)
    if not row.loss().has_dual_step:
        return
    conjugates = [
        float(exact.conjugate(row, exact.exactly(x[None])[0], label))
        for x, label in zip(v, y, strict=True)
    ]
    np.testing.assert_allclose(row.loss().conjugate(v, y), conjugates, rtol=1e-12, atol=1e-13)
