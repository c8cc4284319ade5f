"""A storage of one's own: a class with the interface trains through ``train`` as it is."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.duals import Duals, as_array
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, State, Storage, Sums
from shortlist.solvers.storage.base import NO_SHARES, NoDescents, NoSupportVisits
from shortlist.solvers.storage.local import LocalDuals
from shortlist.solvers.strategy.path import Path
from shortlist.solvers.strategy.train import train
from shortlist.solvers.threads import Crew
from tests.instances import Instance, by_id
from tests.solvers.problems import (
    make_costs,
    make_data,
    make_problem,
    naive_dual,
    naive_primal,
)


class GeneratedStorage(LocalDuals, NoDescents, NoSupportVisits):
    """Examples that a function makes as they are asked for: ``row_of(i)`` is x_i.

    Written in plain NumPy with the public functions of a loss. The weights are W, without a
    constant feature. Descents and visits on the support are left out. Duals are kept as usual.
    """

    def __init__(self, row_of: Callable[[int], NDArray], n: int, d: int) -> None:
        self.row_of = row_of
        self.n = n
        self.dtype = row_of(0).dtype
        self.width = float(d)
        self.kappa = np.array([row_of(i) @ row_of(i) for i in range(n)], np.float64)

    def shared_work(self, m: int) -> float:
        return 0.0

    @property
    def weights_per_class(self) -> int:
        return int(self.width)

    def zero_weights(self, m: int) -> NDArray:
        return np.zeros((self.weights_per_class, m), self.dtype)

    def squared_norm(self, weights: NDArray) -> float | None:
        return float((weights**2).sum())

    def largest_column(self, weights: NDArray) -> float:
        return float(np.linalg.norm(weights, axis=0).max())

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        for i in order:
            x, y, cost = self.row_of(i), costs.y[i], costs.cost[i]
            scores, v = x @ state.weights, state.duals[i].copy()
            gap = cost * (loss.value(scores, y) + loss.conjugate(v, y) - scores @ v)
            eta = cost * self.kappa[i]
            state.duals[i] = loss.dual_step(scores + eta * v, y, eta)
            state.weights += np.outer(x, cost * (v - state.duals[i]))
            yield gap

    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = NO_SHARES,
    ) -> Sums:
        rows = self._rows().astype(np.float64 if double else self.dtype)
        scores, v, cost = rows @ weights, as_array(duals), costs.cost
        values, gradients = loss.value_and_gradient(scores, costs.y)
        conjugates = loss.conjugate(v, costs.y)
        products = (scores * v).sum(axis=1)
        sizes = np.abs(values) + np.abs(conjugates) + np.abs(scores * v).sum(axis=1)
        distances = np.abs(gradients).sum(axis=1) + np.abs(v).sum(axis=1)
        return Sums(
            float(cost @ values),
            float(cost @ conjugates),
            float(cost @ products),
            float(self.kappa @ (cost * distances) ** 2),
            float(cost @ sizes),
        )

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        return -self._rows().astype(np.float64).T @ (cost[:, None] * as_array(duals))

    def _rows(self) -> NDArray:
        return np.stack([self.row_of(i) for i in range(self.n)])


def generated(X: NDArray) -> Storage:
    return GeneratedStorage(lambda i: X[i], *X.shape)


LOSSES = [
    Instance("entropy", m=4),
    Instance("hinge", m=4, k=2),
    Instance("ova_smooth_hinge", m=4, smoothing=1.0),
]


@pytest.mark.parametrize("row", LOSSES, ids=by_id)
def test_it_trains(row):
    X, y = make_data()
    cost = make_costs(len(y))
    problem = Problem(generated(X), Costs(y, cost), row.m, row.loss())
    solution = train(problem, tol=1e-4, max_epochs=1000, seed=0)
    result = solution.result
    assert result.status == "converged"
    W = np.vstack([solution.weights, np.zeros(row.m)])
    assert result.primal == pytest.approx(naive_primal(row, W, X, y, cost), rel=1e-12)
    assert result.dual <= naive_dual(row, as_array(solution.state.duals), X, y, cost) * (1 + 1e-12)
    dense = train(make_problem("dense", row.loss(), X, y, cost), tol=1e-4, seed=0).result
    assert result.primal == pytest.approx(dense.primal, rel=2e-4)


def test_it_has_the_whole_interface():
    X, _ = make_data()
    missing = [name for name in interface() if not hasattr(generated(X), name)]
    assert not missing


def interface() -> set[str]:
    """What a storage has: methods, properties and attributes."""
    methods = {name for name in vars(Storage) if not name.startswith("_")}
    return methods | set(Storage.__annotations__)


def test_a_hinge_trains_in_single_precision():
    """Its rows are not at hand: there is no copy in double to go on with."""
    row = LOSSES[1]
    X, y = make_data(dtype=np.float32)
    cost = 1000.0 * make_costs(len(y))
    problem = Problem(generated(X), Costs(y, cost), row.m, row.loss())
    solution = train(problem, tol=1e-6, max_epochs=200, seed=0)
    result = solution.result
    assert solution.weights.dtype == np.float32
    W = np.vstack([solution.weights.astype(np.float64), np.zeros(row.m)])
    assert result.primal == pytest.approx(naive_primal(row, W, X, y, cost), rel=1e-6)
    wide = X.astype(np.float64)
    exact = train(make_problem("dense", row.loss(), wide, y, cost), tol=1e-7, seed=0).result
    assert result.dual <= exact.primal
    assert exact.dual <= result.primal


def test_it_is_interrupted_and_gone_on_from():
    X, y = make_data()
    problem = Problem(generated(X), Costs(y, np.ones(len(y))), 4, LOSSES[0].loss())
    stopped = train(problem, tol=1e-9, seed=0, callback=lambda progress: progress.epoch >= 2)
    assert stopped.result.status == "stopped"
    assert stopped.result.epochs == 2
    again = train(problem, tol=1e-6, seed=0, state=stopped.state)
    assert again.result.status == "converged"


def test_it_goes_along_a_path():
    X, y = make_data()
    path = Path(
        Problem(generated(X), Costs(y, np.ones(len(y))), 4, LOSSES[0].loss()), 1e-3, 500, seed=0
    )
    assert [path.solve(C).result.status for C in (0.1, 1.0, 10.0)] == 3 * ["converged"]
