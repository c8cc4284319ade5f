"""Pipelines that end in an estimator of Shortlist convert with skl2onnx."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from tests.test_onnx import NAMES, answers, check, examples

skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("shortlist.onnx")
FloatTensorType = pytest.importorskip("skl2onnx.common.data_types").FloatTensorType


def check_pipeline(pipeline, found, X, k=None):
    check(pipeline[-1], found, pipeline[:-1].transform(X), k)


@pytest.mark.parametrize(
    "model",
    [
        TopKClassifier("entropy", random_state=0),
        TopKClassifier("ova_logistic", k=2, random_state=0),
        TopKClassifier("smooth_hinge", k=2, random_state=0),
        TopKClassifierCV(Cs=[0.1, 1.0], ks=(1, 2), cv=2, max_extensions=0, random_state=0),
        KernelTopKClassifier("smooth_hinge", k=2, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("text", [False, True])
def test_pipelines_convert(model, text):
    X, y = examples()
    pipeline = make_pipeline(StandardScaler(), PCA(4), model).fit(X, NAMES[y] if text else y)
    converted = skl2onnx.to_onnx(pipeline, X[:1])
    check_pipeline(pipeline, answers(converted, X), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_the_input_is_kept(dtype):
    X, y = examples(dtype=dtype)
    pipeline = make_pipeline(StandardScaler(), TopKClassifier(k=2, random_state=0)).fit(X, y)
    found = answers(skl2onnx.to_onnx(pipeline, X[:1]), X)
    assert found["scores"].dtype == dtype
    check_pipeline(pipeline, found, X)


@pytest.mark.parametrize("zipmap", [False, True])
def test_the_length_of_shortlists_is_an_option(zipmap):
    X, y = examples()
    pipeline = make_pipeline(StandardScaler(), TopKClassifier(random_state=0)).fit(X, y)
    options = {id(pipeline[-1]): {"k": 3, "zipmap": zipmap}}
    found = answers(skl2onnx.to_onnx(pipeline, X[:1], options=options), X)
    check_pipeline(pipeline, found, X, 3)
    assert found["probabilities"].shape == (len(X), 6)


def test_a_model_alone_converts():
    X, y = examples()
    model = TopKClassifier(k=2, random_state=0).fit(X, y)
    check(model, answers(skl2onnx.to_onnx(model, X[:1]), X), X)


def test_the_choice_of_a_search_converts():
    X, y = examples()
    pipeline = make_pipeline(StandardScaler(), TopKClassifier(k=2, random_state=0))
    search = GridSearchCV(pipeline, {"topkclassifier__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = answers(skl2onnx.to_onnx(search, X[:1]), X)
    check_pipeline(search.best_estimator_, found, X)


def test_what_does_not_convert_is_explained():
    X, y = examples()
    model = TopKClassifier(random_state=0).fit(X, y)
    parts = [("a", FloatTensorType([None, 2])), ("b", FloatTensorType([None, 3]))]
    with pytest.raises(ValueError, match="the features must be one matrix, got 2 inputs"):
        skl2onnx.to_onnx(model, initial_types=parts)
    wrapped = CalibratedClassifierCV(TopKClassifier(random_state=0), cv=2).fit(X, y)
    with pytest.raises(ValueError, match="this TopKClassifier inside another estimator"):
        skl2onnx.to_onnx(wrapped, X[:1])


def test_operators_that_are_too_old_are_refused():
    X, y = examples()
    model = TopKClassifier(k=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="need target_opset 13 or newer, got 12"):
        skl2onnx.to_onnx(model, X[:1], target_opset=12)
