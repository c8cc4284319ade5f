"""The change of variables of a descent: exact, harmless where it cannot help, worth its cost."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.records.run import Run
from shortlist.solvers.strategy import conditioning, descent
from shortlist.solvers.strategy.conditioning import Conditioner, condition, count_blocks
from tests.solvers.problems import make_data, make_problem

LOSSES = {
    "softmax": {},
    "entropy": {"k": 2},
    "ova_logistic": {},
    "smooth_hinge": {"k": 2},
    "ova_smooth_hinge": {},
}


def lopsided(n=200, d=6, m=4):
    """Examples that share a large common part, as raw measurements do."""
    X, y = make_data(n=n, d=d, m=m)
    return X + 20.0 * np.linspace(0.5, 1.0, d), y


def weights_for(problem, seed=0):
    zero = problem.zero_state().weights
    return 0.01 * np.random.default_rng(seed).normal(size=zero.shape)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_variables_and_their_gradient(name, bias):
    X, y = lopsided()
    problem = make_problem("dense", losses.get(name, **LOSSES[name]), X, y, 3.0, bias)
    W = weights_for(problem)
    conditioner = condition(problem, W)
    assert conditioner.factors is not None
    Z = conditioner.forward(W)
    assert np.abs(Z - W).max() > 0.1
    np.testing.assert_allclose(conditioner.backward(Z), W, rtol=1e-9, atol=1e-12)

    gradient = conditioner.gradient(problem.primal_gradient(W)[1])
    direction = np.random.default_rng(1).normal(size=Z.shape)
    ahead, behind = (
        problem.primal_gradient(conditioner.backward(Z + step * direction))[0]
        for step in (1e-5, -1e-5)
    )
    assert (ahead - behind) / 2e-5 == pytest.approx(np.vdot(gradient, direction), rel=1e-5)


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_factors_are_those_of_the_weighted_second_moments(storage, bias, each, monkeypatch):
    X, y = lopsided(n=300)
    problem = make_problem(storage, losses.get("softmax"), X, y, 3.0, bias)
    W = weights_for(problem)
    if not each:
        monkeypatch.setattr(conditioning, "MOST_NUMBERS", 100)
    factors = condition(problem, W).factors
    full = np.c_[X, np.full(len(X), bias)]
    scores = full @ W
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shares = np.abs(p - np.eye(4)[y])
    columns = shares.T if each else [shares.mean(axis=1)]
    assert len(factors) == len(columns)
    for factor, share in zip(factors, columns, strict=True):
        expected = np.eye(full.shape[1]) + 0.02 * 3.0 * full.T @ (full * share[:, None])
        np.testing.assert_allclose(factor.T @ factor, expected, rtol=1e-9, atol=1e-9)


def test_a_sample_stands_for_all():
    X, y = lopsided(n=4500)
    problem = make_problem("dense", losses.get("ova_logistic"), X, y, 3.0, 1.0)
    W = np.zeros_like(problem.zero_state().weights)  # where every |v| is 1/2
    factor = condition(problem, W).factors[2]
    full = np.c_[X, np.ones(len(X))]
    expected = np.eye(full.shape[1]) + 0.02 * 3.0 * 0.5 * full.T @ full
    np.testing.assert_allclose(factor.T @ factor, expected, rtol=0.1, atol=0.1 * expected.max())


@pytest.mark.parametrize("name", LOSSES)
def test_fewer_evaluations_to_the_same_optimum(name, monkeypatch):
    X, y = lopsided()
    results = []
    for choose in (lambda *_: Conditioner(), condition):
        problem = make_problem("dense", losses.get(name, **LOSSES[name]), X, y, 100.0, 1.0)
        run = Run(problem, problem.zero_state(), 1e-3, 10**5)
        monkeypatch.setattr(descent, "condition", choose)
        status, _ = descent.descend(run, problem.zero_state().weights)
        assert status == "converged"
        results.append((run.epochs, problem.primal(run.weights)))
    (plain, reference), (conditioned, found) = results
    assert found == pytest.approx(reference, rel=2e-3)
    assert conditioned < 0.7 * plain


@pytest.mark.parametrize(
    ("storage", "name", "shape"),
    [
        ("gram", "softmax", {}),
        ("dense", "truncated_entropy", {}),
        ("csr", "softmax", {"n": 1500, "d": 600}),
        ("dense", "softmax", {"n": 20, "d": 30}),
    ],
)
def test_left_out_where_it_does_not_belong(storage, name, shape):
    X, y = make_data(**{"n": 200, "d": 6, "m": 4, **shape})
    options = {"k": 2} if name == "truncated_entropy" else {}
    problem = make_problem(storage, losses.get(name, **options), X, y, 1.0, 1.0)
    assert count_blocks(problem) == 0
    assert condition(problem, weights_for(problem)).factors is None


@pytest.mark.parametrize("scale", [1e12, 1e160])
def test_left_out_where_the_identity_is_lost(scale):
    X, y = make_data(n=200, d=6, m=4)
    X[:, 3:] = X[:, :3]  # singular but for the identity
    problem = make_problem("dense", losses.get("softmax"), scale * X, y, 1.0, 1.0)
    conditioner = condition(problem, np.zeros_like(problem.zero_state().weights))
    W = weights_for(problem)
    assert np.isfinite(conditioner.backward(W)).all()
    np.testing.assert_allclose(conditioner.forward(conditioner.backward(W)), W, rtol=1e-3)
