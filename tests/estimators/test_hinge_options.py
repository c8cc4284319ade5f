"""Margins, weights of ranks and the printed variant, as parameters of the classifiers."""

import numpy as np
import pytest
from sklearn.base import clone

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV, load, losses, save
from shortlist.errors import ModelFileError
from shortlist.losses import ldam_margins
from tests.solvers.problems import make_data

OPTIONS = {
    "ldam": {"margins": "ldam"},
    "classes": {"margins": np.array([1.0, 0.5, 2.0, 1.0])},
    "costs": {"margins": [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]},
    "ranks": {"rank_weights": (0.5, 0.3, 0.2), "variant": "beta"},
    "printed": {"k": 2, "variant": "printed"},
}


@pytest.fixture(scope="module")
def data():
    """Classes of different sizes, with names."""
    X, y = make_data(n=80, m=4)
    kept = np.r_[np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:5]]
    return X[kept], np.array(["a", "b", "c", "d"])[y[kept]]


def model(**options):
    return TopKClassifier("smooth_hinge", C=0.5, tol=1e-6, random_state=0, **options)


@pytest.mark.parametrize("name", OPTIONS)
def test_trained_cloned_saved_and_loaded(name, data, tmp_path):
    X, y = data
    fitted = model(**OPTIONS[name]).fit(X, y)
    assert fitted.result_.status == "converged"
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))
    for parameter, value in OPTIONS[name].items():
        assert type(getattr(back, parameter)) is type(value)
        np.testing.assert_array_equal(getattr(back, parameter), value)


def test_each_option_makes_another_model(data):
    X, y = data
    fits = [model().fit(X, y), *(model(**options).fit(X, y) for options in OPTIONS.values())]
    for i, one in enumerate(fits):
        for other in fits[:i]:
            assert np.abs(one.coef_ - other.coef_).max() > 1e-3


def test_ldam_counts_the_examples_and_their_weights(data):
    X, y = data
    counted = model(margins="ldam").fit(X, y)
    totals = np.unique(y, return_counts=True)[1]
    given = model(margins=ldam_margins(totals)).fit(X, y)
    np.testing.assert_array_equal(counted.coef_, given.coef_)
    # The rare class is found more often than without.
    rare = y == "d"
    assert (counted.predict(X)[rare] == "d").sum() >= (
        model().fit(X, y).predict(X)[rare] == "d"
    ).sum()
    weight = np.where(rare, 3.0, 1.0)
    weighted = model(margins="ldam").fit(X, y, sample_weight=weight)
    expected = model(margins=ldam_margins(totals * [1, 1, 1, 3])).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(weighted.coef_, expected.coef_)


def test_the_objective_is_that_of_the_loss(data):
    X, y = data
    codes = np.unique(y, return_inverse=True)[1]
    for options in (OPTIONS["costs"], OPTIONS["ranks"], OPTIONS["printed"]):
        fitted = model(**options).fit(X, y)
        loss = losses.get("smooth_hinge", **options)
        norm = np.sum(fitted.coef_**2) + np.sum(fitted.intercept_**2)
        values = loss.value(fitted.decision_function(X), codes)
        assert fitted.result_.primal == pytest.approx(0.5 * norm + 0.5 * values.sum(), rel=1e-12)


def test_warm_starts_know_whether_the_loss_is_the_same(data):
    X, y = data
    warm = model(margins=np.ones(4), warm_start=True).fit(X, y)
    first = warm.result_.epochs
    assert warm.set_params(margins=np.ones(4)).fit(X, y).result_.epochs < first
    cold = model(margins=np.full(4, 2.0)).fit(X, y)
    warm.set_params(margins=np.full(4, 2.0)).fit(X, y)
    assert warm.result_.primal == pytest.approx(cold.result_.primal, rel=2e-6)


def test_kernels_and_searches_take_them(data):
    X, y = data
    kernel = KernelTopKClassifier("smooth_hinge", margins="ldam")
    totals = np.unique(y, return_counts=True)[1]
    np.testing.assert_array_equal(kernel._problem(X, y, None)[0].loss.margins, ldam_margins(totals))
    search = TopKClassifierCV(
        "smooth_hinge", variant="beta", rank_weights=(2, 1), Cs=[0.1, 1.0], ks=(1, 2), cv=2
    ).fit(X, y)
    assert search.estimators_[1].rank_weights == (2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margins": "lda"}, r"margins must be 'ldam', numbers or None; got 'lda'"),
        ({"margins": [1.0, 2.0]}, r"margins are for 2 classes; there are 4"),
        ({"margins": "ldam", "loss": "entropy"}, r"margins='ldam' is for hinge and smooth_hinge"),
        ({"rank_weights": [4, 3, 2, 1]}, r"rank_weights may hold at most 3"),
        ({"variant": "printed", "loss": "entropy"}, r"variant must be 'alpha' or 'beta'"),
    ],
)
def test_what_does_not_fit_is_refused(options, message, data):
    with pytest.raises(ValueError, match=message):
        TopKClassifier(**{"loss": "hinge", **options}).fit(*data)


def test_an_indicator_of_several_labels_is_refused(data):
    X, y = data
    indicator = (y[:, None] == np.unique(y)).astype(int)
    for name in ("ldam", "ranks", "printed"):
        with pytest.raises(ValueError, match="one right label per example"):
            model(**OPTIONS[name]).fit(X, indicator)


def test_files_whose_options_do_not_fit_are_refused(data, tmp_path):
    fitted = model().fit(*data)
    for options in ({"margins": [1.0, 2.0]}, {"margins": {"a": 1}}, {"rank_weights": [1, 2]}):
        save(
            fitted.set_params(margins=None, rank_weights=None).set_params(**options), tmp_path / "m"
        )
        with pytest.raises(ModelFileError, match=r"margins|rank_weights"):
            load(tmp_path / "m")
