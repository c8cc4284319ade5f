"""Losses of several right labels: instances to test, and their definitions as they read."""

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from shortlist import losses
from tests.instances import Instance
from tests.losses import oracles
from tests.references import random_shares


class Case(Instance):
    """A loss of several right labels, its parameters, and the number of classes m."""

    def loss(self, multilabel: bool = True) -> losses.Loss:
        return losses.get(
            self.name,
            k=self.k,
            variant=self.variant,
            smoothing=self.smoothing,
            multilabel=multilabel,
        )

    def scores(self, seed: int = 0, n: int = 1, scale: float = 2.0) -> NDArray:
        """Small and large margins, a quarter of the rows full of ties."""
        f = super().scores(seed, n, scale)
        f[::4] = np.round(f[::4] / scale) * scale
        return f

    def indicators(self, seed: int, n: int) -> NDArray:
        """From one right label to all but k."""
        rng = np.random.default_rng([seed, self.m, self.k])
        counts = rng.integers(1, self.m - self.k + 1, size=n)
        order = rng.permuted(np.tile(np.arange(self.m), (n, 1)), axis=1)
        return (order < counts[:, None]).astype(np.int64)


CASES = [
    Case("hinge", m=2),
    Case("hinge", m=6),
    Case("hinge", m=7, k=3, variant="alpha"),
    Case("hinge", m=7, k=3, variant="beta"),
    Case("smooth_hinge", m=2, smoothing=1.0),
    Case("smooth_hinge", m=6, smoothing=0.01),
    Case("smooth_hinge", m=6, smoothing=100.0),
    Case("smooth_hinge", m=7, k=3, variant="alpha", smoothing=1.0),
    Case("smooth_hinge", m=7, k=3, variant="beta", smoothing=1.0),
    Case("smooth_hinge", m=20, k=5, variant="alpha", smoothing=0.1),
    Case("smooth_hinge", m=20, k=5, variant="beta", smoothing=0.1),
    Case("entropy", m=2),
    Case("entropy", m=6),
    Case("entropy", m=20),
]
SMOOTH = [case for case in CASES if case.smooth]


def closed_value(case: Case, f: NDArray, right: NDArray) -> float:
    """L for the losses that have a formula: the plain hinges and the entropy."""
    wanted = right.astype(bool)
    if case.entropic:
        return float(logsumexp(f) - f[wanted].mean())
    margins = 1.0 + np.sort(f[~wanted])[::-1][: case.k] - f[wanted].min()
    if case.variant == "alpha":
        return max(0.0, float(margins.mean()))
    return float(np.maximum(0.0, margins).mean())


def conjugate(case: Case, v: NDArray, right: NDArray) -> float:
    """L*(v) for v in its domain."""
    wanted = right.astype(bool)
    if case.entropic:
        pi = v + wanted / wanted.sum()
        return float(xlogy(pi, np.maximum(pi, 1e-300)).sum())
    x, z = v[~wanted], -v[wanted]
    s = x.sum()
    return float(0.5 * case.smoothing * ((x**2).sum() + ((z - s / len(z)) ** 2).sum()) - s)


def random_dual(case: Case, rng: np.random.Generator, right: NDArray) -> NDArray:
    """A point of the conjugate's domain: a mixture of its corners."""
    wanted = right.astype(bool)
    v = np.zeros(case.m)
    if case.entropic:
        return rng.dirichlet(np.full(case.m, 0.3)) - wanted / wanted.sum()
    wrong = np.flatnonzero(~wanted)
    v[wrong] = random_shares(case, rng, len(wrong))
    v[wanted] = -v[wrong].sum() * rng.dirichlet(np.full(wanted.sum(), 0.5))
    return v


def cvxpy_conjugate(case: Case, v: cp.Variable, right: NDArray) -> tuple[cp.Expression, list]:
    """L*(v) as an expression, and the constraints of its domain."""
    wanted = right.astype(bool)
    p = int(wanted.sum())
    if case.entropic:
        pi = v + wanted / p
        return -cp.sum(cp.entr(pi)), [cp.sum(pi) == 1]
    x, z = v[np.flatnonzero(~wanted)], -v[np.flatnonzero(wanted)]
    s = cp.sum(x)
    cap = s / case.k if case.variant == "alpha" else 1.0 / case.k
    squares = cp.sum_squares(x) + cp.sum_squares(z - s / p)
    return 0.5 * case.smoothing * squares - s, [x >= 0, x <= cap, s <= 1, z >= 0, cp.sum(z) == s]


def solved_value(case: Case, f: NDArray, right: NDArray) -> float:
    """L(f) by a generic solver."""
    return oracles.supremum(lambda v: cvxpy_conjugate(case, v, right), f)


def solved_dual_step(case: Case, q: NDArray, right: NDArray, eta: float) -> NDArray:
    """The minimiser that a coordinate step asks for, by a generic solver."""
    return oracles.proximal_point(lambda v: cvxpy_conjugate(case, v, right), q, eta)
