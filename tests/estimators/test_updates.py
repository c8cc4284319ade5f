"""Rows and classes that come and go: the model of a fit on the data as it is then."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import shortlist
from shortlist import TopKClassifier
from shortlist.datasets import load_letter
from shortlist.estimators import updates
from shortlist.solvers import memory
from tests.estimators.objectives import certified_distance, named_data

LOSSES = [
    {"loss": "entropy"},
    {"loss": "entropy", "k": 2},
    {"loss": "hinge"},
    {"loss": "smooth_hinge", "k": 2, "variant": "beta"},
    {"loss": "ova_logistic"},
]


@pytest.fixture(scope="module")
def data():
    return named_data(n=200)


def check(model, X, y, weight=None):
    """The model, and what is recorded of it, are those of a fit on X and y."""
    fresh = TopKClassifier(**model.get_params()).fit(X, y, weight)
    assert model.result_.status == "converged"
    np.testing.assert_array_equal(model.classes_, fresh.classes_)
    assert model.result_.dual <= fresh.result_.primal
    assert fresh.result_.dual <= model.result_.primal
    apart = np.linalg.norm(model.coef_ - fresh.coef_)
    assert apart <= certified_distance(model, fresh)
    return fresh


def test_an_update_takes_fewer_epochs_than_a_fit():
    letter = load_letter()
    X, y = letter.X_train[:2000].astype(float), letter.y_train[:2000]
    model = TopKClassifier(random_state=0).fit(X[:1900], y[:1900])
    fresh = check(model.update(X[1900:], y[1900:]), X, y)
    assert model.result_.epochs <= 0.5 * fresh.result_.epochs


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "entropy"},
        {"loss": "smooth_hinge"},
        {"loss": "smooth_hinge", "C": 10.0},
        {"loss": "hinge", "C": 0.1},
        {"loss": "ova_hinge", "C": 0.1},
        {"loss": "ova_logistic"},
    ],
    ids=str,
)
def test_a_few_rows_take_less_than_half_of_a_fit(params):
    """One row in a hundred is added to a small set, in which all classes overlap."""
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(40, 64)), rng.integers(0, 40, 1500)
    X = (centres[y] + 1.5 * rng.normal(size=(1500, 64))) / 8
    model = TopKClassifier(**params, random_state=0).fit(X[:-15], y[:-15])
    fresh = check(model.update(X[-15:], y[-15:]), X, y)
    assert model.result_.epochs <= 0.5 * fresh.result_.epochs
    # As many rows leave.
    fewer = check(model.update(removed=np.arange(15)), X[15:], y[15:])
    assert model.result_.epochs <= 0.5 * fewer.result_.epochs


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_rows_come_and_go(params, kind, data):
    X, y = data
    model = TopKClassifier(**params, tol=1e-4, random_state=0).fit(kind(X[:190]), y[:190])
    check(model.update(X[190:], y[190:]), kind(X), y)
    # Twelve rows go, and two of them come back with other labels.
    gone, other = np.arange(0, 200, 17), np.roll(y, 1)[[0, 17]]
    model.update(X[[0, 17]], other, removed=gone)
    stay = np.delete(np.arange(200), gone)
    check(model, kind(np.r_[X[stay], X[[0, 17]]]), np.r_[y[stay], other])


@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_classes_come_and_go(params, data):
    X, y = data
    known = y != "bee"  # in the middle of the sorted labels
    model = TopKClassifier(**params, tol=1e-4, random_state=0).fit(X[known], y[known])
    model.update(X[~known], y[~known])
    check(model, np.r_[X[known], X[~known]], np.r_[y[known], y[~known]])
    model.update(removed=np.arange(len(y)) >= known.sum())
    check(model, X[known], y[known])


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge"])
def test_a_new_class_begins_closer_than_a_fit(loss):
    """The duals of the old classes' examples are kept, with room for the new class."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 20)
    X = random.normal(size=(30, 50))[y] + random.normal(size=(600, 50))
    X /= np.linalg.norm(X, axis=1)[:, None]
    known = y != 7
    model = TopKClassifier(loss, C=10.0, tol=1e-4, random_state=0).fit(X[known], y[known])
    model.update(X[~known], y[~known])
    fresh = check(model, np.r_[X[known], X[~known]], np.r_[y[known], y[~known]])
    assert model.result_.epochs <= fresh.result_.epochs
    # Before the first epoch the bound is better than a fit's after one.
    assert model.result_.history[0].epoch == 0 < fresh.result_.history[0].epoch
    assert model.result_.history[0].dual > fresh.result_.history[0].dual


