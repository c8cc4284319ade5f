"""Warm starts: at once on the same problem, safe on any other."""

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array

import shortlist
from shortlist import TopKClassifier
from shortlist.solvers import memory
from tests.estimators.objectives import NAMES, named_data

LOSSES = [
    {"loss": "entropy"},
    {"loss": "entropy", "k": 2},
    {"loss": "hinge"},
    {"loss": "smooth_hinge", "k": 2, "variant": "beta"},
    {"loss": "ova_logistic"},
]


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_the_same_problem_is_solved_already(params, kind, data):
    X, y = data
    model = TopKClassifier(**params, warm_start=True, random_state=0).fit(kind(X), y)
    first, scores = model.result_, model.decision_function(X)
    assert first.epochs >= 1
    again = model.fit(kind(X), y).result_
    assert (again.status, again.epochs) == ("converged", 0)
    assert again.primal == pytest.approx(first.primal, rel=1e-12)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_a_tighter_tolerance_goes_on_from_there(data):
    X, y = data
    cold = TopKClassifier(tol=1e-8, random_state=0).fit(X, y).result_
    model = TopKClassifier(tol=1e-4, warm_start=True, random_state=0).fit(X, y)
    warm = model.set_params(tol=1e-8).fit(X, y).result_
    assert warm.status == "converged"
    assert warm.epochs < cold.epochs
    assert warm.primal == pytest.approx(cold.primal, rel=2e-8)


def test_without_it_training_starts_anew(data):
    model = TopKClassifier(random_state=0).fit(*data)
    first = model.coef_
    np.testing.assert_array_equal(model.fit(*data).coef_, first)
    assert model.result_.epochs >= 1


def identity(X, y):
    return X, y, None


