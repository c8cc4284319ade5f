"""Models of the Hessian: what they say, and worth their cost."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage import base, features
from shortlist.solvers.storage.curvature import CurvatureRequest
from shortlist.solvers.strategy import conditioning, descent, newton
from shortlist.solvers.strategy.conditioning import has_small_scores, plan
from shortlist.solvers.strategy.hessian import (
    FINITE_STEP,
    UNIFORM_SHARE_LEFT,
    Identity,
    Kind,
    Plan,
    make_model,
)
from shortlist.solvers.threads import Crew
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


@pytest.mark.parametrize("name", ["softmax", "ova_logistic"])
@pytest.mark.parametrize(("storage", "bias"), [("dense", 2.0), ("csr", 0.0)])
def test_the_uniform_model_is_the_hessian_at_zero(name, storage, bias):
    """For gradients as there are: those of softmax add up to zero over the classes."""
    X, y = make_data(n=60, d=5, m=4)
    problem = make_problem(storage, losses.get(name), X, y, make_costs(60), bias)
    zero = problem.zero_state().weights
    model = make_model(problem, zero, Plan(Kind.UNIFORM))
    assert model.exact
    gradient = problem.primal_gradient(zero)[1]
    found = hessian_at(problem, zero) @ model.solve(gradient).reshape(-1)
    left = found - gradient.reshape(-1)
    assert np.linalg.norm(left) <= 1.01 * UNIFORM_SHARE_LEFT * np.linalg.norm(gradient)


def test_the_uniform_model_is_for_small_scores():
    X, y = make_data(n=700, d=40, m=30)
    for C, small in ((1e-6, True), (1e-3, True), (10.0, False)):
        problem = make_problem("dense", losses.get("softmax"), X, y, C)
        assert has_small_scores(problem) == small
        assert (plan(problem).kind is Kind.UNIFORM) == small
    # Not where all classes are one small matrix, examples few, or duals sparse.
    few = make_problem("dense", losses.get("softmax"), X[:300], y[:300], 1e-6)
    hinge = make_problem("dense", losses.get("smooth_hinge"), X, y, 1e-6)
    small = make_problem("dense", losses.get("softmax"), *make_data(n=700, d=5, m=4), 1e-6)
    assert not any(map(has_small_scores, (few, hinge, small)))


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
    assert first.steps == later.steps > conditioning.MAX_MODEL_COST


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


DENSE = {name: LOSSES[name] for name in ("softmax", "entropy")}


def listed_product(problem, W, least=0.0, crew=None, moments=None, scores=None):
    """The Hessian as the listed curvature gives it, with the regulariser's identity."""
    asked = CurvatureRequest(least, FINITE_STEP, moments, scores)
    found = problem.storage.curvature(problem.loss, W, problem.costs, crew or Crew(), asked)
    columns = [
        found.times(np.ascontiguousarray(column.reshape(W.shape).T, W.dtype)).T.reshape(-1)
        for column in np.eye(W.size)
    ]
    return np.eye(W.size) + np.stack(columns, axis=1), found


@pytest.mark.parametrize("name", ["softmax", "ova_logistic"])
def test_scores_of_an_evaluation_serve_the_second_derivatives_at_the_same_weights(name):
    X, y = make_data(n=700, d=5, m=6, dtype=np.float32)
    problem = make_problem("dense", losses.get(name), X, y, make_costs(700), bias=2.0)
    W = weights_for(problem).astype(np.float32)
    problem.bounded_gradient(W)
    assert problem.kept_scores.known_at(W) is None
    problem.bounded_gradient(W, keep=True)
    scores = problem.kept_scores.known_at(W)
    np.testing.assert_allclose(scores, problem.storage.sample(1) @ W, rtol=1e-4, atol=1e-5)
    without, _ = listed_product(problem, W)
    found, _ = listed_product(problem, W, scores=scores)
    np.testing.assert_allclose(found, without, rtol=1e-4, atol=1e-4)
    assert problem.kept_scores.known_at(W.copy()) is None  # other weights, as far as it can tell
    problem.kept_scores.forget()
    assert problem.kept_scores.known_at(W) is None


def test_many_scores_are_not_kept(monkeypatch):
    monkeypatch.setattr(base, "CHUNK_BYTES", 700 * 6 * 4 - 1)
    X, y = make_data(n=700, d=5, m=6, dtype=np.float32)
    problem = make_problem("dense", losses.get("softmax"), X, y, make_costs(700))
    W = weights_for(problem).astype(np.float32)
    value, gradient, _ = problem.bounded_gradient(W, keep=True)
    assert problem.kept_scores.known_at(W) is None
    again, expected, _ = problem.bounded_gradient(W)
    assert value == again
    np.testing.assert_array_equal(gradient, expected)


