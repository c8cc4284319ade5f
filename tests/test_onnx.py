"""Exported models answer in onnxruntime as they do in Python."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from tests.instances import INSTANCES

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

NAMES = np.array(["ant", "bée", "cat", "dog", "eel", "fox"])


def examples(n=150, m=6, d=5, dtype=np.float32):
    rng = np.random.default_rng(0)
    y = rng.integers(m, size=n)
    centres = rng.normal(size=(m, d))
    return (rng.normal(size=(n, d)) + 1.5 * centres[y]).astype(dtype), y


def answers(exported, X):
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def check(model, found, X, k=None):
    """Compare with the model's own answers: labels exactly, scores to 1e-5."""
    shortlists = model.predict_topk(X, k)
    np.testing.assert_array_equal(found["topk_labels"], shortlists)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    # One column a class, also of two classes, for which decision_function has one column only.
    np.testing.assert_allclose(found["scores"], model._scores(X), rtol=1e-5, atol=1e-5)
    columns = np.searchsorted(model.classes_, shortlists)
    best = np.take_along_axis(found["scores"], columns, axis=1)
    np.testing.assert_array_equal(found["topk_scores"], best)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)


LOSSES = sorted({(i.name, i.k, i.variant) for i in INSTANCES if i.k in (1, 3)})


@pytest.mark.parametrize(("loss", "k", "variant"), LOSSES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_loss(loss, k, variant):
    X, y = examples()
    model = TopKClassifier(loss, k=k, variant=variant, max_epochs=5, random_state=0).fit(X, y)
    check(model, answers(shortlist.to_onnx(model), X), X)


@pytest.mark.parametrize("trained", [np.float32, np.float64])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_both_precisions(trained, given):
    X, y = examples(dtype=trained)
    model = TopKClassifier(k=2, random_state=0).fit(X, y)
    rows = X.astype(given)
    found = answers(shortlist.to_onnx(model, dtype=given), rows)
    assert found["scores"].dtype == found["topk_scores"].dtype == given
    check(model, found, rows)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.astype(object),
        np.array([-5, 0, 3, 7, 2**40, 2**62]),
        np.arange(6, dtype=np.uint8),
        np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]),
    ],
    ids=["text", "objects", "integers", "small", "floats"],
)
def test_labels_of_every_type(labels):
    X, y = examples()
    model = TopKClassifier("smooth_hinge", k=3, random_state=0).fit(X, labels[y])
    check(model, answers(shortlist.to_onnx(model), X), X)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [0, 1]], ids=str)
@pytest.mark.parametrize("loss", ["entropy", "hinge", "ova_logistic"])
def test_two_classes(loss, labels):
    X, y = examples(m=2)
    model = TopKClassifier(loss, random_state=0).fit(X, np.array(labels)[y])
    check(model, answers(shortlist.to_onnx(model), X), X)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_batch_size(n):
    X, y = examples()
    model = TopKClassifier(k=2, random_state=0).fit(X, NAMES[y])
    found = answers(shortlist.to_onnx(model), X[:n])
    assert found["label"].shape == (n,)
    assert found["topk_labels"].shape == (n, 2)
    if n:
        check(model, found, X[:n])


@pytest.mark.parametrize("k", range(1, 7))
def test_shortlists_of_any_length_and_ties_to_the_left(k):
    X, y = examples()
    model = TopKClassifier("hinge", k=2, random_state=0).fit(X, y)
    # Small whole numbers: the scores are exact, and many are equal.
    rng = np.random.default_rng(1)
    model.coef_ = rng.integers(-1, 2, model.coef_.shape).astype(np.float32)
    model.intercept_ = np.zeros(6, np.float32)
    X = rng.integers(-2, 3, (400, 5)).astype(np.float32)
    found = answers(shortlist.to_onnx(model, k=k), X)
    ranked = np.sort(found["scores"], axis=1)
    assert (ranked[:, 1:] == ranked[:, :-1]).any(axis=1).mean() > 0.5
    check(model, found, X, k)


def test_probabilities_where_every_sigmoid_is_zero():
    X, y = examples()
    model = TopKClassifier("ova_logistic", random_state=0).fit(X, y)
    model.intercept_ = model.intercept_ - np.float32(1e4)
    check(model, answers(shortlist.to_onnx(model), X), X)


