"""Letter: LibSVM's order, split and scaling, and the accuracy that follows from them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist.datasets import load_letter
from shortlist.experiments import paper

# Lines 1, 4 and 17 of LibSVM's letter.scale and the last line of letter.scale.t, as printed there.
LIBSVM_LINES = {
    ("train", 0): "26 -0.733333 -0.466667 -0.466667 -0.6 -0.733333 -0.0666667 0.0666667 -0.733333 "
    "0.2 0.466667 -0.0666667 -0.0666667 -0.866667 0.0666667 -0.333333 -0.2",
    ("train", 3): "8 -0.466667 0.2 -0.333333 -0.0666667 -0.466667 -0.0666667 -0.0666667 0.733333 "
    "-0.866667 -0.0666667 -0.2 0.0666667 -0.6 0.0666667 -1 0.0666667",
    ("train", 16): "5 -0.333333 -0.333333 -0.333333 -0.0666667 -0.6 -0.6 -0.0666667 -0.2 0.6 "
    "-0.0666667 -0.2 1 -1 0.0666667 -0.0666667 -0.2",
    ("test", 4999): "17 -0.333333 0.2 -0.2 0.466667 -0.2 0.0666667 -0.0666667 -0.2 -0.6 0.0666667 "
    "0.0666667 0.466667 -0.6 0.0666667 -0.2 0.0666667",
}


@pytest.fixture(scope="module")
def letter():
    return load_letter()


def test_shapes_labels_and_names(letter):
    assert letter.X_train.shape == (10_500, 16)
    assert letter.X_val.shape == (4_500, 16)
    assert letter.X_test.shape == (5_000, 16)
    for y in (letter.y_train, letter.y_val, letter.y_test):
        assert np.array_equal(np.unique(y), np.arange(26))
    assert "".join(letter.target_names) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    # UCI's class distribution, from the repository's description of the data.
    counts = np.bincount(np.concatenate([letter.y_train, letter.y_val, letter.y_test]))
    assert counts[[0, 1, 20, 25]].tolist() == [789, 766, 813, 734]
    assert counts.sum() == 20_000


@pytest.mark.parametrize(("place", "line"), LIBSVM_LINES.items())
def test_rows_are_those_of_libsvm_to_the_last_digit(letter, place, line):
    split, row = place
    data = letter.part(split)
    label, *features = line.split()
    assert data.y[row] == int(label) - 1
    assert data.X[row].tolist() == [float(value) for value in features]


def test_every_feature_spans_minus_one_to_one(letter):
    X = np.vstack([letter.X_train, letter.X_val])
    assert (X.min(axis=0) == -1).all()
    assert (X.max(axis=0) == 1).all()


def test_float32_and_refused_types(letter):
    X = load_letter(dtype=np.float32).X_val
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, letter.X_val.astype(np.float32))
    with pytest.raises(ValueError, match="float64 or float32"):
        load_letter(dtype=int)


def test_each_call_returns_its_own_arrays(letter):
    again = load_letter()
    again.X_train[:] = 0
    assert load_letter().X_train.any()
    assert letter.X_train.any()


def topk_accuracies(scores, y):
    rank = (scores > scores[np.arange(len(y)), y][:, None]).sum(axis=1)
    return np.array([100 * np.mean(rank < k) for k in (1, 3, 5, 10)])


def test_softmax_without_intercept_has_the_papers_accuracy(letter):
    chosen, best = np.zeros(4), np.zeros(4)
    for C in (1.0, 10.0, 100.0):
        model = LogisticRegression(C=C, fit_intercept=False, max_iter=3000)
        model.fit(letter.X_train, letter.y_train)
        on_val = topk_accuracies(model.decision_function(letter.X_val), letter.y_val)
        on_test = topk_accuracies(model.decision_function(letter.X_test), letter.y_test)
        chosen = np.where(on_val > best, on_test, chosen)
        best = np.maximum(on_val, best)
    np.testing.assert_allclose(chosen, [75.2, 90.2, 94.1, 98.1], atol=0.06)
    papers = [paper.accuracy("letter", "lr-multi", k) for k in (1, 3, 5, 10)]
    np.testing.assert_allclose(chosen, papers, atol=0.25)
