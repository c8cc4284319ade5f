"""The sets, described by what tests need: membership, the linear minimum, points, cvxpy.

A projection is checked by its Frank-Wolfe gap: with g the gradient of the objective at x,
<g, x> - min over y in the set of <g, y> is zero at the solution and nowhere else, bounds the
objective's excess, and needs no other solver: over these sets a linear function is minimised by
sorting.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from shortlist import projections


@dataclass(frozen=True)
class Set:
    """0 <= x, s = <1,x> <= radius (or = radius); x <= upper, or x <= s/k."""

    radius: float = 1.0
    upper: float = np.inf
    k: int | None = None  # the cap is s/k
    equality: bool = False

    def project(self, a: NDArray, rho: float = 0.0) -> NDArray:
        if self.k is not None:
            if self.radius == np.inf:
                return projections.project_topk_cone(a, self.k, rho)
            return projections.project_topk_simplex(a, self.k, self.radius, rho)
        if self.upper == np.inf:
            return projections.project_simplex(a, self.radius, rho=rho, equality=self.equality)
        return projections.project_knapsack(
            a, self.radius, self.upper, rho=rho, equality=self.equality
        )

    def cap(self, s: float) -> float:
        return s / self.k if self.k is not None else self.upper

    def violation(self, x: NDArray) -> float:
        """By how much x misses the set, relative to its size."""
        s = float(x.sum())
        size = self.radius if np.isfinite(self.radius) else max(s, 1e-300)
        worst = max(-x.min(), s - size, (x - self.cap(s)).max())
        return float(max(worst, abs(s - size) if self.equality else 0.0)) / size

    def linear_minimum(self, g: NDArray, size: float) -> float:
        """min over y in the set of <g, y>; ``size`` is the radius, or a cone's part to look at."""
        g = np.sort(g)
        if self.k is not None:
            return min(0.0, size / self.k * float(g[: self.k].sum()))
        left, total = size, 0.0
        for slope in g:
            if slope >= 0 and not self.equality:
                break
            y = min(self.upper, left)
            total += slope * y
            left -= y
        return total

    def gap(self, x: NDArray, a: NDArray, rho: float) -> float:
        """The Frank-Wolfe gap, in units of the rounding errors of its own terms."""
        x, a = x.astype(np.float64), a.astype(np.float64)
        s = float(x.sum())
        size = self.radius if np.isfinite(self.radius) else max(s, 1e-300)
        g = x - a + (0.0 if self.equality else rho * s)
        gap = float(g @ x) - self.linear_minimum(g, size)
        if not np.isfinite(self.radius):
            gap = max(gap, abs(float(g @ x)))  # on a cone both parts vanish
        seen = np.abs(np.sort(g)[: self.ranks_seen]).max()
        terms = np.abs(a[x > 0]).max(initial=0.0) + rho * s + seen
        return gap / max(size * terms * len(x), 1e-300)

    @property
    def ranks_seen(self) -> int:
        """How many of the smallest entries of g the linear minimum looks at, as a rule."""
        return self.k or 1

    def random_point(self, rng: np.random.Generator, m: int) -> NDArray:
        """A point of the set: a mixture of projections of spikes."""
        corners = np.stack([self.project(rng.normal(size=m) * 10.0) for _ in range(3)])
        return rng.dirichlet(np.ones(3)) @ corners

    def oracle(self, a: NDArray, rho: float) -> NDArray:
        x = cp.Variable(len(a), nonneg=True)
        s = cp.sum(x)
        constraints = [x <= s / self.k] if self.k is not None else []
        if np.isfinite(self.upper):
            constraints.append(x <= self.upper)
        if np.isfinite(self.radius):
            constraints.append(s == self.radius if self.equality else s <= self.radius)
        objective = cp.sum_squares(x - a) + rho * cp.square(s)
        cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
        return x.value


