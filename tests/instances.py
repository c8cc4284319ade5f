"""Every loss at several parameters: the list that each battery of tests runs over.

Adding a loss to the library takes one row here, and its formulas in ``tests/references.py``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist import losses


@dataclass(frozen=True)
class Instance:
    """A loss, its parameters, and the number of classes m to test it with."""

    name: str
    m: int
    k: int = 1
    variant: str = "alpha"
    smoothing: float = 0.0

    @property
    def id(self) -> str:
        parts = [self.name, f"m{self.m}"]
        if not self.name.startswith("ova"):
            parts.append(f"k{self.k}")
        if self.k > 1 and self.name != "truncated_entropy":
            parts.append(self.variant)
        if self.smoothing:
            parts.append(f"gamma{self.smoothing:g}")
        return "-".join(parts)

    @property
    def convex(self) -> bool:
        return self.name != "truncated_entropy" or self.k == 1

    @property
    def smooth(self) -> bool:
        return self.smoothing > 0 or self.name in ("entropy", "ova_logistic")

    @property
    def one_vs_all(self) -> bool:
        return self.name.startswith("ova")

    @property
    def entropic(self) -> bool:
        return "entropy" in self.name or self.name == "ova_logistic"

    def loss(self) -> losses.Loss:
        return losses.get(self.name, k=self.k, variant=self.variant, smoothing=self.smoothing)

    def scores(self, seed: int = 0, n: int = 1, scale: float = 2.0) -> NDArray:
        """Random scores, the same on each call, with small and large margins among them."""
        rng = np.random.default_rng([seed, self.m])
        return rng.normal(size=(n, self.m)) * scale * rng.choice([0.1, 1.0, 3.0], size=(n, 1))

    def labels(self, seed: int = 0, n: int = 1) -> NDArray:
        return np.random.default_rng([seed, self.m, 1]).integers(0, self.m, size=n)


_TOP_K = [
    Instance("", m=m, k=k, variant=variant)
    for m, k in [(3, 2), (6, 3), (8, 7), (30, 5)]
    for variant in ("alpha", "beta")
]


def _top_k(name: str, smoothing: float = 0.0) -> list[Instance]:
    return [Instance(name, row.m, row.k, row.variant, smoothing) for row in _TOP_K]


INSTANCES = [
    Instance("hinge", m=2),
    Instance("hinge", m=5),
    *_top_k("hinge"),
    Instance("smooth_hinge", m=2, smoothing=1.0),
    Instance("smooth_hinge", m=5, smoothing=0.01),
    Instance("smooth_hinge", m=5, smoothing=100.0),
    *_top_k("smooth_hinge", smoothing=1.0),
    Instance("smooth_hinge", m=6, k=3, variant="alpha", smoothing=0.01),
    Instance("smooth_hinge", m=6, k=3, variant="alpha", smoothing=100.0),
    Instance("smooth_hinge", m=6, k=3, variant="beta", smoothing=0.01),
    Instance("smooth_hinge", m=6, k=3, variant="beta", smoothing=100.0),
    Instance("entropy", m=2),
    Instance("entropy", m=5),
    *_top_k("entropy"),
    Instance("truncated_entropy", m=5),
    Instance("truncated_entropy", m=3, k=2),
    Instance("truncated_entropy", m=6, k=3),
    Instance("truncated_entropy", m=8, k=7),
    Instance("ova_hinge", m=2),
    Instance("ova_hinge", m=5),
    Instance("ova_smooth_hinge", m=2, smoothing=1.0),
    Instance("ova_smooth_hinge", m=5, smoothing=0.01),
    Instance("ova_smooth_hinge", m=5, smoothing=100.0),
    Instance("ova_logistic", m=2),
    Instance("ova_logistic", m=5),
]
CONVEX = [row for row in INSTANCES if row.convex]
SMOOTH = [row for row in INSTANCES if row.smooth]


def by_id(row: Instance) -> str:
    """For ``pytest.mark.parametrize(..., ids=by_id)``."""
    return row.id
