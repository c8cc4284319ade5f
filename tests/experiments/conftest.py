"""Small data for experiments."""

import numpy as np
import pytest

from shortlist.datasets import LabeledData
from shortlist.experiments.parts import Parts


def clusters(n, n_classes=12, n_features=6, seed=0):
    """Overlapping Gaussian clusters, one for each class; every class occurs."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(n_classes, n_features))
    y = np.arange(n) % n_classes
    return centres[y] + 0.9 * random.normal(size=(n, n_features)), y


@pytest.fixture(scope="session")
def small_parts():
    sizes = enumerate((240, 240, 360))
    return Parts("clusters", *(LabeledData(*clusters(n, seed=s)) for s, n in sizes))
