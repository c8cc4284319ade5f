"""scikit-learn's own checks, none of them excused."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import TopKClassifier

# Some checks compare the scores of two fits to seven digits. A duality gap certifies half as many
# digits of W as it has itself, so this asks for all that rounding leaves.
EXACT = {"tol": 1e-20, "max_epochs": 1000, "random_state": 0}


@parametrize_with_checks(
    [
        TopKClassifier(**EXACT),
        TopKClassifier("smooth_hinge", **EXACT),
        TopKClassifier("ova_logistic", **EXACT),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
