"""The recipes of docs/probes.md do what the scikit-learn lines they replace do."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from shortlist import TopKClassifier, TopKClassifierCV

# scikit-learn's default tolerance leaves errors of 0.01 in probabilities.
EXACT = {"tol": 1e-7, "max_iter": 5000}


@pytest.fixture(scope="module")
def features():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


TRAIN, VAL, TEST = slice(0, 400), slice(400, 700), slice(700, None)


def test_clip_readme(features):
    X, y = features
    theirs = LogisticRegression(random_state=0, C=0.316, **EXACT).fit(X[TRAIN], y[TRAIN])
    ours = TopKClassifier(C=0.316, fit_intercept="free", tol=1e-6, random_state=0)
    ours.fit(X[TRAIN], y[TRAIN])
    agreement = np.mean(ours.predict(X[TEST]) == theirs.predict(X[TEST]))
    assert agreement > 0.995


def test_dino_log_regression(features):
    """Choose C on one part, train on both parts, measure on the rest."""
    X, y = features
    Cs = 10 ** np.linspace(-3, 2, 6)
    accuracies = [
        LogisticRegression(C=C, tol=1e-6, max_iter=1000)
        .fit(X[TRAIN], y[TRAIN])
        .score(X[VAL], y[VAL])
        for C in Cs
    ]
    both = np.concatenate([X[TRAIN], X[VAL]]), np.concatenate([y[TRAIN], y[VAL]])
    theirs = LogisticRegression(C=Cs[np.argmax(accuracies)], **EXACT).fit(*both)
    ours = TopKClassifierCV(
        Cs=Cs, ks=(1,), fit_intercept="free", refit="train+val", max_extensions=0,
        tol=1e-6, random_state=0,
    ).fit(X[TRAIN], y[TRAIN], X_val=X[VAL], y_val=y[VAL])  # fmt: skip
    np.testing.assert_allclose(ours.mean_scores_[:, 0], accuracies, atol=0.01)
    agreement = np.mean(ours.predict(X[TEST]) == theirs.predict(X[TEST]))
    assert ours.C_[1] == theirs.C
    assert agreement > 0.995


def test_mteb_classification(features):
    """Eight examples a label, several times over: the mean is that of scikit-learn's fits."""
    from shortlist.estimators.cv_folds import Part, few_shot_folds
    from shortlist.estimators.parameters import seed_of

    X, y = features
    ours = TopKClassifierCV(
        Cs=[1.0], ks=(1,), shots=8, repeats=4, fit_intercept="free", max_extensions=0,
        random_state=0,
    ).fit(X[TRAIN], y[TRAIN], X_val=X[TEST], y_val=y[TEST])  # fmt: skip
    folds = few_shot_folds(Part(X[TRAIN], y[TRAIN], None, None), 8, 4, seed_of(0), None)
    theirs = [
        LogisticRegression(max_iter=100)
        .fit(X[TRAIN][fold.train], y[TRAIN][fold.train])
        .score(X[TEST], y[TEST])
        for fold in folds
    ]
    assert ours.mean_scores_[0, 0] == pytest.approx(np.mean(theirs), abs=0.01)
    assert ours.std_scores_[0, 0] == pytest.approx(np.std(theirs), abs=0.01)


def test_setfit_head(features):
    """SetFit's model calls fit, predict and predict_proba of its head, on arrays or tensors."""
    X, y = features
    names = np.array(list("abcdefghij"))[y]
    torch = pytest.importorskip("torch")
    head = TopKClassifier(fit_intercept="free", tol=1e-6, random_state=0)
    head.fit(torch.tensor(X[TRAIN]), names[TRAIN])
    theirs = LogisticRegression(**EXACT).fit(X[TRAIN], names[TRAIN])
    np.testing.assert_allclose(
        head.predict_proba(torch.tensor(X[TEST])), theirs.predict_proba(X[TEST]), atol=1e-3
    )
    assert np.mean(head.predict(X[TEST]) == theirs.predict(X[TEST])) > 0.995
