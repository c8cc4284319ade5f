"""How to add a loss: its file, its entry in the table of losses, its row in the tests.

The tutorial's loss is the squared hinge of the margin to the best wrong label,

    L(f) = 1/2 max(0, 1 + max over j != y of f_j - f_y)^2,      L*(v) = s^2/2 - s on v_y = -s <= 0,

with x = v without y on the ray x >= 0, s = <1, x>.
"""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from shortlist import TopKClassifier, losses
from shortlist._jit import njit
from shortlist._parameters import Parameters
from shortlist.losses.base import Loss
from shortlist.losses.entries import ENTRIES, Entry
from shortlist.losses.kernels import Kernels, register
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, open_storage
from shortlist.solvers.strategy.train import train
from tests.instances import Formulas, Instance
from tests.losses import test_conjugates, test_dual_steps, test_gradients, test_numerics
from tests.losses import test_values as values
from tests.solvers.problems import STORAGES
from tests.solvers.test_certificates import check_gap


# 1. The file: first the kernels, with the problem each solves.
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
    total = np.float64(v.sum())
    worst = abs(total) if np.isfinite(total) else np.inf
    for j in range(v.shape[0]):
        if j != y:
            worst = max(worst, -np.float64(v[j]))
    return worst


@njit
def _dual_step(loss, q, y, eta, start, v, work):
    """min over x >= 0 of  s^2/2 - s - <q - q_y, x> + eta/2 (|x|^2 + s^2),  by its threshold.

    x_j = max(0, u_j - t) / eta, u_j = q_j - q_y, where t = (1 + eta) s - 1; t by bisection. An
    example of zeros has eta = 0: its dual is the gradient.
    """
    if eta == 0.0:
        _value_gradient(loss, q, y, v, work)
        return
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


# Then the family: a NamedTuple of parameters, by whose type the kernels are found.
class SquaredHinge(NamedTuple):
    k: int = 1


register(SquaredHinge, Kernels(_value_gradient, _conjugate, _violation, _dual_step))


# Last the function that makes the loss with its traits, of what losses.get was given.
def squared_hinge(given: Parameters) -> Loss:
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


# 2. The entry. In the package it stands in losses/entries.py.
ENTRY = Entry(
    "squared_hinge",
    "squared hinge",
    "squared multiclass hinge",
    "1/2 max(0, 1 + max u_j)^2",
    calibrated="not known",
    torch="none",
    home=f"{__name__}:squared_hinge",
    uses=(),
)


# 3. The row, with the formulas. In the package it stands in tests/instances.py.
def _value(f, y):
    return 0.5 * max(0.0, 1.0 + np.delete(f, y).max() - f[y]) ** 2


def _program(v, y):
    wrong = [j for j in range(v.size) if j != y]
    return 0.5 * cp.square(v[y]) + v[y], [v[wrong] >= 0, cp.sum(v) == 0]


def _random_dual(rng, y):
    x = rng.choice([0.0, 0.1, 2.0], size=4)
    return np.insert(x, y, -x.sum())


def _outside(v, y, by):
    negative, unbalanced = v.copy(), v.copy()
    wrong = (y + 1) % v.size
    negative[wrong] = -by
    negative[y] -= negative.sum()
    unbalanced[y] += by
    return [negative, unbalanced]


ROW = Instance(
    "squared_hinge",
    m=5,
    formulas=Formulas(
        _value, lambda v, y: 0.5 * v[y] ** 2 + v[y], _program, _random_dual, _outside, smooth=False
    ),
)


@pytest.fixture(scope="module", autouse=True)
def entry():
    """The entry, for the time of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENTRIES, ENTRY.name, ENTRY)
        yield


# Every battery over the table of instances but those of extreme scores: these duals grow with them.
BATTERIES = [
    values.test_value_is_the_definition,
    values.test_value_is_the_supremum_over_the_dual,
    test_gradients.test_gradient_by_finite_differences,
    test_gradients.test_value_and_gradient_are_those_of_the_single_calls,
    test_gradients.test_gradient_sums_to_zero_unless_one_vs_all,
    test_gradients.test_fenchel_young_holds_with_equality_at_the_gradient,
    test_gradients.test_subgradient_inequality_at_kinks,
    test_conjugates.test_inside_the_domain_finite_and_right,
    test_conjugates.test_infinite_entries_are_outside,
    test_conjugates.test_rounding_counts_as_inside,
    test_dual_steps.test_dual_step_by_a_generic_solver,
    test_dual_steps.test_no_dual_point_does_better,
    test_dual_steps.test_without_curvature_the_step_is_the_gradient,
    test_dual_steps.test_one_eta_for_each_example,
    test_numerics.test_batch_is_the_loop_of_singles,
]


@pytest.mark.parametrize("battery", BATTERIES, ids=lambda battery: battery.__name__)
def test_batteries(battery):
    battery(ROW)


@pytest.mark.parametrize("by", [1.0, 1e-3, 1e-9])
def test_outside_the_domain(by):
    test_conjugates.test_outside_the_domain_infinite(ROW, by)


# In the other storages visits run the same code of the loss. It is compiled for each of them.
OFTEN = ("dense", "blocks")
CERTIFIED = [
    pytest.param(storage, marks=() if storage in OFTEN else pytest.mark.slow)
    for storage in STORAGES
]


@pytest.mark.parametrize("storage", CERTIFIED)
def test_certificates(storage):
    check_gap(ROW, np.float64, storage)


def test_the_table_tells_its_traits():
    assert "squared_hinge" in losses.names()
    row = losses.table()[-1]
    assert (row["loss"], row["convex"], row["smooth"]) == ("squared_hinge", "yes", "no")
    assert (row["SDCA"], row["several labels"]) == ("yes", "no")
    with pytest.raises(ValueError, match="'squared_hinge' takes one right label per example"):
        losses.get("squared_hinge", multilabel=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400].astype(np.int64)


def test_fenchel_young_holds_with_equality_at_the_gradient():
    loss = losses.get("squared_hinge")
    f = np.random.default_rng(0).normal(size=(50, 6))
    y = np.arange(50) % 6
    v = loss.gradient(f, y)
    slack = loss.value(f, y) + loss.conjugate(v, y) - (f * v).sum(axis=1)
    np.testing.assert_allclose(slack, 0.0, atol=1e-12)


def test_the_dual_step_is_a_minimum():
    loss = losses.get("squared_hinge")
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
    solution = train(
        Problem(open_storage(X, 1.0), costs, 10, losses.get("squared_hinge")), tol=1e-4, seed=0
    )
    assert solution.result.status == "converged"
    assert solution.result.relative_gap <= 1e-4
    scores = X @ solution.weights[:-1] + solution.weights[-1]
    assert (scores.argmax(axis=1) == y).mean() > 0.95


def test_it_trains_a_classifier(digits):
    X, y = digits
    model = TopKClassifier("squared_hinge", C=0.1, tol=1e-4, random_state=0).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-4
    assert model.score(X, y) > 0.95
    assert not hasattr(model, "predict_proba")