def test_examples_without_curvature_are_not_listed():
    """All sure of their labels: what little they have is in the mean."""
    X, y = np.eye(4, dtype=np.float32), np.arange(4)
    problem = make_problem("dense", losses.get("softmax"), X, y, np.ones(4))
    W = np.vstack([30 * np.eye(4), np.zeros((1, 4))]).astype(np.float32)
    _, found = listed_product(problem, W, least=0.05)
    assert found.entries == 0
    _, found = listed_product(problem, 0 * W, least=0.05)
    assert found.entries == 16


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("storage", "bias"), [("dense", 2.0), ("csr", 0.0)])
def test_all_second_derivatives_together_are_the_hessian(name, storage, bias):
    X, y = make_data(n=60, d=5, m=4)
    problem = make_problem(storage, losses.get(name, **LOSSES[name]), X, y, make_costs(60), bias)
    W = weights_for(problem)
    with Crew(2) as crew:
        found, _ = listed_product(problem, W, crew=crew)
    np.testing.assert_allclose(found, hessian_at(problem, W), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", DENSE)
def test_classes_that_matter_little_are_left_out(name):
    X, y = make_data(n=200, d=5, m=6)
    problem = make_problem("dense", losses.get(name, **DENSE[name]), X, y, 10.0)
    W = 100.0 * weights_for(problem)
    hessian = hessian_at(problem, W)
    errors, entries = [], []
    for least in (0.0, 0.05, 0.5):
        listed, found = listed_product(problem, W, least)
        errors.append(np.abs(listed - hessian).max())
        entries.append(found.entries)
    assert entries[0] == 6 * np.count_nonzero(problem.storage.kappa)
    assert entries[0] > entries[1] > entries[2] > 0
    assert errors[0] < 1e-3 < errors[1] < errors[2]
    # Dropping rows and columns of a positive semidefinite matrix leaves one.
    assert np.linalg.eigvalsh(0.5 * (listed + listed.T)).min() > 1 - 1e-6


def softmax_of(scores):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("least", [0.02, 0.2, 1e9])
def test_softmax_keeps_blocks_of_the_whole_hessian_and_the_mean_of_the_rest(least, dtype):
    """Against diag p - p p' of all classes, cut by hand; if one is kept, so is the label."""
    X, y = make_data(n=120, d=4, m=7)
    costs = make_costs(120)
    problem = make_problem("dense", losses.get("softmax"), X.astype(dtype), y, costs)
    W = weights_for(problem).astype(dtype)
    moments = problem.moments.of(problem.storage, problem.costs)
    expected = np.eye(W.size)
    rest, entries = np.zeros(7), 0
    x = problem.storage.sample(1)
    for i, p in enumerate(softmax_of(x @ W.astype(np.float64))):
        v = p - np.eye(7)[y[i]]
        kept = costs[i] * problem.storage.kappa[i] * np.abs(v) >= least
        kept[y[i]] |= kept.any()
        entries += np.count_nonzero(kept)
        h = costs[i] * np.where(np.outer(kept, kept), np.diag(p) - np.outer(p, p), 0.0)
        expected += np.einsum("ab,j,l->jalb", h, x[i], x[i]).reshape(W.size, W.size)
        if x[i].any():
            rest += costs[i] * np.where(kept, 0.0, p * (1 - p))
    expected += np.einsum("ab,jl->jalb", np.diag(rest), moments).reshape(W.size, W.size)
    with Crew(2) as crew:
        found, listed = listed_product(problem, W, least, crew, moments)
    rough = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found, expected, rtol=rough, atol=rough)
    assert listed.entries == entries


def test_a_step_from_predicted_weights_solves_the_next_C():
    """Two solutions of a path, and the line through them: one Newton step certifies the third."""
    X, y = embeddings(d=40, m=30)
    problems = {C: make_problem("dense", losses.get("softmax"), X, y, C) for C in (1.0, 6.0, 36.0)}
    solved = {}
    for C in (1.0, 6.0):
        run = Run(problems[C], problems[C].zero_state(), 1e-6, 500)
        descent.descend(run, problems[C].zero_state().weights)
        solved[C] = run.weights
    place = 2 * solved[6.0] - solved[1.0]
    model = make_model(problems[36.0], place, Plan(Kind.LISTED), 0.01)
    gradient = problems[36.0].primal_gradient(place)[1]
    after, left = problems[36.0].primal_gradient(place - model.solve(gradient))
    assert 0.5 * np.sum(left**2) < 1e-3 * after < 0.5 * np.sum(gradient**2)


def test_examples_without_a_cost_or_features_have_no_curvature():
    X, y = make_data(n=30, d=4, m=5)
    X[3] = 0.0
    costs = make_costs(30)
    costs[7] = 0.0
    problem = make_problem("dense", losses.get("softmax"), X, y, costs)
    _, found = listed_product(problem, weights_for(problem))
    counts = np.concatenate([part.counts for part in found.parts])
    costless = (problem.costs.cost == 0) | (problem.storage.kappa == 0)
    assert costless[[3, 7]].all()
    np.testing.assert_array_equal(counts == 0, costless)


