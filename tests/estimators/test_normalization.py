"""``normalize="l2"``: the same model as on rows divided by hand, wherever the model goes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import shortlist
from shortlist import TopKClassifier
from shortlist.estimators.normalization import normalized


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X[0] = 0.0
    return X[:600], y[:600], X[600:700]


@pytest.fixture(scope="module")
def fitted(digits):
    X, y, _ = digits
    return TopKClassifier(C=1.0, normalize="l2", random_state=0).fit(X, y)


def test_training_and_predicting_normalise(digits, fitted):
    X, y, new = digits
    by_hand = TopKClassifier(C=1.0, random_state=0).fit(normalize(X), y)
    np.testing.assert_allclose(fitted.coef_, by_hand.coef_, atol=1e-10)
    scores = by_hand.decision_function(normalize(new))
    np.testing.assert_allclose(fitted.decision_function(new), scores, atol=1e-10)
    np.testing.assert_allclose(fitted.decision_function(1000 * new), scores, atol=1e-10)
    expected = by_hand.certified_topk(normalize(new), 3)
    np.testing.assert_array_equal(fitted.certified_topk(new, 3), expected)
    (along,) = TopKClassifier(normalize="l2", random_state=0).fit_path(X, y, [1.0])
    np.testing.assert_allclose(along.decision_function(new), scores, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_have_length_one_and_the_precision_they_came_in(digits, dtype):
    rows = digits[0].astype(dtype)
    before = rows.copy()
    rows.flags.writeable = False
    unit = normalized(rows, "l2")
    assert unit.dtype == dtype
    np.testing.assert_allclose(unit, normalize(rows.astype(np.float64)), rtol=1e-6)
    np.testing.assert_array_equal(unit[0], 0)
    np.testing.assert_array_equal(rows, before)
    thin = normalized(sparse.csr_array(rows), "l2")
    assert thin.dtype == dtype
    np.testing.assert_allclose(thin.toarray(), unit, rtol=1e-6)
    assert normalized(rows, None) is rows


def test_squares_beyond_single_precision_are_no_matter():
    huge = np.array([[3e30, 4e30], [3e-30, 4e-30]], dtype=np.float32)
    np.testing.assert_allclose(normalized(huge, "l2"), [[0.6, 0.8]] * 2, rtol=1e-6)


def test_model_files_and_onnx_graphs_normalise_too(digits, fitted, tmp_path):
    new = digits[2]
    shortlist.save(fitted, tmp_path / "model")
    back = shortlist.load(tmp_path / "model")
    assert back.normalize == "l2"
    scores = fitted.decision_function(new)
    np.testing.assert_array_equal(back.decision_function(new), scores)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        shortlist.to_onnx(fitted, dtype="float64").SerializeToString()
    )
    rows = np.vstack([new, np.zeros_like(new[:1])])
    (found,) = session.run(["scores"], {"X": rows})
    np.testing.assert_allclose(found, fitted.decision_function(rows), atol=1e-10)


def test_a_linear_layer_is_made_of_it_only_knowingly(digits, fitted):
    torch = pytest.importorskip("torch")
    from shortlist.torch import to_linear

    with pytest.raises(ValueError, match=r"normalize='l2'.*normalized_input=True"):
        to_linear(fitted)
    layer = to_linear(fitted, normalized_input=True)
    rows = torch.nn.functional.normalize(torch.tensor(digits[2]))
    scores = layer(rows).detach().numpy()
    np.testing.assert_allclose(scores, fitted.decision_function(digits[2]), atol=1e-10)


@pytest.mark.parametrize("wrong", ["l1", True, 2])
def test_another_choice_is_refused(digits, wrong):
    with pytest.raises(ValueError, match="normalize must be None or 'l2'; got"):
        TopKClassifier(normalize=wrong).fit(*digits[:2])
