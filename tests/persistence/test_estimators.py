"""The classifiers, saved and loaded."""

import numpy as np
import pytest
import safetensors.numpy

import shortlist
from shortlist.persistence import load, save
from tests.model_files import refused, rewrite
from tests.persistence.fake import same

ESTIMATORS = {
    "linear": ("TopKClassifier", {"loss": "entropy", "k": 2, "C": 2.0, "random_state": 0}),
    "sparse duals": ("TopKClassifier", {"loss": "smooth_hinge", "k": 2, "fit_intercept": False}),
    "weighted": ("TopKClassifier", {"loss": "ova_logistic", "class_weight": "balanced"}),
    "kernel": ("KernelTopKClassifier", {"loss": "entropy", "k": 2}),
    "cross-validated": ("TopKClassifierCV", {"Cs": [0.1, 1.0], "ks": (1, 2), "cv": 2}),
}


def make(name):
    class_name, params = ESTIMATORS[name]
    return getattr(shortlist, class_name)(**params)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 20)
    return rng.normal(size=(80, 6)) + 2 * np.eye(6)[y], y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_predict_the_same_after_loading(name, problem, tmp_path):
    X, y = problem
    fitted = make(name).fit(X, y)
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert type(back) is type(fitted)
    assert same(back.get_params(), fitted.get_params())
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(back.predict_topk(X, k=3), fitted.predict_topk(X, k=3))
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert back.score(X, y) == fitted.score(X, y)
    # A second generation is the same file.
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [["ant", "bee", "cat", "düne"], [10, -3, 7, 99], [0.0, 1.0, 2.0, 3.0]],
    ids=["text", "int", "float"],
)
def test_estimators_keep_their_labels(labels, problem, tmp_path):
    X, y = problem
    fitted = make("linear").fit(X, np.array(labels)[y])
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert same(back.classes_, fitted.classes_)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))


def test_estimators_keep_booleans_feature_names_and_their_record(problem, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = problem
    frame = pandas.DataFrame(X, columns=[f"column {i}" for i in range(6)])
    fitted = make("linear").set_params(k=1).fit(frame, y > 1)
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert same(back.classes_, np.array([False, True]))
    assert back.feature_names_in_.tolist() == frame.columns.tolist()
    assert back.n_features_in_ == 6
    assert back.result_ == fitted.result_
    assert back.n_iter_ == fitted.n_iter_
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"column 0": "other"}))


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(make("linear"), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_array_that_does_not_fit_the_others_is_refused(name, problem, tmp_path):
    X, y = problem
    path = tmp_path / "m"
    save(make(name).fit(X, y), path)
    arrays = safetensors.numpy.load(path.read_bytes())
    largest = max(arrays, key=lambda key: arrays[key].size)
    arrays[largest] = np.ascontiguousarray(arrays[largest][:-1])
    rewrite(path, arrays)
    assert "does not hold a complete model" in refused(path)
