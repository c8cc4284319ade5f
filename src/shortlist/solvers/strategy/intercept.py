"""An intercept that is not regularised: a bound on the optimum for any weights.

    P(W, b) =  1/2 |W|^2 + sum_i C_i L(y_i, W'x_i + b)
    D(v)    = -1/2 |sum_i C_i x_i v_i'|^2 - sum_i C_i L*(y_i, v_i)   where   sum_i C_i v_i = 0.

The gradients v_i of the losses at (W, b) have r = sum_i C_i v_i = dP/db, which is small but not
zero. Mix them with other feasible duals u_i, the same for all examples of a class,

    v_i' = (1 - t) v_i + t u_(y_i),      (1 - t) r + t sum_c N_c u_c = 0,      N_c = sum of C_i,

so that v' is feasible. L* is convex, and L*(v_i) = <s_i, v_i> - L(s_i), so that

    D(v') >= -1/2 |(1 - t) G + t M'U|^2
             - (1 - t) [<W, G> + <b, r> - sum_i C_i L(s_i)] - t sum_c N_c L*(u_c)

with G = sum_i C_i x_i v_i' and the sums M_c of C_i x_i over each class: no pass over the data.

The duals u_c. Losses of score differences: u_c = s_c (1 / (m - 1) at every wrong label, -1 at c),
which every top-k simplex holds for 0 <= s_c <= 1, and sum_c N_c u_c = (S - m S_c) / (m - 1) in
class c for S_c = N_c s_c. It is -(1 - t) / t r if S_c = (1 - t) / t (m - 1) / m (r_c - min r). The
smallest t with every s_c <= 1 has t / (1 - t) = max_c (m - 1) / m (r_c - min r) / N_c.
One-vs-all losses: what is too much in a class is taken from its own examples, what is too little
given to the others, in equal shares.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.losses.base import Loss
from shortlist.solvers.problem import Problem


@dataclass(frozen=True)
class FreeIntercept:
    """Bounds for one problem. Every class needs examples of positive cost."""

    loss: Loss
    # The value of the constant feature: the last row of the weights is b divided by it.
    constant: float
    # sum_i C_i x_i over each class, shape (d, m), and N, shape (m,).
    sums: NDArray
    counts: NDArray

    @classmethod
    def of(cls, problem: Problem) -> "FreeIntercept":
        sums = problem.storage.class_sums(problem.costs, problem.n_classes)
        constant = problem.free_intercept
        return cls(problem.loss, constant, sums[:-1], sums[-1] / constant)

    def bound(self, weights: NDArray, value: float, gradient: NDArray) -> float:
        """A lower bound on the optimum, from P and its gradient at some weights."""
        weights, gradient = weights.astype(np.float64), gradient.astype(np.float64)
        w, b = weights[:-1], self.constant * weights[-1]
        g, r = gradient[:-1] - w, gradient[-1] / self.constant
        losses = value - 0.5 * float(np.vdot(w, w))
        conjugates = float(np.vdot(w, g)) + float(np.vdot(b, r)) - losses
        odds, shared = self._separable(r) if self.loss.separable else self._differences(r)
        t = odds / (1.0 + odds)
        of_shared = float(self.counts @ self.loss.conjugate(shared, np.arange(len(r))))
        mixed = (1.0 - t) * g + t * (self.sums @ shared)
        return -0.5 * float(np.vdot(mixed, mixed)) - (1.0 - t) * conjugates - t * of_shared

    def _differences(self, r: NDArray) -> tuple[float, NDArray]:
        """t / (1 - t) and the duals u_c, the rows."""
        m = len(r)
        shares = (m - 1) / m * (r - r.min()) / self.counts
        odds = float(shares.max())
        s = shares / odds if odds > 0 else shares
        return odds, s[:, None] * (np.ones((m, m)) - m * np.eye(m)) / (m - 1)

    def _separable(self, r: NDArray) -> tuple[float, NDArray]:
        own = np.maximum(r, 0.0) / self.counts
        others = np.maximum(-r, 0.0) / (self.counts.sum() - self.counts)
        odds = float(max(own.max(), others.max()))
        factor = 1.0 / odds if odds > 0 else 0.0
        u = np.tile(factor * others, (len(r), 1))
        np.fill_diagonal(u, -factor * own)
        return odds, u