@pytest.mark.parametrize(
    "params",
    [{"loss": "entropy"}, {"loss": "smooth_hinge"}, {"loss": "smooth_hinge", "k": 5}],
    ids=str,
)
def test_shares_of_a_class_that_goes_are_given_back(params):
    """All examples had a share of it, or many; they do not begin at zero again."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 20)
    X = random.normal(size=(30, 50))[y] + random.normal(size=(600, 50))
    X /= np.linalg.norm(X, axis=1)[:, None]
    known = y != 7
    model = TopKClassifier(**params, tol=1e-4, random_state=0).fit(X, y)
    model.update(removed=~known)
    fresh = check(model, X[known], y[known])
    assert model.result_.epochs <= 0.5 * fresh.result_.epochs
    optimum = fresh.result_.primal
    assert model.result_.history[0].epoch == 0
    assert model.result_.history[0].dual > 0.9 * optimum


def test_far_from_solved_an_update_begins_with_visits():
    """Wrong labels where C is large: the last weights are worse than those of a few epochs."""
    random = np.random.default_rng(0)
    y = random.integers(0, 40, 900)
    X = random.normal(size=(40, 64))[y] + 2.0 * random.normal(size=(900, 64))
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = TopKClassifier("softmax", C=100.0, random_state=0).fit(X, y)
    assert model.result_.by_descent
    other = np.roll(y[:9], 1)
    model.update(X[:9], other, removed=np.arange(9))
    assert model.result_.solver.startswith("sdca")
    fresh = check(model, np.r_[X[9:], X[:9]], np.r_[y[9:], other])
    assert model.result_.epochs <= fresh.result_.epochs
    # With few rows removed the last weights are close: a descent goes on from them.
    model.update(removed=np.arange(3))
    assert model.result_.solver == "l-bfgs"


def test_weights_parameters_and_descents(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = TopKClassifier(C=100.0, class_weight="balanced", random_state=0).fit(X[:190], y[:190])
    model.update(X[190:], y[190:], weight[190:])
    check(model, X, y, np.r_[np.ones(190), weight[190:]])
    model.set_params(C=1.0, loss="hinge").update()
    check(model, X, y, np.r_[np.ones(190), weight[190:]])
    free = TopKClassifier(fit_intercept="free", random_state=0).fit(X[:190], y[:190])
    check(free.update(X[190:], y[190:]), X, y)


def test_sparse_duals_are_carried_over(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(memory, "MAX_DENSE_DUAL_BYTES", 1)
    model = TopKClassifier("hinge", tol=1e-4, random_state=0).fit(X[:190], y[:190])
    check(model.update(X[190:], y[190:], removed=[3, 5]), *(np.delete(a, [3, 5], 0) for a in data))


def test_what_is_kept(data, monkeypatch, tmp_path):
    """Small data, or any if asked; nothing goes into pickles and files."""
    X, y = data
    model = TopKClassifier(random_state=0).fit(X, y)
    copies = [pickle.loads(pickle.dumps(model))]
    shortlist.save(model, tmp_path / "model")
    copies.append(shortlist.load(tmp_path / "model"))
    monkeypatch.setattr(updates, "MAX_BYTES_KEPT_UNASKED", 1)
    copies.append(TopKClassifier(random_state=0).fit(X, y))
    for copy in copies:
        with pytest.raises(ValueError, match="has not kept"):
            copy.update(X, y)
    kept = TopKClassifier(warm_start=True, random_state=0).fit(X, y)
    assert np.shares_memory(kept._last.rows.X, X)
    assert kept.update(removed=[0]).result_.status == "converged"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"X_new": np.ones((1, 5))}, "go together"),
        ({"X_new": np.ones((1, 4)), "y_new": ["ant"]}, "5 features"),
        ({"X_new": np.ones((2, 5)), "y_new": ["ant"]}, "inconsistent numbers"),
        ({"X_new": np.ones((1, 5)), "y_new": [1]}, "labels were of type <U3"),
        ({"removed": [200]}, "from 0 to 199; got 200"),
        ({"removed": [0.5]}, "numbers of rows, or be a mask of 200"),
        ({"removed": np.ones(200, bool)}, "at least 2 rows; this update leaves 0"),
    ],
)
def test_what_cannot_be_leaves_the_model_as_it_was(given, match, data):
    X, y = data
    model = TopKClassifier(random_state=0).fit(X, y)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=match):
        model.update(**given)
    assert vars(model) == before
    assert model.update().n_iter_ == 1
