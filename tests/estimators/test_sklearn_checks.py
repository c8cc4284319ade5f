"""scikit-learn's own checks, none of them excused."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import TopKClassifier

# Several checks compare two fits to seven digits, so the gap must be closed to rounding.
EXACT = {"tol": 1e-14, "max_epochs": 20_000, "random_state": 0}


@parametrize_with_checks(
    [
        TopKClassifier(**EXACT),
        TopKClassifier("smooth_hinge", **EXACT),
        TopKClassifier("ova_logistic", fit_intercept=False, **EXACT),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
