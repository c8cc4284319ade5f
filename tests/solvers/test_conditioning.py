"""Models of the Hessian: what they say, and worth their cost."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.records.run import Run
from shortlist.solvers.strategy import conditioning, descent
from shortlist.solvers.strategy.conditioning import Identity, Kind, Plan, make_model, plan
from tests.solvers.problems import make_costs, make_data, make_problem

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


def inverse_of(model, shape):
    """The matrix that the model multiplies gradients with, for weights in the order of W."""
    size = shape[0] * shape[1]
    columns = [model.solve(column.reshape(shape)).reshape(-1) for column in np.eye(size)]
    return np.stack(columns, axis=1)


def hessian_at(problem, W, step=1e-6):
    """Second derivatives of the primal, by central differences of its gradient."""
    columns = []
    for entry in np.eye(W.size):
        shift = step * entry.reshape(W.shape)
        ahead, behind = (problem.primal_gradient(W + sign * shift)[1] for sign in (1, -1))
        columns.append((ahead - behind).reshape(-1) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("storage", "bias"), [("dense", 2.0), ("csr", 0.0)])
def test_the_coupled_model_is_the_hessian(name, storage, bias):
    X, y = make_data(n=60, d=5, m=4)
    problem = make_problem(storage, losses.get(name, **LOSSES[name]), X, y, make_costs(60), bias)
    W = weights_for(problem)
    model = make_model(problem, W, Plan(Kind.COUPLED, 60))
    assert model.exact
    product = inverse_of(model, W.shape) @ hessian_at(problem, W)
    np.testing.assert_allclose(product, np.eye(W.size), atol=1e-4)


@pytest.mark.parametrize("kind", [Kind.CLASSES, Kind.MEAN])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_blocks_are_the_weighted_second_moments(storage, bias, kind):
    X, y = lopsided(n=300)
    problem = make_problem(storage, losses.get("softmax"), X, y, 3.0, bias)
    W = weights_for(problem)
    model = make_model(problem, W, Plan(kind, 300))
    full = np.c_[X, np.full(len(X), bias)]
    scores = full @ W
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shares = np.abs(p - np.eye(4)[y])
    if kind is Kind.MEAN:
        shares[:] = shares.mean(axis=1, keepdims=True)
    gradient = np.random.default_rng(1).normal(size=W.shape)
    for c, share in enumerate(shares.T):
        block = np.eye(full.shape[1]) + 0.02 * 3.0 * full.T @ (full * share[:, None])
        expected = np.linalg.solve(block, gradient[:, c])
        np.testing.assert_allclose(model.solve(gradient)[:, c], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("kind", [Kind.CLASSES, Kind.COUPLED])
def test_a_sample_stands_for_all(kind):
    X, y = lopsided(n=4500)
    problem = make_problem("dense", losses.get("ova_logistic"), X, y, 3.0, 1.0)
    W = np.zeros_like(problem.zero_state().weights)  # where all examples have the same curvature
    gradient = np.random.default_rng(0).normal(size=W.shape)
    part, whole = (make_model(problem, W, Plan(kind, size)).solve(gradient) for size in (900, 4500))
    assert not np.array_equal(part, whole)
    np.testing.assert_allclose(part, whole, atol=0.15 * np.abs(whole).max())


@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.CLASSES, Kind.COUPLED])
@pytest.mark.parametrize("name", LOSSES)
def test_fewer_evaluations_to_the_same_optimum(name, kind, monkeypatch):
    X, y = lopsided()
    results = []
    for chosen in (Plan(Kind.NONE), Plan(kind, 200, 8)):
        problem = make_problem("dense", losses.get(name, **LOSSES[name]), X, y, 100.0, 1.0)
        run = Run(problem, problem.zero_state(), 1e-3, 10**5)
        monkeypatch.setattr(descent, "plan", lambda *_, chosen=chosen, **__: chosen)
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
        ("dense", "softmax", {"n": 700, "d": 400}),
    ],
)
def test_left_out_where_it_does_not_belong(storage, name, shape):
    X, y = make_data(**{"n": 200, "d": 6, "m": 4, **shape})
    options = {"k": 2} if name == "truncated_entropy" else {}
    problem = make_problem(storage, losses.get(name, **options), X, y, 1.0, 1.0)
    chosen = plan(problem)
    assert chosen == Plan(Kind.NONE)
    assert isinstance(make_model(problem, weights_for(problem), chosen), Identity)


def test_a_model_is_bought_when_it_has_paid():
    few, y = make_data(n=2000, d=4, m=3)
    cheap = make_problem("dense", losses.get("softmax"), few, y)
    assert plan(cheap).kind is Kind.COUPLED
    wide, y = make_data(n=300, d=100, m=10)
    dear = make_problem("dense", losses.get("softmax"), wide, y)
    first, later = plan(dear), plan(dear, late=True)
    assert first.kind is not Kind.COUPLED
    assert later.kind is Kind.COUPLED
    assert first.steps == later.steps > conditioning.EVALUATIONS_WORTH


@pytest.mark.parametrize("kind", [Kind.MEAN, Kind.CLASSES, Kind.COUPLED])
@pytest.mark.parametrize("scale", [1e12, 1e160])
def test_left_out_where_the_identity_is_lost(scale, kind):
    X, y = make_data(n=200, d=6, m=4)
    X[:, 3:] = X[:, :3]  # singular but for the identity
    problem = make_problem("dense", losses.get("softmax"), scale * X, y, 1.0, 1.0)
    W = np.zeros_like(problem.zero_state().weights)
    model = make_model(problem, W, Plan(kind, 200))
    gradient = np.random.default_rng(0).normal(size=W.shape)
    found = model.solve(gradient)
    assert np.isfinite(found).all()
    assert np.vdot(found, gradient) > 0.0
