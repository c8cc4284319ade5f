"""Every loss at several parameters: the list that each battery of tests runs over.

Adding a loss to the library takes one row here, with its formulas. Those of the paper's losses,
which are of one family, are in ``tests/references.py`` and ``tests/losses/oracles.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist import losses


@dataclass(frozen=True)
class Formulas:
    """A loss as its definition reads, apart from the library: of one example with the label y.

    ``program`` is the conjugate for cvxpy: of a variable, its expression and the constraints of
    its domain. ``random_dual`` draws a point of the domain, and ``outside`` makes points from it
    that miss the domain by so much, each in one of the constraints.
    """

    value: Callable[[NDArray, int], float]
    conjugate: Callable[[NDArray, int], float]
    program: Callable[[Any, int], tuple[Any, list]]
    random_dual: Callable[[np.random.Generator, int], NDArray]
    outside: Callable[[NDArray, int, float], list[NDArray]]
    convex: bool = True
    smooth: bool = True
    one_vs_all: bool = False
    entropic: bool = False


@dataclass(frozen=True)
class Instance:
    """A loss, its parameters, and the number of classes m to test it with."""

    name: str
    m: int
    k: int = 1
    variant: str = "alpha"
    smoothing: float = 0.0
    margins: tuple | None = None
    rank_weights: tuple[float, ...] | None = None
    formulas: Formulas | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        parts = [self.name, f"m{self.m}"]
        if not self.name.startswith("ova"):
            parts.append(f"k{self.k}")
        if (self.k > 1 or self.rank_weights) and self.name != "truncated_entropy":
            parts.append(self.variant)
        if self.smoothing:
            parts.append(f"gamma{self.smoothing:g}")
        if self.rank_weights:
            parts.append(f"ranks{len(self.rank_weights)}")
        if self.margins:
            parts.append("pairs" if isinstance(self.margins[0], tuple) else "margins")
        return "-".join(parts)

    @property
    def convex(self) -> bool:
        if self.formulas is not None:
            return self.formulas.convex
        return self.name != "truncated_entropy" or self.k == 1

    @property
    def smooth(self) -> bool:
        if self.formulas is not None:
            return self.formulas.smooth
        return self.smoothing > 0 or self.name in ("entropy", "mixed_entropy", "ova_logistic")

    @property
    def mixed(self) -> bool:
        return self.name.startswith("mixed_") and (self.k > 1 or self.rank_weights is not None)

    @property
    def has_dual_step(self) -> bool:
        return self.convex and not self.mixed

    @property
    def parts(self) -> list[tuple[float, "Instance"]]:
        """The parts of a mixture, with equal shares or k times the drop of the weights at k."""
        shares = np.full(self.k, 1.0 / self.k)
        if self.rank_weights is not None:
            shares = -np.diff(self.rank_weights, append=0.0) * range(1, len(self.rank_weights) + 1)
        name = self.name.removeprefix("mixed_")
        parts = [replace(self, name=name, k=k + 1, rank_weights=None) for k in range(len(shares))]
        return [(s, part) for s, part in zip(shares.tolist(), parts, strict=True) if s > 1e-12]

    @property
    def one_vs_all(self) -> bool:
        if self.formulas is not None:
            return self.formulas.one_vs_all
        return self.name.startswith("ova")

    @property
    def entropic(self) -> bool:
        if self.formulas is not None:
            return self.formulas.entropic
        return "entropy" in self.name or self.name == "ova_logistic"

    @property
    def beyond(self) -> bool:
        """Whether it goes beyond the paper's losses: these have no torch module."""
        extended = self.variant == "printed" or bool(self.margins) or bool(self.rank_weights)
        return extended or self.mixed or self.formulas is not None

    @property
    def parameters(self) -> dict[str, Any]:
        """What ``losses.get`` takes besides the name."""
        names = ("k", "variant", "smoothing", "margins", "rank_weights")
        return {name: getattr(self, name) for name in names}

    def loss(self) -> losses.Loss:
        return losses.get(self.name, **self.parameters)

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


# Beyond the paper's losses: alpha as printed, a weight for each rank, margins.
_CLASS_MARGINS = (0.5, 2.0, 1.0, 0.0, 1.5)
_PAIR_MARGINS = tuple(tuple(abs(i - j) / 2 for j in range(5)) for i in range(5))
_BEYOND = [
    Instance("hinge", m=3, k=2, variant="printed"),
    Instance("hinge", m=8, k=4, variant="printed"),
    Instance("smooth_hinge", m=8, k=4, variant="printed", smoothing=0.5),
    Instance("hinge", m=6, variant="alpha", rank_weights=(0.5, 0.3, 0.2)),
    Instance("hinge", m=6, variant="beta", rank_weights=(0.5, 0.3, 0.2)),
    Instance("smooth_hinge", m=6, variant="alpha", smoothing=0.5, rank_weights=(0.5, 0.3, 0.2)),
    Instance("smooth_hinge", m=6, variant="beta", smoothing=0.5, rank_weights=(0.5, 0.3, 0.2)),
    Instance("smooth_hinge", m=5, variant="alpha", smoothing=1.0, rank_weights=(0.4, 0.3, 0.3)),
    Instance("hinge", m=5, margins=_CLASS_MARGINS),
    Instance("smooth_hinge", m=5, k=2, variant="beta", smoothing=1.0, margins=_PAIR_MARGINS),
    Instance("mixed_smooth_hinge", m=4, k=3, variant="alpha", smoothing=1.0),
    Instance(
        "mixed_smooth_hinge", m=6, variant="alpha", smoothing=0.5, rank_weights=(0.6, 0.2, 0.2)
    ),
    Instance("mixed_smooth_hinge", m=6, k=3, variant="beta", smoothing=0.5),
    Instance("mixed_entropy", m=4, k=3, variant="alpha"),
    Instance("mixed_entropy", m=6, variant="alpha", rank_weights=(0.6, 0.2, 0.2)),
    Instance("mixed_entropy", m=6, k=3, variant="beta"),
]
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
    *_BEYOND,
]
CONVEX = [row for row in INSTANCES if row.convex]
DUAL = [row for row in CONVEX if row.has_dual_step]
SMOOTH = [row for row in INSTANCES if row.smooth]


def by_id(row: Instance) -> str:
    """For ``pytest.mark.parametrize(..., ids=by_id)``."""
    return row.id
