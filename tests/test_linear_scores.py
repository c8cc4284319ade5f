"""A saved linear model read for its scores only answers as the classifier does."""

import numpy as np
import pytest

from shortlist import TopKClassifier, load, save
from shortlist.errors import ModelFileError
from shortlist.persistence import LinearScores, load_scores
from tests.model_files import own_entry, rewrite
from tests.solvers.problems import make_data


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y = make_data()
    path = tmp_path_factory.mktemp("model") / "m"
    names = np.array([f"class {label}" for label in y])
    save(TopKClassifier(k=2, C=2.0, random_state=0).fit(X, names), path, data={"note": "here"})
    return path


def test_the_same_answers(saved):
    X, _ = make_data()
    model, scores = load(saved), load_scores(saved)
    assert isinstance(scores, LinearScores)
    np.testing.assert_array_equal(scores.decision_function(X), model.decision_function(X))
    for found, expected in zip(
        scores.predict_topk(X, 3, return_scores=True),
        model.predict_topk(X, 3, return_scores=True),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    for name in ("classes_", "multilabel_", "n_features_in_", "loss", "k", "C", "data_"):
        np.testing.assert_array_equal(getattr(scores, name), getattr(model, name))


def test_scores_of_another_kind_take_the_whole_model(tmp_path):
    X, y = make_data()
    save(TopKClassifier(normalize="l2", random_state=0).fit(X, y), tmp_path / "m")
    model = load_scores(tmp_path / "m")
    assert isinstance(model, TopKClassifier)
    np.testing.assert_array_equal(model.predict(X), load(tmp_path / "m").predict(X))


@pytest.mark.parametrize(
    ("where", "change", "message"),
    [
        ("params", {"k": 99}, "k is 99"),
        ("params", {"loss": 3}, "loss is 3"),
        ("params", {"C": -1.0}, "C is -1.0"),
        ("meta", {"n_features_in": 3}, "coef has shape"),
        ("meta", {"multilabel": True}, "the classes of several labels are not 0, 1, 2"),
    ],
)
def test_an_edited_file_is_refused(saved, tmp_path, where, change, message):
    path = tmp_path / "edited"
    path.write_bytes(saved.read_bytes())
    state = own_entry(path)["state"]
    (state["meta"] if where == "meta" else state["meta"]["params"]).update(change)
    rewrite(path, state=state)
    with pytest.raises(ModelFileError, match=message):
        load_scores(path)
