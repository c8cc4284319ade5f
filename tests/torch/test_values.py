"""Values and gradients against formulas, a convex solver and optimality conditions."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from .cases import CASES, Case, differences, support

CONVEX_TOPK = [case for case in CASES if case.name in ("hinge", "smooth_hinge", "entropy")]


def evaluate(case: Case, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tensor = torch.tensor(scores, requires_grad=True)
    losses = case.make(reduction="none")(tensor, torch.tensor(labels))
    (gradient,) = torch.autograd.grad(losses.sum(), tensor)
    return losses.detach().numpy(), gradient.numpy()


def batch(seed: int, n: int, m: int, scale: float, margin: float = 0.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, m)) * scale
    labels = rng.integers(m, size=n)
    scores[np.arange(n), labels] += margin
    return scores, labels


def has_formula(case: Case) -> bool:
    return case.name != "smooth_hinge" and (case.name != "entropy" or case.k == 1)


def naive(case: Case, scores: np.ndarray, label: int) -> float:
    """The value by a formula."""
    u = np.sort(differences(scores, label))[::-1]
    if case.name == "hinge":
        return support(1 + u, case.k, case.params["variant"])
    if case.name in ("truncated_entropy", "entropy"):
        return np.logaddexp.reduce(np.append(u[case.k - 1 :], 0.0))
    z = -scores.copy()
    z[label] *= -1
    if case.name == "ova_logistic":
        return np.logaddexp(0, -z).sum()
    gamma = case.params.get("smoothing", 0.0)
    if gamma == 0:
        return np.maximum(0, 1 - z).sum()
    inside = (1 - z) ** 2 / (2 * gamma)
    return np.where(z > 1, 0, np.where(z < 1 - gamma, 1 - z - gamma / 2, inside)).sum()


@pytest.mark.parametrize("case", [case for case in CASES if has_formula(case)], ids=str)
def test_value_is_the_formulas(case):
    scores, labels = batch(0, 40, 9, 2.0)
    losses, _ = evaluate(case, scores, labels)
    expected = [naive(case, row, label) for row, label in zip(scores, labels, strict=True)]
    np.testing.assert_allclose(losses, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("m", [6, 40])
@pytest.mark.parametrize(("scale", "margin"), [(0.01, 0.0), (1.0, 0.0), (1.0, 2.5), (4.0, 6.0)])
@pytest.mark.parametrize("case", CONVEX_TOPK, ids=str)
def test_the_gradient_maximises_the_conjugate_problem(case, m, scale, margin):
    # The objective is concave: no x in the set beats the gradient by more than the largest
    # <slope, z - x> over z in the set, which a sort gives.
    scores, labels = batch(m, 60, m, scale, margin)
    losses, gradients = evaluate(case, scores, labels)
    variant, gamma = case.params["variant"], case.params.get("smoothing", 0.0)
    for f, y, loss, v in zip(scores, labels, losses, gradients, strict=True):
        u, x = differences(f, y), np.delete(v, y)
        s = x.sum()
        assert v[y] == pytest.approx(-s, abs=1e-12)
        cap = s / case.k if variant == "alpha" else 1 / case.k
        assert x.min() >= 0
        assert x.max() <= cap + 1e-12
        assert s <= 1 + 1e-12
        if case.name == "entropy":
            slope = u - np.log(x / (1 - s))
            value = u @ x - x @ np.log(x) - (1 - s) * np.log(1 - s)
        else:
            slope = 1 + u - gamma * x
            value = (1 + u) @ x - gamma / 2 * x @ x
        assert loss == pytest.approx(value, abs=1e-10)
        assert support(slope, case.k, variant) - slope @ x <= 1e-9


@pytest.mark.parametrize("case", [c for c in CONVEX_TOPK if c.k == 3], ids=str)
def test_value_is_a_convex_solvers(case):
    variant, gamma = case.params["variant"], case.params.get("smoothing", 0.0)
    scores, labels = batch(3, 3, 6, 1.5, 1.0)
    losses, _ = evaluate(case, scores, labels)
    for f, y, loss in zip(scores, labels, losses, strict=True):
        u = differences(f, y)
        x = cp.Variable(5)
        s = cp.sum(x)
        cap = s / case.k if variant == "alpha" else 1 / case.k
        if case.name == "entropy":
            objective = u @ x + cp.sum(cp.entr(x)) + cp.entr(1 - s)
        else:
            objective = (1 + u) @ x - gamma / 2 * cp.sum_squares(x)
        problem = cp.Problem(cp.Maximize(objective), [x >= 0, s <= 1, x <= cap])
        problem.solve(solver="CLARABEL")
        assert loss == pytest.approx(problem.value, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_the_finite_difference(case):
    scores, labels = batch(7, 5, 7, 1.5)
    _, gradients = evaluate(case, scores, labels)
    step = 1e-6
    for j in range(7):
        shift = np.zeros(7)
        shift[j] = step
        up, _ = evaluate(case, scores + shift, labels)
        down, _ = evaluate(case, scores - shift, labels)
        np.testing.assert_allclose(gradients[:, j], (up - down) / (2 * step), atol=2e-8)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_scores_stay_finite_and_bounded(case, dtype):
    rng = np.random.default_rng(1)
    scores = torch.tensor(rng.choice([-1e4, -1.0, 0.0, 1.0, 1e4], size=(200, 8)), dtype=dtype)
    scores.requires_grad_()
    labels = torch.tensor(rng.integers(8, size=200))
    losses = case.make(reduction="none")(scores, labels)
    (gradient,) = torch.autograd.grad(losses.sum(), scores)
    assert losses.isfinite().all()
    assert (losses >= 0).all()
    assert gradient.isfinite().all()
    assert gradient.abs().max() <= 1 + 1e-6
    exact, _ = evaluate(case, scores.detach().double().numpy(), labels.numpy())
    # Opposite scores of this size cancel in sums of several.
    rounding = 4e4 * torch.finfo(dtype).eps
    np.testing.assert_allclose(losses.detach(), exact, rtol=1e-5, atol=rounding)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ties_share_nothing_wrongly(case):
    m = 8
    scores = np.zeros((1, m))
    losses, gradients = evaluate(case, scores, np.array([2]))
    assert np.isfinite(losses).all()
    if not case.name.startswith("ova"):
        assert gradients.sum() == pytest.approx(0, abs=1e-12)
    if case.name == "smooth_hinge" or (case.name == "entropy"):
        # The problem is symmetric and strictly concave: so is its solution.
        others = np.delete(gradients[0], 2)
        np.testing.assert_allclose(others, others.mean(), atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c.k == 1], ids=str)
def test_two_classes(case):
    scores, labels = batch(5, 20, 2, 2.0)
    losses, gradients = evaluate(case, scores, labels)
    if case.name in ("entropy", "truncated_entropy"):
        expected = np.logaddexp(
            0, scores[np.arange(20), 1 - labels] - scores[np.arange(20), labels]
        )
        np.testing.assert_allclose(losses, expected, atol=1e-12)
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("m", [3, 4, 9])
def test_k_of_all_but_one_class(m, variant):
    from shortlist.torch.functional import topk_entropy_loss, topk_hinge_loss

    scores, labels = batch(2, 30, m, 1.0)
    f, y = torch.tensor(scores), torch.tensor(labels)
    k = m - 1
    rows = [differences(*pair) for pair in zip(scores, labels, strict=True)]
    plain = topk_hinge_loss(f, y, k, 0.0, variant, reduction="none")
    np.testing.assert_allclose(plain, [support(1 + u, k, variant) for u in rows], atol=1e-12)
    if variant == "alpha":
        # Every x_j must be s/k: log(1 + k exp(mean u)), and the hinge's envelope in one variable.
        entropy = topk_entropy_loss(f, y, k, variant, reduction="none")
        means = np.array([u.mean() for u in rows])
        np.testing.assert_allclose(entropy, np.logaddexp(0, means + np.log(k)), atol=1e-12)
        smooth = topk_hinge_loss(f, y, k, 1.0, variant, reduction="none")
        s = np.clip((1 + means) * k, 0, 1)
        np.testing.assert_allclose(smooth, s * (1 + means) - s**2 / (2 * k), atol=1e-12)


def test_k1_entropies_are_cross_entropy_itself():
    from shortlist.torch.functional import topk_entropy_loss, truncated_topk_entropy_loss

    scores, labels = (torch.tensor(part) for part in batch(4, 50, 11, 3.0))
    expected = cross_entropy(scores, labels, reduction="none")
    for variant in ("alpha", "beta"):
        assert torch.equal(
            topk_entropy_loss(scores, labels, 1, variant, reduction="none"), expected
        )
    assert torch.equal(truncated_topk_entropy_loss(scores, labels, reduction="none"), expected)


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("k", [1, 3])
def test_smoothing_goes_to_the_hinge(k, variant):
    from shortlist.torch.functional import topk_hinge_loss

    scores, labels = (torch.tensor(part) for part in batch(6, 40, 10, 1.5))
    plain = topk_hinge_loss(scores, labels, k, 0.0, variant, reduction="none")
    for gamma in (1e-2, 1e-4, 1e-8):
        smooth = topk_hinge_loss(scores, labels, k, gamma, variant, reduction="none")
        assert ((plain - smooth) >= -1e-12).all()
        assert ((plain - smooth) <= gamma / 2 + 1e-12).all()


def test_masked_classes_do_not_count():
    # Minus infinity marks impossible classes in many nets; cross_entropy allows it.
    from shortlist.torch import functional as F

    rng = np.random.default_rng(0)
    small = torch.tensor(rng.normal(size=(20, 6)))
    labels = torch.tensor(rng.integers(6, size=20))
    masked = torch.cat([small, torch.full((20, 30), -torch.inf, dtype=small.dtype)], 1)
    for loss in (
        lambda f: F.topk_hinge_loss(f, labels, 3),
        lambda f: F.topk_hinge_loss(f, labels, 3, 1.0, "beta"),
        lambda f: F.topk_entropy_loss(f, labels, 3),
        lambda f: F.topk_entropy_loss(f, labels, 3, "beta"),
        lambda f: F.truncated_topk_entropy_loss(f, labels, 3),
    ):
        assert loss(masked).item() == pytest.approx(loss(small).item(), abs=1e-12)
        masked.requires_grad_()
        (gradient,) = torch.autograd.grad(loss(masked), masked)
        assert gradient.isfinite().all()
        assert (gradient[:, 6:] == 0).all()
        masked = masked.detach()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("low", [-1e4, -1e9, -3e38, -torch.inf])
@pytest.mark.parametrize("case", [c for c in CASES if c.k == 5], ids=str)
def test_fewer_possible_classes_than_k(case, low, dtype):
    # Not only is the k-th largest score a mask then: equal masks must not be taken for the label.
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 25)).astype(np.float32).astype(np.float64)
    labels = rng.integers(25, size=60)
    possible = rng.random(scores.shape) < 0.1
    possible[np.arange(60), labels] = True
    assert (possible.sum(1) <= 5).sum() > 30
    exact, exact_gradients = evaluate(case, np.where(possible, scores, -500.0), labels)
    masked = torch.tensor(np.where(possible, scores, low), dtype=dtype, requires_grad=True)
    losses = case.make(reduction="none")(masked, torch.tensor(labels))
    (gradients,) = torch.autograd.grad(losses.sum(), masked)
    np.testing.assert_allclose(losses.detach(), exact, atol=2e-6)
    np.testing.assert_allclose(gradients, exact_gradients, atol=2e-6)
