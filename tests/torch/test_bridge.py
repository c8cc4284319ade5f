"""A fitted classifier as a layer, and a layer as a fitted classifier."""

import numpy as np
import pytest
import torch

from shortlist import TopKClassifier, load, save
from shortlist.torch import from_linear, to_linear


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    y = np.array(["ant", "bee", "cat"])[rng.integers(3, size=90)]
    return (
        TopKClassifier("smooth_hinge", k=2, variant="beta", tol=1e-2, random_state=0).fit(X, y),
        X,
        y,
    )


def test_the_layer_computes_the_classifiers_scores(fitted):
    model, X, _ = fitted
    layer = to_linear(model)
    scores = layer(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12)
    assert to_linear(model, dtype=torch.float32).weight.dtype == torch.float32


def test_the_layer_owns_its_weights(fitted):
    model, _, _ = fitted
    before = model.coef_.copy()
    layer = to_linear(model)
    assert all(parameter.requires_grad for parameter in layer.parameters())
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    np.testing.assert_array_equal(model.coef_, before)


def test_there_and_back(fitted, tmp_path):
    model, X, y = fitted
    twin = from_linear(to_linear(model), model.classes_, **model.get_params())
    np.testing.assert_array_equal(twin.predict_topk(X), model.predict_topk(X))
    assert twin.score(X, y) == model.score(X, y)
    assert twin.result_.status == "imported"
    save(twin, tmp_path / "twin.shortlist")
    np.testing.assert_array_equal(load(tmp_path / "twin.shortlist").coef_, model.coef_)


def test_a_layer_becomes_a_classifier():
    layer = torch.nn.Linear(4, 6, bias=False, dtype=torch.bfloat16)
    model = from_linear(layer, loss="entropy", k=1)
    X = np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32)
    np.testing.assert_array_equal(model.classes_, np.arange(6))
    assert not model.fit_intercept
    scores = X @ layer.weight.detach().float().numpy().T
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, rtol=1e-6)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="call fit first"):
        to_linear(TopKClassifier())
    with pytest.raises(TypeError, match=r"torch\.nn\.Linear, got Conv1d"):
        from_linear(torch.nn.Conv1d(1, 2, 3))
    with pytest.raises(ValueError, match="one output for each class"):
        from_linear(torch.nn.Linear(3, 1))
    with pytest.raises(ValueError, match="each of the 4 outputs"):
        from_linear(torch.nn.Linear(3, 4), ["a", "b"])
    with pytest.raises(ValueError, match="twice"):
        from_linear(torch.nn.Linear(3, 2), ["a", "a"])
