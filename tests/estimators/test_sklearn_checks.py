"""scikit-learn's own checks for every estimator, none of them excused or skipped.

Many of them train on two classes, which leaves the truncated entropy k = 1, softmax. Temperature
scaling and conformal shortlists are made around a fitted model, which no check does.
"""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV

# Some checks compare the scores of two fits to seven digits. A duality gap certifies half as many
# digits of W as it has itself, so this asks for all that rounding leaves. The other checks are run
# with the tolerance that users have, which takes less time.
COMPARING = ("sample_weight_equivalence", "representation_invariance", "array_api")
EXACT = {"tol": 1e-20, "max_epochs": 1000, "random_state": 0}
SHORT = {**EXACT, "max_epochs": 400}
DEFAULT_TOL = TopKClassifier().tol


@parametrize_with_checks(
    [
        TopKClassifier(**EXACT),
        TopKClassifier("smooth_hinge", **EXACT),
        TopKClassifier("ova_logistic", **EXACT),
        TopKClassifier("hinge", **EXACT),
        TopKClassifier("ova_hinge", **EXACT),
        TopKClassifier("truncated_entropy", **EXACT),
        TopKClassifierCV(Cs=[0.001, 0.01], ks=(1,), cv=3, max_extensions=0, **EXACT),
        TopKClassifierCV("hinge", Cs=[0.01], ks=(1, 2), cv=2, max_extensions=0, n_jobs=2, **EXACT),
        KernelTopKClassifier(C=0.01, **SHORT),
        KernelTopKClassifier(
            "smooth_hinge", C=0.01, kernel="poly", coef0=1.0, cache_size=0, **SHORT
        ),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*always right:UserWarning")
def test_scikit_learn_checks(estimator, check, monkeypatch, request):
    if not any(name in request.node.name for name in COMPARING):
        estimator = clone(estimator).set_params(tol=DEFAULT_TOL)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn skips the check of it otherwise
    check(estimator)


def test_class_weights_of_a_search_as_it_comes():
    """With the default grid the weights must count in the choice of C, not in training alone."""
    from sklearn.utils.estimator_checks import check_class_weight_classifiers

    check_class_weight_classifiers("TopKClassifierCV", TopKClassifierCV(ks=(1,)))
