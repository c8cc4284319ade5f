"""How to add a loss: kernels on one example, a NamedTuple that names them, traits. Three steps.

The tutorial's loss is the squared hinge of the margin to the best wrong label,

    L(f) = 1/2 max(0, 1 + max over j != y of f_j - f_y)^2,      L*(v) = s^2/2 - s on v_y = -s <= 0,

with x = v without y on the ray x >= 0, s = <1, x>.
"""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_digits

from shortlist._jit import njit
from shortlist.losses.base import Loss
from shortlist.losses.kernels import Kernels, register
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, open_storage
from shortlist.solvers.strategy.train import train


# 1. The kernels, with the problem each solves.
@njit
def _value_gradient(loss, f, y, v, work):
    best = 0 if y != 0 else 1
    for j in range(f.shape[0]):
        if j != y and f[j] > f[best]:
            best = j
    margin = max(0.0, 1.0 + np.float64(f[best]) - np.float64(f[y]))
    v[:] = 0
    v[best] = v.dtype.type(margin)
    v[y] = v.dtype.type(-margin)
    return 0.5 * margin * margin


@njit
def _conjugate(loss, v, y):
    s = -np.float64(v[y])
    return 0.5 * s * s - s


@njit
def _violation(loss, v, y):
    worst = abs(np.float64(v.sum()))
    for j in range(v.shape[0]):
        if j != y:
            worst = max(worst, -np.float64(v[j]))
    return worst


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    """min over x >= 0 of  s^2/2 - s - <q - q_y, x> + eta/2 (|x|^2 + s^2),  by its threshold.

    x_j = max(0, u_j - t) / eta, u_j = q_j - q_y, where t = (1 + eta) s - 1; t by bisection.
    """
    low = -1.0
    high = -1.0
    for j in range(q.shape[0]):
        if j != y:
            high = max(high, np.float64(q[j]) - np.float64(q[y]))
    for _ in range(200):
        t = 0.5 * (low + high)
        s = 0.0
        for j in range(q.shape[0]):
            if j != y:
                s += max(0.0, np.float64(q[j]) - np.float64(q[y]) - t)
        if (1.0 + eta) * s / eta - 1.0 > t:
            low = t
        else:
            high = t
    s = 0.0
    for j in range(q.shape[0]):
        v[j] = v.dtype.type(max(0.0, np.float64(q[j]) - np.float64(q[y]) - high) / eta)
        if j != y:
            s += np.float64(v[j])
    v[y] = v.dtype.type(-s)


# 2. The family: a NamedTuple of parameters, registered with its kernels.
class SquaredHinge(NamedTuple):
    k: int = 1


register(SquaredHinge, Kernels(_value_gradient, _conjugate, _violation, _dual_step))


# 3. The loss with its traits. In the package this is an entry of losses/registry.py.
def squared_hinge() -> Loss:
    return Loss(
        "squared_hinge",
        k=1,
        variant=None,
        smoothing=0.0,
        spec=SquaredHinge(),
        convex=True,
        smooth=False,  # the gradient jumps between labels that tie for the best
        sparse_duals=True,
        fewest_classes=2,
    )


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400].astype(np.int64)


def test_fenchel_young_holds_with_equality_at_the_gradient():
    loss = squared_hinge()
    f = np.random.default_rng(0).normal(size=(50, 6))
    y = np.arange(50) % 6
    v = loss.gradient(f, y)
    slack = loss.value(f, y) + loss.conjugate(v, y) - (f * v).sum(axis=1)
    np.testing.assert_allclose(slack, 0.0, atol=1e-12)


def test_the_dual_step_is_a_minimum():
    loss = squared_hinge()
    rng = np.random.default_rng(1)
    q, y, eta = rng.normal(size=(30, 5)), np.arange(30) % 5, 0.7
    v = loss.dual_step(q, y, eta)

    def objective(u):
        return loss.conjugate(u, y) - (q * u).sum(axis=1) + 0.5 * eta * (u**2).sum(axis=1)

    for _ in range(200):
        other = np.abs(v + 0.1 * rng.normal(size=v.shape))
        other[np.arange(30), y] = 0
        other[np.arange(30), y] = -other.sum(axis=1)
        assert (objective(v) <= objective(other) + 1e-9).all()


def test_it_trains_with_a_certificate(digits):
    X, y = digits
    costs = Costs(y, np.full(len(y), 0.1))
    solution = train(Problem(open_storage(X, 1.0), costs, 10, squared_hinge()), tol=1e-4, seed=0)
    assert solution.result.status == "converged"
    assert solution.result.relative_gap <= 1e-4
    scores = X @ solution.weights[:-1] + solution.weights[-1]
    assert (scores.argmax(axis=1) == y).mean() > 0.95
