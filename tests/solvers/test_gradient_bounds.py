"""Certificates from gradients in single precision, against the formulas in extended precision."""

from dataclasses import replace

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.records.certificate import KERNEL_ULPS
from shortlist.solvers.strategy.train import train
from shortlist.solvers.threads import Crew, one_blas_thread
from tests.solvers.problems import make_data, make_problem

LOSSES = ("softmax", "ova_logistic")
BIAS = 0.5
# The rounding of a sum of 700 losses in double, relative to it.
IN_DOUBLE = 700 * 2.0**-53


def softmax_terms(scores, y):
    """Losses and their gradients; the label's entry is minus the sum of the others."""
    rows = np.arange(len(y))
    u = scores - scores[rows, y][:, None]
    u[rows, y] = -np.inf
    top = np.maximum(u.max(axis=1), 0)
    terms = np.exp(u - top[:, None])
    total = np.exp(-top) + terms.sum(axis=1)
    gradients = terms / total[:, None]
    gradients[rows, y] = -gradients.sum(axis=1)
    near = np.log1p(np.exp(u).sum(axis=1, where=u < 50))
    return np.where(top > 0, top + np.log(total), near), gradients


def logistic_terms(scores, y):
    sign = np.ones_like(scores)
    sign[np.arange(len(y)), y] = -1
    t = sign * scores
    values = np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))
    return values.sum(axis=1), sign / (1 + np.exp(-t))


TERMS = {"softmax": softmax_terms, "ova_logistic": logistic_terms}


def truth(problem, W):
    """The primal and its gradient with 64 bits of mantissa."""
    x = np.asarray(problem.storage.x, np.longdouble)
    x = np.c_[x, np.full(len(x), problem.storage.bias, np.longdouble)]
    W, cost = W.astype(np.longdouble), problem.costs.cost.astype(np.longdouble)
    with np.errstate(over="ignore", under="ignore"):
        values, gradients = TERMS[problem.loss.name](x @ W, problem.costs.y)
    return (W**2).sum() / 2 + cost @ values, W + x.T @ (cost[:, None] * gradients)


def problem_of(name, X, y, cost):
    problem = make_problem("dense", losses.get(name), X.astype(np.float32), y, cost, BIAS)
    # Of softmax, the name is that of its family.
    return replace(problem, loss=replace(problem.loss, name=name))


def check(problem, W):
    """The certificate's claims; returns it with the true gap of the pair."""
    W = W.astype(np.float32)
    value, gradient, found = problem.bounded_gradient(W)
    primal, exact = truth(problem, W)
    gap = float((exact**2).sum() / 2)
    if found is not None:
        assert found.primal == value
        assert found.primal - found.dual >= gap
        summed = IN_DOUBLE * float(primal)
        assert found.dual <= float(primal - gap) + summed
        assert found.alone <= float(primal - gap) + summed
        assert abs(found.primal - float(primal)) <= found.doubt + summed
        assert found.apart >= float(np.sqrt((exact**2).sum()))
    return found, gap, gradient


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e-3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("name", LOSSES)
def test_gaps_of_gradients_are_never_smaller_than_the_truth(name, C, scale):
    for n, d, m in ((60, 5, 4), (700, 40, 30)):
        X, y = make_data(n=n, d=d, m=m)
        problem = problem_of(name, X, y, C)
        rng = np.random.default_rng([n, d])
        check(problem, scale * rng.normal(size=(d + 1, m)))


@pytest.mark.parametrize("name", LOSSES)
def test_gaps_of_gradients_at_solutions(name):
    """Where gradients cancel, rounding is all that is left of them."""
    X, y = make_data(n=700, d=40, m=30, dtype=np.float32)
    for C in (1e-6, 1e-3, 1.0, 100.0):
        problem = problem_of(name, X, y, C)
        wide = make_problem("dense", problem.loss, X.astype(np.float64), y, C, BIAS)
        found, gap, _ = check(problem, train(wide, tol=1e-8, seed=0).weights)
        wanted = 1e-3 * min(problem.at_zero - found.primal, found.primal)
        assert gap <= 0.01 * wanted
        # Without losses in double little is certain at small C.
        if problem.loss.has_lanes or C >= 1.0:
            assert found.rounding <= 0.1 * wanted


