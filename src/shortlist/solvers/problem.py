"""The training problem and its certificate.

    primal   P(W) =  1/2 |W|^2 + sum_i C_i L(y_i, W'x_i)
    dual     D(v) = -1/2 |W|^2 - sum_i C_i L*(y_i, v_i),     W = -sum_i C_i x_i v_i'
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.rows import Costs, Rows, State, chunks
from shortlist.solvers.visit import evaluate_rows


@dataclass(frozen=True)
class Problem:
    """Examples, labels 0..m-1, costs C_i and a convex loss."""

    rows: Rows
    costs: Costs
    n_classes: int
    loss: Loss

    def zero_state(self) -> State:
        """v = 0, W = 0. Zero is in the domain of every conjugate here."""
        n, m = self.rows.n, self.n_classes
        return State(
            self.rows.zero_weights(m), np.zeros((n, m), self.rows.dtype), np.zeros((n, 2))
        )

    def parts(self) -> Iterator[slice]:
        """Slices of examples whose scores take a few dozen megabytes."""
        width = max(self.n_classes, getattr(self.rows, "d", self.rows.n))
        return chunks(self.rows.n, width * self.rows.dtype.itemsize)

    def evaluate(self, state: State) -> tuple[float, float]:
        """The exact primal and dual objective at a state whose weights belong to its duals."""
        losses = conjugates = products = 0.0
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            for part in self.parts():
                scores = self.rows.scores(state.weights, part)
                y, cost, duals = self.costs.y[part], self.costs.cost[part], state.duals[part]
                bounds = np.linspace(0, len(y), _THREADS + 1).astype(int)
                jobs = [
                    pool.submit(
                        evaluate_rows, self.loss.spec, scores[a:b], y[a:b], cost[a:b], duals[a:b]
                    )
                    for a, b in zip(bounds[:-1], bounds[1:], strict=True)
                    if b > a
                ]
                for job in jobs:
                    sums = job.result()
                    losses += sums[0]
                    conjugates += sums[1]
                    products += sums[2]
        norm = self.rows.squared_norm(state.weights)
        if norm is None:
            norm = -products
        return 0.5 * norm + losses, -0.5 * norm - conjugates


_THREADS = min(4, os.cpu_count() or 1)


def check_cost(cost: NDArray) -> None:
    if not np.isfinite(cost).all() or (cost < 0).any():
        raise ValueError("C times the sample weights must be finite and zero or larger")
