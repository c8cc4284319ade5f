"""Large C, also on features that were not scaled: certified with the defaults."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from shortlist import TopKClassifier

DIGITS, CANCER, WINE = (
    load(return_X_y=True) for load in (load_digits, load_breast_cancer, load_wine)
)
TABLES = {
    "digits": DIGITS,
    "digits / 16": (DIGITS[0] / 16, DIGITS[1]),
    "digits, scaled": (StandardScaler().fit_transform(DIGITS[0]), DIGITS[1]),
    "cancer": CANCER,
    "wine": WINE,
}


@pytest.mark.parametrize(
    ("table", "loss", "C"),
    [
        ("digits / 16", "smooth_hinge", 1e3),
        ("digits / 16", "smooth_hinge", 1e6),
        ("digits / 16", "hinge", 1e4),
        ("digits / 16", "ova_logistic", 1e6),
        ("digits / 16", "softmax", 1e6),
        ("digits, scaled", "hinge", 1e2),
        ("digits", "hinge", 1.0),
        ("digits", "smooth_hinge", 1.0),
        ("cancer", "hinge", 1e3),
        ("cancer", "hinge", 1e5),
        ("cancer", "smooth_hinge", 1e3),
        ("wine", "hinge", 1e2),
    ],
)
def test_it_converges(table, loss, C):
    X, y = TABLES[table]
    model = TopKClassifier(loss, C=C, random_state=0).fit(X, y)
    assert model.result_.status == "converged"
    assert model.score(X, y) > 0.95
    assert np.isfinite(model.coef_).all()
