"""Values and gradients over all examples: the same in every storage, layout and precision."""

import numpy as np
import pytest

from shortlist import losses
from shortlist._blas import blas_for
from shortlist.losses.kernels import kernels_of
from shortlist.solvers.kernels.gradient import _add_by_lanes, _add_by_rows, chunk_rows
from shortlist.solvers.threads import Crew
from tests.solvers.problems import make_costs, make_data, make_problem, with_bias

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
BIASES = pytest.mark.parametrize("bias", [0.0, 0.5])
SOFTMAX = losses.get("softmax")


def setting(n=75, m=5, d=7, bias=0.5, dtype=np.float64, scale=1.0, storage="dense"):
    X, y = make_data(n=n, d=d, m=m, dtype=dtype)
    problem = make_problem(storage, SOFTMAX, X, y, make_costs(n), bias)
    rng = np.random.default_rng([n, m])
    return problem, (scale * rng.normal(size=(d + 1, m))).astype(dtype)


def by_formula(problem, W):
    """In double, from the loss of single examples."""
    storage, costs = problem.storage, problem.costs
    full = with_bias(np.asarray(storage.x, np.float64), storage.bias)
    values, gradients = problem.loss.value_and_gradient(full @ W.astype(np.float64), costs.y)
    return float(costs.cost @ values), full.T @ (costs.cost[:, None] * gradients)


def of_storage(problem, W, double=False):
    return problem.storage.loss_gradient(problem.loss, W, problem.costs, Crew(), double)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
@BIASES
@PRECISIONS
def test_examples_in_lanes_equal_the_formula(dtype, bias, scale):
    problem, W = setting(bias=bias, dtype=dtype, scale=scale)
    assert kernels_of(type(SOFTMAX.spec)).lanes is not None
    value, gradient = of_storage(problem, W)
    expected, expected_gradient = by_formula(problem, W)
    eps = float(np.finfo(dtype).eps)
    # Scores of d terms err by their rounding, and with them the values.
    reach = 1 + np.abs(W).max() * np.sqrt(problem.storage.kappa.max())
    assert value == pytest.approx(expected, abs=16 * eps * reach * problem.costs.cost.sum())
    size = np.abs(problem.storage.x).max() * problem.costs.cost.sum()
    # At large scores a tie within rounding could go either way, but there is none here.
    np.testing.assert_allclose(
        gradient, expected_gradient, atol=16 * eps * min(reach, 1 / eps) * size
    )
    assert gradient.dtype == dtype


@pytest.mark.parametrize(("n", "m"), [(3, 2), (513, 3), (530, 130), (40, 5000)])
@PRECISIONS
def test_lanes_equal_rows(dtype, n, m):
    """Chunks that are full, that are not, and of a single example."""
    problem, W = setting(n=n, m=m, dtype=dtype, d=4)
    if n == 513:
        assert n % chunk_rows(m) == 1
    costs, view, blas = problem.costs, problem.storage.view(), blas_for(dtype)
    found = []
    for add in (_add_by_lanes, _add_by_rows):
        gradient, lengths = np.zeros_like(W), np.zeros(4)
        own = (0, n, W, costs.y, costs.cost, gradient, problem.storage.kappa, lengths)
        scores = np.full((n, m), np.nan, dtype)
        value = add(SOFTMAX.spec, view, blas, *own, scores)
        found.append((value, gradient, lengths))
        np.testing.assert_allclose(scores, problem.storage.all_scores(W, Crew()), rtol=1e-5)
    (lanes, lane_gradient, lane_lengths), (rows, row_gradient, row_lengths) = found
    eps = float(np.finfo(dtype).eps)
    assert lanes == pytest.approx(rows, rel=32 * eps)
    np.testing.assert_allclose(
        lane_gradient, row_gradient, atol=32 * eps * np.abs(problem.storage.x).max() * n
    )
    np.testing.assert_allclose(lane_lengths, row_lengths, rtol=32 * m * eps)


@PRECISIONS
def test_lanes_of_examples_whose_label_is_far_behind_or_far_ahead(dtype):
    """Where exponentials underflow, and where the loss is nearly zero."""
    margins = np.array([-1e4, -500.0, -90.0, -50.0, 0.0, 10.0, 30.0, 300.0], dtype)
    X = margins[:, None].copy()
    y = np.zeros(8, np.int64)
    y[-1] = 1  # all classes are present; its margin is the other way round
    problem = make_problem("dense", SOFTMAX, X, y)
    W = np.array([[1.0, 0.0], [0.0, 0.0]], dtype)
    signed = np.where(y == 0, margins, -margins).astype(np.float64)
    for i in range(8):
        one = make_problem("dense", SOFTMAX, X[i : i + 1], y[i : i + 1])
        value, gradient = of_storage(one, W)
        expected = np.logaddexp(0.0, -signed[i])
        assert value == pytest.approx(expected, rel=32 * float(np.finfo(dtype).eps), abs=1e-30)
        assert np.isfinite(gradient).all()
    value, gradient = of_storage(problem, W)
    assert value == pytest.approx(np.logaddexp(0.0, -signed).sum(), rel=1e-6)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@BIASES
def test_gradients_are_finite_differences(storage, bias):
    problem, W = setting(bias=bias, storage=storage)
    gradient = of_storage(problem, W)[1]
    rng = np.random.default_rng(5)
    for _ in range(4):
        direction = rng.normal(size=W.shape)
        ahead, behind = (of_storage(problem, W + h * direction)[0] for h in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx(np.vdot(gradient, direction), rel=1e-7)
    if bias == 0.0:
        assert not gradient[-1].any()


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_double_is_double_whatever_the_storage(storage):
    problem, W = setting(dtype=np.float32, storage=storage)
    X = np.asarray(problem.storage.x.todense() if storage == "csr" else problem.storage.x)
    wide = make_problem(
        "dense", SOFTMAX, X.astype(np.float64), problem.costs.y, problem.costs.cost, 0.5
    )
    expected, expected_gradient = by_formula(wide, W)
    for order in "CF":  # weights by classes lie the other way round
        value, gradient = of_storage(problem, np.asarray(W, order=order), double=True)
        assert gradient.dtype == np.float64
        assert value == pytest.approx(expected, rel=1e-14)
        np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


def test_the_primal_and_its_gradient():
    problem, W = setting()
    value, gradient = problem.primal_gradient(W)
    losses_alone, expected = by_formula(problem, W)
    assert value == pytest.approx(0.5 * (W**2).sum() + losses_alone, rel=1e-13)
    np.testing.assert_allclose(gradient, W + expected, atol=1e-12)
    assert problem.primal(W) == value