@pytest.mark.parametrize("name", LOSSES)
def test_gaps_of_gradients_of_odd_data(name):
    X, y = make_data(n=300, d=12, m=6)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(13, 6))
    orders = 10.0 ** rng.permutation(np.linspace(-8, 7, 300))
    tied = np.repeat(X[:1], 300, axis=0)
    for data, cost, weights in (
        (X, orders, W),  # costs of many orders
        (X, np.where(np.arange(300) % 3, 0.0, 1.0), W),  # examples that do not count
        (np.zeros_like(X), 1.0, W),  # scores of the intercept alone
        (tied, 1.0, W),  # one example again and again: errors are all alike
        (tied, 1.0, np.repeat(W[:, :1], 6, axis=1)),  # scores that tie
        (1e3 * X, 1e-4, W),  # large features
        (1e-6 * X, 1e6, W),  # small ones
        (X * 10.0 ** rng.uniform(-6, 3, size=(300, 1)), 1.0, W),  # rows of many orders
        (np.abs(X), 1.0, np.abs(W)),  # sums without cancellation
        (X, 1.0, np.diag([1.0] + [1e4] * 12)[:, :6] + W),  # classes of many orders
    ):
        found, gap, _ = check(problem_of(name, data, y, cost), weights)
        assert found is None or found.primal - found.dual <= 2 * gap + 1.0 + 0.01 * found.primal


def test_scores_that_rounding_may_move_far_leave_nothing_certain():
    X, y = make_data(n=60)
    problem = problem_of("softmax", 1e4 * X, y, 1.0)
    assert problem.bounded_gradient(np.full((6, 4), 1e3, np.float32))[2] is None


def test_wide_losses_are_those_of_double():
    """W is so small that scores vanish: losses are those at zero."""
    X, y = make_data(n=500, d=8, m=7, dtype=np.float32)
    problem = problem_of("softmax", X, y, 1e-6)
    storage, W = problem.storage, np.full((9, 7), 1e-20, np.float32)
    given = (problem.loss, W, problem.costs, Crew())
    wide, gradient, lengths = storage.bounded_gradient(*given, True)
    assert wide == pytest.approx(problem.at_zero, rel=1e-14)
    assert lengths.loss_dtype == np.float64
    single, other, own = storage.bounded_gradient(*given, False)
    assert abs(single - problem.at_zero) <= KERNEL_ULPS * 2.0**-24 * problem.at_zero
    assert own.loss_dtype == np.float32
    np.testing.assert_allclose(gradient, other, rtol=1e-5, atol=1e-12)


def test_lengths_are_those_of_the_gradients_whatever_the_threads():
    X, y = make_data(n=3000, d=8, m=30, dtype=np.float32)
    problem = problem_of("softmax", X, y, 0.3)
    W = np.random.default_rng(0).normal(size=(9, 30)).astype(np.float32)
    storage, kappa = problem.storage, problem.storage.kappa
    scores = np.c_[X, np.full(len(X), BIAS)].astype(float) @ W
    g = 0.3 * softmax_terms(scores.astype(np.longdouble), y)[1].astype(float)
    squares = np.einsum("ij,ij->i", g, g)
    expected = [
        np.sqrt(kappa * squares).sum(),
        kappa @ squares,
        kappa**2 @ squares,
        kappa @ np.abs(g).sum(axis=1) ** 2,
    ]
    for size in (1, 2):
        with Crew(size) as crew, one_blas_thread():
            for wide in (False, True):
                found = storage.bounded_gradient(problem.loss, W, problem.costs, crew, wide)[2]
                np.testing.assert_allclose(found[:4], expected, rtol=1e-4)
                assert 512 <= found.additions <= 512 + 3000 / 512 + 4


@pytest.mark.parametrize("storage", ["csr", "dense"])
def test_there_is_no_certificate_where_rounding_is_not_known(storage):
    """Nor is one needed in double."""
    X, y = make_data(n=60, dtype=np.float32 if storage == "csr" else np.float64)
    problem = make_problem(storage, losses.get("softmax"), X, y, 1.0, BIAS)
    W = np.ones((6, 4), X.dtype)
    value, gradient, found = problem.bounded_gradient(W)
    assert found is None
    other, same = problem.primal_gradient(W)
    assert value == other
    np.testing.assert_array_equal(gradient, same)