CHANGES = {
    "C": (identity, {"C": 30.0}),
    "smaller C": (identity, {"C": 0.01}),
    "loss": (identity, {"loss": "hinge"}),
    "one-vs-all": (identity, {"loss": "ova_logistic"}),
    "k": (identity, {"k": 2}),
    "variant and k": (identity, {"k": 2, "variant": "beta"}),
    "intercept": (identity, {"fit_intercept": False}),
    "intercept_scaling": (identity, {"intercept_scaling": 10.0}),
    "class_weight": (identity, {"class_weight": "balanced"}),
    "weights": (lambda X, y: (X, y, np.arange(len(y)) % 3), {}),
    "examples": (lambda X, y: (X[::-1] * 2 + 1, y, None), {}),
    "labels": (lambda X, y: (X, np.roll(y, 1), None), {}),
    "names of labels": (lambda X, y: (X, np.char.add("a ", y), None), {}),
    "fewer classes": (lambda X, y: (X, np.where(y == "dog", "cat", y), None), {}),
    "more classes": (lambda X, y: (X, np.r_[["wolf"], y[1:]], None), {}),
    "fewer examples": (lambda X, y: (X[:50], y[:50], None), {}),
    "more features": (lambda X, y: (np.c_[X, X[:, :2] ** 2], y, None), {}),
    "precision": (lambda X, y: (X.astype(np.float32), y, None), {}),
    "storage": (lambda X, y: (csr_array(X), y, None), {}),
    "order": (lambda X, y: (np.asfortranarray(X), y, None), {}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge"])
def test_any_change_leads_to_the_optimum_of_the_new_problem(change, loss, data):
    X, y = data
    alter, params = CHANGES[change]
    model = TopKClassifier(loss, warm_start=True, random_state=0).fit(X, y)
    X, y, weight = alter(X, y)
    settings = {"loss": loss, "tol": 1e-5, "max_epochs": 50_000, "random_state": 0, **params}
    model.set_params(**settings).fit(X, y, weight)
    cold = TopKClassifier(**settings).fit(X, y, weight)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=1.1e-5)
    assert model.coef_.dtype == cold.coef_.dtype
    assert model.classes_.tolist() == cold.classes_.tolist()
    assert model.coef_.shape == cold.coef_.shape


@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_duals_of_other_labels_certify_nothing(params, data):
    """They are not feasible: a gap computed from them could be anything, even negative."""
    X, y = data
    shuffled = y[::-1]  # labels that are harder to learn, so that their duals promise more
    model = TopKClassifier(**params, tol=1e-6, warm_start=True, random_state=0).fit(X, shuffled)
    model.set_params(tol=0.5).fit(X, y)
    optimum = TopKClassifier(**params, tol=1e-6, random_state=0).fit(X, y).result_.primal
    assert all(entry.dual <= optimum for entry in model.result_.history)
    assert model.result_.primal * 0.5 <= optimum


def test_after_an_interrupt_training_goes_on(data):
    X, y = data

    def stop_at_3(progress):
        if progress.epoch >= 3:
            raise KeyboardInterrupt

    settings = {"tol": 1e-9, "warm_start": True, "random_state": 0}
    model = TopKClassifier(**settings).fit(X, y, callback=stop_at_3)
    assert model.result_.status == "interrupted"
    gap = model.result_.gap
    model.fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.history[0].gap <= gap * (1 + 1e-9)


@pytest.mark.parametrize("lists", [False, True])
def test_a_model_mapped_from_a_file_starts_anew(lists, data, tmp_path, monkeypatch):
    """As joblib hands large models to its workers: their duals cannot be written to."""
    if lists:
        monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", 0)  # keep even a few duals as lists
    X, y = data
    model = TopKClassifier("hinge", warm_start=True, random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    back = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.set_params(C=2.0).fit(X, y).result_.status == "converged"
    assert back.fit(X, y).result_.epochs == 0  # and goes on from there


def test_a_model_kept_from_an_earlier_fit_does_not_change(data):
    X, y = data
    model = TopKClassifier(warm_start=True, random_state=0).fit(X, y)
    coef, intercept = model.coef_, model.intercept_
    before = coef.copy(), intercept.copy()
    model.set_params(C=100.0).fit(X, y)
    assert not np.array_equal(model.coef_, coef)
    np.testing.assert_array_equal(coef, before[0])
    np.testing.assert_array_equal(intercept, before[1])


def test_the_truncated_entropy_starts_from_the_duals_of_its_softmax(data):
    X, y = data
    model = TopKClassifier("truncated_entropy", k=2, warm_start=True, random_state=0).fit(X, y)
    first = model.result_
    again = model.fit(X, y).result_
    assert again.epochs < first.epochs
    # The start is softmax's solution to within tol, and so is what follows from it.
    assert again.primal == pytest.approx(first.primal, rel=1e-3)
    assert model.classes_.tolist() == NAMES.tolist()


@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_a_loaded_model_goes_on_from_its_weights(params, data, tmp_path):
    X, y = data
    first = TopKClassifier(**params, tol=1e-4, random_state=0).fit(X, y)
    shortlist.save(first, tmp_path / "model")
    loaded = shortlist.load(tmp_path / "model").set_params(warm_start=True, tol=1e-3)
    again = loaded.fit(X, y).result_
    assert again.status == "converged"
    if params["loss"] != "hinge":  # which has no gradients to make duals of
        assert again.epochs <= 1
    other = shortlist.load(tmp_path / "model").set_params(warm_start=True, C=3.0)
    cold = TopKClassifier(**params, C=3.0, tol=1e-4, random_state=0).fit(X, y)
    assert other.fit(X, y).result_.primal == pytest.approx(cold.result_.primal, rel=2e-4)


def test_a_loaded_model_with_other_classes_starts_anew(data, tmp_path):
    X, y = data
    shortlist.save(TopKClassifier(random_state=0).fit(X, y), tmp_path / "model")
    renamed = np.char.add("new ", y.astype(str))
    for labels, params in ((renamed, {}), (y, {"k": 2})):
        loaded = shortlist.load(tmp_path / "model").set_params(warm_start=True, **params)
        anew = TopKClassifier(**params, random_state=0).fit(X, labels)
        np.testing.assert_array_equal(loaded.fit(X, labels).coef_, anew.coef_)
