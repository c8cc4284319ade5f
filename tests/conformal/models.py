"""Models that say what the tests tell them to, and data whose classes overlap."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits


class GivenScores:
    """A classifier whose input is its scores. It remembers how many rows it was asked at a time."""

    def __init__(self, n_classes, labels=None):
        self.classes_ = np.arange(n_classes) if labels is None else np.asarray(labels)
        self.asked = []

    def decision_function(self, X):
        self.asked.append(len(X))
        return np.asarray(X, dtype=float)


class GivenProbabilities(GivenScores):
    """The same for probabilities, and without a decision function."""

    decision_function = property()

    def predict_proba(self, X):
        self.asked.append(len(X))
        return np.asarray(X, dtype=float)


@dataclass
class Overlapping:
    """Scores drawn around a class, the harder the class the wider; labels drawn from them.

    A model that gives these scores is neither right nor calibrated, which conformal sets must bear.
    """

    n_classes: int = 6
    seed: int = 0
    weights: np.ndarray | None = None
    random: np.random.Generator = field(init=False)

    def __post_init__(self):
        self.random = np.random.default_rng(self.seed)

    def draw(self, n_samples):
        y = self.random.choice(self.n_classes, size=n_samples, p=self.weights)
        noise = np.linspace(0.4, 2.0, self.n_classes)[y]
        scores = self.random.normal(size=(n_samples, self.n_classes)) * noise[:, None]
        scores[np.arange(n_samples), y] += 1.5
        return 3 * scores, y

    def draw_probabilities(self, n_samples):
        scores, y = self.draw(n_samples)
        return softmax(scores, axis=1), y


def noisy_digits(noise):
    """Handwritten digits in a random order, made hard by noise: X and y."""
    X, y = load_digits(return_X_y=True)
    random = np.random.default_rng(1)
    order = random.permutation(len(y))
    return X[order] / 16 + random.normal(scale=noise, size=X.shape), y[order]
