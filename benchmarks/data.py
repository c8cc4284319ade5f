"""The data that benchmarks train on: Letter, made-up sentence embeddings, or a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LETTER = "letter"
EMBEDDINGS = "embeddings"


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples to train on, labels 0..m-1."""

    name: str
    X: Any
    y: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    def describe(self) -> str:
        n, d = self.X.shape
        return f"{self.name}: {n} x {d}, {self.n_classes} classes, {self.X.dtype}"


def load(source: str, *, dtype: str | None = None, most: int | None = None) -> Examples:
    """Load "letter", "embeddings" or a file's training part; ``most`` examples at the most.

    Without ``dtype`` the features keep the precision they come in, half precision excepted.
    """
    if source == LETTER:
        from shortlist.datasets import load_letter

        X, y = load_letter().train
        name = "Letter"
    elif source == EMBEDDINGS:
        X, y = make_embeddings()
        name = "embeddings"
    else:
        X, y = _read(source)
        name = Path(source).stem
    if dtype is None and X.dtype == np.float16:
        dtype = "float32"
    if dtype is not None:
        X = X.astype(dtype)
    if most is not None and most < len(y):
        chosen = np.random.default_rng(0).permutation(len(y))[:most]
        X, y = X[chosen], y[chosen]
    return Examples(name, X, np.unique(y, return_inverse=True)[1].ravel().astype(np.int64))


def _read(path: str) -> Any:
    from shortlist.datasets import read_splits

    parts = read_splits(path)
    return parts.get("train") or next(iter(parts.values()))


def make_embeddings(
    n_samples: int = 15_000, n_features: int = 384, n_classes: int = 150, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows that behave like sentence embeddings of many intents.

    Shaped after CLINC150 under a small sentence encoder: a common direction, class centres and
    noise with decaying spectra in the same basis, and examples that lie part of the way towards
    one of the three classes nearest to their own. A softmax probe is right on about 95% of new
    examples and needs about as many epochs as it does there.
    """
    random = np.random.default_rng(seed)
    column = np.arange(n_features)
    between = np.exp(-column / 20.0)
    within = np.exp(-column / 60.0)
    centres = random.standard_normal((n_classes, n_features)) * np.sqrt(
        0.43 * between / between.sum()
    )
    centres[:, 0] += 0.3
    squares = (centres**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * centres @ centres.T
    near = np.argsort(distances, axis=1)[:, 1 : min(4, n_classes)]
    y = random.integers(n_classes, size=n_samples)
    other = near[y, random.integers(near.shape[1], size=n_samples)]
    drift = random.beta(1.0, 5.0, size=n_samples)[:, None]
    X = random.standard_normal((n_samples, n_features)) * np.sqrt(0.48 * within / within.sum())
    X += (1 - drift) * centres[y] + drift * centres[other]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), y