def test_lists_have_room_for_more_than_was_made_at_first(monkeypatch):
    X, y = make_data(n=300, d=4, m=40)
    problem = make_problem("dense", losses.get("softmax"), X, y, 5.0)
    W = weights_for(problem)
    expected, _ = listed_product(problem, W)
    monkeypatch.setattr(features, "LISTED_CLASSES_AT_FIRST", 0)
    found, lists = listed_product(problem, W)
    np.testing.assert_array_equal(found, expected)
    assert lists.entries == features.MAX_LISTED_CLASSES * np.count_nonzero(problem.storage.kappa)


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e4])
@pytest.mark.parametrize("share", [0.3, 0.01])
def test_conjugate_gradients_leave_a_share_of_the_right_side(condition, share):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A = Q * np.geomspace(1.0, condition, 40) @ Q.T
    right = rng.normal(size=(8, 5))
    x = newton.conjugate_gradients(lambda v: (A @ v.reshape(-1)).reshape(v.shape), right, share)
    left = A @ x.reshape(-1) - right.reshape(-1)
    assert np.linalg.norm(left) <= share * np.linalg.norm(right)


def test_conjugate_gradients_of_nothing():
    assert not newton.conjugate_gradients(lambda v: v, np.zeros((3, 2)), 0.1).any()


def embeddings(n=1200, d=40, m=50):
    """Rows of length one around the means of many classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    X = rng.normal(size=(m, d))[y] + rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", DENSE)
def test_newtons_steps_reach_the_optimum_in_few_evaluations(name, storage, monkeypatch):
    X, y = embeddings()
    problem = make_problem(storage, losses.get(name, **DENSE[name]), X, y, 300.0)
    W = problem.storage.class_sums(problem.costs, 50)
    W *= 10.0 / np.linalg.norm(W)
    monkeypatch.setattr(conditioning, "MAX_PRICE_OF_PRODUCT", np.inf)
    assert plan(problem, W).kind is Kind.LISTED
    run = Run(problem, problem.zero_state(), 1e-5, 200)
    status, _ = descent.descend(run, W)
    assert status == "converged"
    assert run.result(status).relative_gap <= 1e-5
    plain = Run(problem, problem.zero_state(), 1e-5, 1000)
    monkeypatch.setattr(descent, "plan", lambda *_, **__: Plan(Kind.NONE))
    assert descent.descend(plain, W)[0] == "converged"
    assert run.epochs < 0.6 * plain.epochs


def test_long_lists_are_not_made():
    """At W = 0 all classes are alike: a descent begins without lists, and goes on with them."""
    X, y = embeddings(d=200, m=120)
    problem = make_problem("dense", losses.get("softmax"), X, y, 300.0)
    zero = problem.zero_state().weights
    first = plan(problem, zero)
    assert first.kind is not Kind.LISTED
    assert first.steps is not None
    solution = Run(problem, problem.zero_state(), 1e-3, 200)
    descent.descend(solution, zero)
    assert plan(problem, solution.weights, late=True).kind is Kind.LISTED


@pytest.mark.parametrize("name", ["smooth_hinge", "ova_logistic"])
def test_losses_with_other_models(name):
    X, y = make_data(n=400, d=30, m=60)
    problem = make_problem("dense", losses.get(name), X, y, 300.0)
    assert plan(problem).kind is not Kind.LISTED


def test_close_to_a_solution_one_model_lasts(monkeypatch):
    X, y = embeddings()
    problem = make_problem("dense", losses.get("softmax"), X, y, 300.0)
    monkeypatch.setattr(conditioning, "MAX_PRICE_OF_PRODUCT", np.inf)
    near = Run(problem, problem.zero_state(), 1e-4, 200)
    assert descent.descend(near, problem.zero_state().weights)[0] == "converged"
    made = []

    def note(problem, weights, chosen, share):
        made.append((chosen, share))
        return make_model(problem, weights, chosen, share)

    monkeypatch.setattr(descent, "make_model", note)
    run = Run(problem, problem.zero_state(), 1e-5, 200)
    assert descent.descend(run, near.weights)[0] == "converged"
    gap = 0.5 * np.sum(problem.primal_gradient(near.weights)[1] ** 2)
    assert 1e-5 * near.primal < gap <= newton.MAX_GAP_RATIO_NEAR * 1e-5 * near.primal
    assert len(made) == 1
    (chosen, share), evaluations = made[0], run.epochs
    assert (chosen.kind, share) == (Kind.LISTED, newton.CG_SHARE_LEFT_NEAR)
    assert 1 <= evaluations <= 2 * conditioning.STEPS_NEAR