def test_a_search_answers_with_the_model_for_k():
    X, y = examples()
    search = TopKClassifierCV(Cs=[0.01, 1.0], ks=(1, 3), cv=2, max_extensions=0, random_state=0)
    search.fit(X, y)
    # Equal choices would show nothing.
    search.estimators_[3] = TopKClassifier("smooth_hinge", k=3, C=0.1, random_state=0).fit(X, y)
    for k in (None, 1, 2, 3, 5):
        exported = shortlist.to_onnx(search, k=k)
        found = answers(exported, X)
        chosen = search.estimators_[3 if k in (3, 5) else 1]
        check(chosen, found, X, k or 1)
        np.testing.assert_array_equal(found["topk_labels"], search.predict_topk(X, k))
        assert metadata(exported)["C"] == str(chosen.C)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "cosine"},
    ],
    ids=str,
)
def test_kernels(parameters, dtype):
    X, y = examples(dtype=dtype)
    model = KernelTopKClassifier("smooth_hinge", k=2, random_state=0, **parameters)
    model.fit(X[:100], NAMES[y[:100]])
    rows = X.astype(np.float32)
    check(model, answers(shortlist.to_onnx(model), rows), rows)


def test_precomputed_and_sparse_kernels():
    from scipy import sparse

    X, y = examples()
    K = (X @ X.T).astype(np.float64)
    model = KernelTopKClassifier("hinge", kernel="precomputed", random_state=0).fit(K, y)
    check(model, answers(shortlist.to_onnx(model), K.astype(np.float32)), K.astype(np.float32))
    X[np.abs(X) < 0.7] = 0
    model = KernelTopKClassifier("hinge", k=2, random_state=0).fit(sparse.csr_matrix(X), y)
    check(model, answers(shortlist.to_onnx(model), X), X)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_several_labels_answer_with_an_indicator(k):
    X, y = examples()
    Y = np.eye(6, dtype=int)[y] | np.eye(6, dtype=int)[(y + 1) % 6]
    model = TopKClassifier("smooth_hinge", k=2, random_state=0).fit(X, Y)
    found = answers(shortlist.to_onnx(model, k=k), X)
    assert found["label"].shape == Y.shape
    check(model, found, X, k)


def metadata(exported):
    return {entry.key: entry.value for entry in exported.metadata_props}


def test_metadata_tell_where_it_comes_from():
    X, y = examples()
    model = TopKClassifier("smooth_hinge", k=2, C=0.5, random_state=0).fit(X, y)
    model.feature_names_in_ = np.array([*"pqrs", "ü"], dtype=object)
    exported = shortlist.to_onnx(model, k=3)
    facts = metadata(exported)
    assert json.loads(facts.pop("feature_names")) == [*"pqrs", "ü"]
    assert facts == {
        "shortlist": shortlist.__version__,
        "shortlist_length": "3",
        "loss": "smooth_hinge",
        "k": "2",
        "C": "0.5",
        "variant": "alpha",
        "smoothing": "1.0",
    }
    assert (exported.producer_name, exported.producer_version) == (
        "shortlist",
        shortlist.__version__,
    )


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_operators_of_several_versions(opset):
    X, y = examples()
    model = KernelTopKClassifier("ova_logistic", random_state=0).fit(X, y)
    exported = shortlist.to_onnx(model, opset=opset)
    assert [entry.version for entry in exported.opset_import] == [opset]
    check(model, answers(exported, X), X)


def test_what_cannot_be_exported_is_explained():
    X, y = examples()
    with pytest.raises(NotFittedError):
        shortlist.to_onnx(TopKClassifier())
    with pytest.raises(TypeError, match=r"a LogisticRegression cannot be exported, only TopKClas"):
        shortlist.to_onnx(LogisticRegression().fit(X, y))
    model = TopKClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="k must lie between 1 and 6"):
        shortlist.to_onnx(model, k=7)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        shortlist.to_onnx(model, dtype="int8")
    with pytest.raises(ValueError, match=r"opset must be from 13 to \d+, got 12"):
        shortlist.to_onnx(model, opset=12)
    model.classes_ = np.array([0, 1, 2, 3, 4, 2**63], dtype=np.uint64)
    with pytest.raises(ValueError, match="labels of type uint64 have no place in ONNX"):
        shortlist.to_onnx(model)
    own = KernelTopKClassifier(kernel=lambda A, B: A @ B.T, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a Python function has no form in ONNX"):
        shortlist.to_onnx(own)


def test_a_graph_that_no_file_can_hold_is_refused(monkeypatch):
    X, y = examples()
    model = TopKClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr("shortlist.onnx.export._MAX_FILE_BYTES", 100)
    with pytest.raises(ValueError, match="an ONNX file holds 2 GiB"):
        shortlist.to_onnx(model)


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", ["onnx", "skl2onnx"])
def test_without_a_package_the_message_names_the_extra(package):
    done = run(f"import sys; sys.modules[{package!r}] = None; from shortlist import to_onnx")
    assert done.returncode != 0
    assert f"ImportError: shortlist.onnx needs {package}, which is not installed" in done.stderr
    assert "pip install 'shortlist[onnx]'" in done.stderr


def test_shortlist_does_not_load_onnx():
    done = run("import sys, shortlist; sys.exit('onnx' in sys.modules)")
    assert done.returncode == 0
