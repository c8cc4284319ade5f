"""Two classes: one row of coefficients and one score an example, as in scikit-learn.

The score is positive for the second class. Of a loss of the scores' differences it is s_1 - s_0;
softmax's probability of the second class is its sigmoid. One-vs-all losses train two models that
mirror each other; the score is the second one's, (s_1 - s_0) / 2, and its sigmoid the probability.

Folding keeps the certificate: mirroring the two classes (s_0 to -s_1, s_1 to -s_0) keeps the
objective, which is convex, so that the mean of weights and their mirror image is no worse.
"""

import numpy as np
from numpy.typing import NDArray


def folded(both: NDArray, separable: bool) -> NDArray:
    """The one score, or row of weights, from those of both classes; classes are axis 0."""
    difference = both[1:] - both[:1]
    return 0.5 * difference if separable else difference


def unfolded(one: NDArray, separable: bool) -> NDArray:
    """Both classes' scores or weights from the one that :func:`folded` makes of them."""
    second = one if separable else 0.5 * one
    return np.concatenate([-second, second])
