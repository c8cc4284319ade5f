"""Pipelines of scikit-learn's scalers and a classifier, saved as data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from shortlist import TopKClassifier, load, save
from shortlist.conformal import ConformalShortlist
from tests.model_files import own_entry, refused, rewrite

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler((-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(with_centering=False),
    Normalizer("l1"),
    "passthrough",
]


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(3, [1, 10, 0.1], size=(60, 3))
    return X, np.array(["a", "b", "c"])[(X[:, 1] > 5).astype(int) + (X[:, 0] > 4)]


@pytest.fixture
def path(data, tmp_path):
    save(make_pipeline(StandardScaler(), TopKClassifier(random_state=0)).fit(*data), tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("named", [False, True])
def test_what_is_loaded_answers_as_what_was_saved(scaler, named, data, tmp_path):
    X, y = data
    X = pd.DataFrame(X, columns=["u", "v", "w"]) if named else X.astype(np.float32)
    pipeline = Pipeline([("first", scaler), ("last", TopKClassifier(random_state=0))]).fit(X, y)
    save(pipeline, tmp_path / "m", data={"note": 1})
    loaded = load(tmp_path / "m")
    assert type(loaded) is Pipeline
    assert str(loaded) == str(pipeline)
    assert loaded.data_ == {"note": 1}
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    if scaler != "passthrough":
        before, after = vars(pipeline[0]), vars(loaded[0])
        assert before.keys() == after.keys()
        for name in before:
            np.testing.assert_array_equal(before[name], after[name])


def test_sets_around_a_pipeline_are_saved_too(data, tmp_path):
    X, y = data
    pipeline = make_pipeline(MinMaxScaler(), Normalizer(), TopKClassifier(random_state=0))
    sets = ConformalShortlist(pipeline.fit(X[:30], y[:30])).conformalize(X[30:], y[30:])
    save(sets, tmp_path / "m")
    same = load(tmp_path / "m").predict_set(X) != sets.predict_set(X)
    assert same.nnz == 0


def test_other_steps_are_pointed_to_skops(data, tmp_path):
    class Own(StandardScaler):
        pass

    Own.__name__ = "StandardScaler"
    for step in (PCA(), Own()):
        pipeline = make_pipeline(step, TopKClassifier(random_state=0)).fit(*data)
        with pytest.raises(TypeError, match=r"a Pipeline with a .* cannot be saved.*skops\.io"):
            save(pipeline, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def scaler_of(state):
    return state["meta"]["steps"][0]


def zero_scale(state, arrays):
    arrays[scaler_of(state)["fitted"]["scale_"]["$array"]["name"]][1] = 0


def no_scale(state, arrays):
    scaler_of(state)["fitted"]["scale_"] = {"$float": "nan"}


@pytest.mark.parametrize(
    "edit",
    [
        zero_scale,
        no_scale,
        lambda state, _: scaler_of(state).update(estimator="FunctionTransformer"),
        lambda state, _: scaler_of(state)["params"].update(with_mean="yes"),
        lambda state, _: scaler_of(state)["params"].update(func="os.system"),
        lambda state, _: scaler_of(state)["fitted"].update(transform=1),
        lambda state, _: scaler_of(state)["fitted"].update(n_features_in_=2),
        lambda state, _: scaler_of(state)["fitted"].update(n_samples_seen_="many"),
        lambda state, _: scaler_of(state).update(name="topkclassifier"),
        lambda state, _: state["meta"].update(last=["topkclassifier", None]),
        lambda state, _: state["meta"].update(verbose=3),
    ],
)
def test_files_that_fit_could_not_have_made_are_refused(edit, path):
    import safetensors.numpy

    state = own_entry(path)["state"]
    arrays = {
        name: array.copy() for name, array in safetensors.numpy.load(path.read_bytes()).items()
    }
    edit(state, arrays)
    rewrite(path, arrays, state=state)
    assert refused(path)
