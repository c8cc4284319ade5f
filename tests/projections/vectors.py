"""Vectors that are hard to project: ties, outliers, huge and tiny numbers."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

ENTRIES = st.one_of(
    st.floats(-5.0, 5.0),
    st.integers(-2, 2).map(float),
    st.sampled_from([0.0, 1.0, 1.0 / 3.0, 1e9, -1e9, 1e9 + 0.5, 1e5, 1e-9, -1e-9, 1e-30, 1e-300]),
)


def vectors(most: int = 9) -> st.SearchStrategy[NDArray]:
    return st.lists(ENTRIES, min_size=1, max_size=most).map(np.array)


def hard_vector(rng: np.random.Generator, m: int) -> NDArray:
    """One of the same kind, quickly."""
    scale = 10.0 ** rng.uniform(-3, rng.choice([1, 2, 4, 9]))
    kind = rng.integers(5)
    if kind == 0:
        return rng.normal(size=m) * scale
    if kind == 1:
        return rng.integers(-2, 3, size=m) * scale
    if kind == 2:
        return rng.normal(size=m) + rng.choice([-1.0, 1.0]) * scale
    if kind == 3:
        noise = rng.choice([0.0, 1e-8, 1e-3, 1.0]) * rng.normal(size=m)
        return np.where(rng.random(m) < 0.3, scale, 0.0) + noise
    return rng.exponential(size=m) * scale * rng.choice([-1.0, 1.0])