@dataclass(frozen=True)
class RankSet(Set):
    """0 <= x, the r largest sum to at most W_r, or to at most s W_r / W where ``joint``."""

    weights: tuple[float, ...] = (1.0,)
    joint: bool = False

    @classmethod
    def of(cls, weights: tuple[float, ...], m: int, joint: bool) -> "RankSet":
        """With no more weights than there are entries."""
        return cls(radius=sum(weights[:m]), weights=weights[:m], joint=joint)

    @property
    def ranks_seen(self) -> int:
        return len(self.weights)

    def project(self, a: NDArray, rho: float = 0.0) -> NDArray:
        variant = "alpha" if self.joint else "beta"
        return projections.project_ordered_simplex(a, self.weights, rho, variant)

    def bounds(self, m: int) -> NDArray:
        return np.cumsum(np.pad(self.weights, (0, m - len(self.weights))))

    def violation(self, x: NDArray) -> float:
        s = float(x.sum())
        share = s / self.radius if self.joint else 1.0
        sums = np.cumsum(np.sort(x)[::-1])
        worst = (sums - share * self.bounds(len(x))).max()
        return max(-float(x.min()), s - self.radius, float(worst)) / self.radius

    def linear_minimum(self, g: NDArray, size: float) -> float:
        ranks = np.sort(g)[: len(self.weights)]
        if not self.joint:
            ranks = np.minimum(ranks, 0.0)
        return min(0.0, float(ranks @ self.weights))

    def oracle(self, a: NDArray, rho: float) -> NDArray:
        x = cp.Variable(len(a), nonneg=True)
        s = cp.sum(x)
        share = s / self.radius if self.joint else 1.0
        bounds = self.bounds(len(a))
        constraints = [cp.sum_largest(x, r + 1) <= share * b for r, b in enumerate(bounds)]
        objective = cp.sum_squares(x - a) + rho * cp.square(s)
        cp.Problem(cp.Minimize(objective), [s <= self.radius, *constraints]).solve(
            solver=cp.CLARABEL
        )
        return x.value


@dataclass(frozen=True)
class PrintedSet(Set):
    """0 <= x_j <= min(radius/k, s/(k-1)), s <= radius."""

    k: int = 2

    def project(self, a: NDArray, rho: float = 0.0) -> NDArray:
        return projections.project_topk_simplex(a, self.k, self.radius, rho, "printed")

    def cap(self, s: float) -> float:
        return min(self.radius / self.k, s / (self.k - 1) if self.k > 1 else np.inf)

    def linear_minimum(self, g: NDArray, size: float) -> float:
        sums = np.cumsum(np.sort(g)[: self.k]) * size / self.k
        return min(0.0, float(sums[-2:].min()))

    def oracle(self, a: NDArray, rho: float) -> NDArray:
        x = cp.Variable(len(a), nonneg=True)
        s = cp.sum(x)
        constraints = [s <= self.radius, x <= self.radius / self.k]
        if self.k > 1:
            constraints.append(x <= s / (self.k - 1))
        objective = cp.sum_squares(x - a) + rho * cp.square(s)
        cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
        return x.value


SETS: dict[str, Callable[[int], Set]] = {
    # each by the number of entries m, so that the set is never empty
    "simplex": lambda m: Set(equality=True),
    "simplex-radius": lambda m: Set(radius=3.5, equality=True),
    "filled-simplex": lambda m: Set(),
    "knapsack": lambda m: Set(radius=1.5, upper=0.6),
    "knapsack-loose": lambda m: Set(radius=100.0, upper=0.25),
    "knapsack-equality": lambda m: Set(radius=0.5 * m, upper=0.75, equality=True),
    "knapsack-full": lambda m: Set(radius=0.25 * m, upper=0.25, equality=True),
    "top-1-simplex": lambda m: Set(k=1),
    "top-2-simplex": lambda m: Set(k=min(2, m)),
    "top-3-simplex": lambda m: Set(radius=0.4, k=min(3, m)),
    "top-m-simplex": lambda m: Set(k=m),
    "top-2-cone": lambda m: Set(radius=np.inf, k=min(2, m)),
    "top-m-cone": lambda m: Set(radius=np.inf, k=m),
    "printed": lambda m: PrintedSet(k=min(3, m)),
    "printed-radius": lambda m: PrintedSet(radius=0.4, k=min(2, m)),
    "ranks-alpha": lambda m: RankSet.of((0.6, 0.3, 0.3), m, joint=True),
    "ranks-beta": lambda m: RankSet.of((0.6, 0.3, 0.3), m, joint=False),
}
