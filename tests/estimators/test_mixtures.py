"""Classifiers with a mixture over k: trained by descents, certified by the gradient."""

import numpy as np
import pytest

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV, losses
from tests.solvers.problems import make_data

NAMES = ("mixed_smooth_hinge", "mixed_entropy")


@pytest.fixture(scope="module")
def data():
    return make_data(n=300, d=6, m=6)


def gap_by_hand(model, X, y, C):
    """P(W) and 1/2 |grad P(W)|^2, the intercept being the weights of a constant feature."""
    loss = model.make_loss()
    scores = X @ model.coef_.T + model.intercept_
    value, v = loss.value_and_gradient(scores, y)
    W, ones = np.c_[model.coef_, model.intercept_], np.ones((len(X), 1))
    gradient = W + C * v.T @ np.hstack([X, ones])
    return 0.5 * (W**2).sum() + C * value.sum(), 0.5 * (gradient**2).sum()


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_is_half_the_squared_gradient(name, variant, data):
    X, y = data
    model = TopKClassifier(name, k=3, variant=variant, C=0.5, tol=1e-6, random_state=0).fit(X, y)
    result = model.result_
    assert result.status == "converged"
    primal, gap = gap_by_hand(model, X, y, 0.5)
    assert result.primal == pytest.approx(primal, rel=1e-12)
    assert result.relative_gap <= 1e-6
    # An earlier evaluation may have had a better bound.
    assert result.gap <= gap * (1 + 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_one_list_of_lengths_beats_each_part_at_the_mixture(name, data):
    """The mixture's optimum has the least mean of the losses it is made of."""
    X, y = data
    base = name.removeprefix("mixed_")
    options = {"C": 0.1, "tol": 1e-7, "random_state": 0}
    mixed = TopKClassifier(name, k=3, **options).fit(X, y)
    objective = gap_by_hand(mixed, X, y, 0.1)[0]
    for k in (1, 2, 3):
        alone = TopKClassifier(base, k=k, **options).fit(X, y)
        alone.set_params(loss=name, k=3)
        assert gap_by_hand(alone, X, y, 0.1)[0] > objective


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [None, "8GB"])
def test_paths_warm_starts_updates_and_files(name, limit, data, tmp_path):
    X, y = data
    options = {"k": 2, "tol": 1e-5, "random_state": 0, "memory_limit": limit}
    cold = TopKClassifier(name, C=1.0, **options).fit(X, y)
    path = TopKClassifier(name, **options).fit_path(X, y, Cs=[0.1, 1.0])
    assert path[-1].result_.status == "converged"
    assert path[-1].result_.primal == pytest.approx(cold.result_.primal, rel=2e-5)
    warm = TopKClassifier(name, C=0.1, warm_start=True, **options).fit(X[:200], y[:200])
    warm.update(X[200:], y[200:])
    warm.set_params(C=1.0).fit(X, y)
    assert warm.result_.primal == pytest.approx(cold.result_.primal, rel=2e-5)
    shortlist.save(warm, tmp_path / "model")
    back = shortlist.load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict_topk(X, 2), warm.predict_topk(X, 2))
    assert back.fit(X, y).result_.primal == pytest.approx(cold.result_.primal, rel=2e-5)


def test_training_goes_on_from_a_checkpoint(data, tmp_path):
    X, y = data
    options = {"k": 3, "C": 10.0, "tol": 1e-6, "random_state": 0}
    whole = TopKClassifier("mixed_entropy", **options).fit(X, y)
    options |= {"checkpoint": tmp_path / "fit", "checkpoint_every": 0.0}
    cut = TopKClassifier("mixed_entropy", **options)
    cut.fit(X, y, callback=lambda progress: progress.epoch >= 3)
    assert cut.result_.status == "stopped"
    rest = TopKClassifier("mixed_entropy", **options).fit(X, y)
    assert rest.result_.status == "converged"
    assert rest.result_.primal == pytest.approx(whole.result_.primal, rel=3e-6)
    assert rest.result_.epochs >= cut.result_.epochs


def test_a_search_chooses_c_for_a_mixture(data):
    X, y = data
    search = TopKClassifierCV("mixed_entropy", k=3, Cs=[0.01, 0.1, 1.0], ks=(1, 3), cv=3)
    search.set_params(random_state=0).fit(X, y)
    assert search.score(X, y) > 0.5


def test_shares_of_choice(data):
    X, y = data
    weights = losses.mixture_weights({1: 0.25, 5: 0.75})
    model = TopKClassifier("mixed_entropy", k=2, rank_weights=weights, random_state=0).fit(X, y)
    assert model.result_.status == "converged"
    assert model.predict_topk(X).shape == (len(X), 2)


@pytest.mark.parametrize("name", NAMES)
def test_what_needs_a_conjugate_is_refused(name, data):
    X, y = data
    with pytest.raises(ValueError, match=r"trained by descents and has no kernel version"):
        KernelTopKClassifier(name, k=2).fit(X, y)
    with pytest.raises(ValueError, match=r"takes a loss with a conjugate; mixed_"):
        TopKClassifier(name, k=2, fit_intercept="free").fit(X, y)
