"""Distributions, shortlists and names that several tests of calibration use."""

from itertools import combinations, combinations_with_replacement

import numpy as np


def shortlists(n_classes: int, k: int) -> list[np.ndarray]:
    masks = []
    for labels in combinations(range(n_classes), k):
        mask = np.zeros(n_classes, dtype=bool)
        mask[list(labels)] = True
        masks.append(mask)
    return masks


RANDOM_P = [
    np.random.default_rng(seed).dirichlet(np.full(m, concentration))
    for seed, (m, concentration) in enumerate([(3, 1), (4, 5), (5, 1), (5, 30), (6, 2)])
]


def distributions(n_classes: int, n: int = 6) -> list[np.ndarray]:
    """Distributions with distinct probabilities, from peaked to nearly uniform."""
    rng = np.random.default_rng(n_classes)
    draws = (rng.dirichlet(np.full(n_classes, c)) for c in 10 ** rng.uniform(-0.3, 1.5, 1000))
    return [p for p in draws if np.diff(np.sort(p)).min() > 0.01][:n]


def weighted(n_classes: int, largest: int = 3) -> list[np.ndarray]:
    """Distributions with whole weights, in descending order: all patterns of ties and zeros."""
    weights = combinations_with_replacement(range(largest, -1, -1), n_classes)
    return [np.array(w) / sum(w) for w in weights if w[0] > 0 and np.gcd.reduce(w) == 1]


def describe(loss) -> str:
    return f"{loss.name}-{loss.variant}-k{loss.k}-{loss.smoothing}"
