"""A fit that is refused, or that breaks off with an error, leaves the estimator as it was."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV

_rng = np.random.default_rng(0)
X = _rng.normal(size=(60, 4))
NUMBERS = np.arange(60) % 4
NAMES = np.array(["ant", "bee", "cat", "dog"])[NUMBERS]
INDICATOR = np.eye(4, dtype=int)[NUMBERS]
# Fewer features and other labels than those of the first fit.
NARROW = X[:, :3]

LINEAR = TopKClassifier("smooth_hinge", k=2, random_state=0)
KERNEL = KernelTopKClassifier("smooth_hinge", k=2, random_state=0)
SEARCH = TopKClassifierCV(Cs=[0.1], ks=(1, 2), cv=3, max_extensions=0, random_state=0)


class _Broken(Exception):
    pass


def _break_off(progress):
    raise _Broken("the user's own")


def _must_not_be_told(progress):
    pytest.fail("training had begun")


REFUSED = {
    "validation-columns": (LINEAR, (NARROW, NAMES), {"X_val": X, "y_val": NAMES}, "4 features"),
    "validation-half": (LINEAR, (NARROW, NAMES), {"X_val": NARROW}, "go together"),
    "validation-length": (LINEAR, (X, NAMES), {"X_val": X, "y_val": NAMES[:5]}, "inconsistent"),
    "validation-kind": (
        LINEAR,
        (X, NAMES),
        {"X_val": X, "y_val": NUMBERS, "callback": _must_not_be_told},
        "y_val holds numbers but labels holds text",
    ),
    "validation-missing": (
        LINEAR,
        (X, NUMBERS),
        {"X_val": X, "y_val": np.where(NUMBERS, NUMBERS, np.nan), "callback": _must_not_be_told},
        "y_val contains missing",
    ),
    "validation-indicator": (LINEAR, (X, INDICATOR), {"X_val": X, "y_val": NAMES}, "indicator"),
    "weights": (LINEAR, (NARROW, NAMES, np.zeros(60)), {}, "weight"),
    "callback": (LINEAR, (NARROW, NAMES), {"callback": _break_off}, "the user's own"),
    "kernel-weights": (KERNEL, (NARROW, NAMES, np.zeros(60)), {}, "weight"),
    "kernel-scale": (KERNEL, (1e200 * NARROW, NAMES), {}, "infinity"),
    "kernel-callback": (KERNEL, (NARROW, NAMES), {"callback": _break_off}, "the user's own"),
    "search-columns": (SEARCH, (NARROW, NAMES), {"X_val": X, "y_val": NAMES}, "4 features"),
    "search-half": (SEARCH, (NARROW, NAMES), {"y_val": NAMES}, "X_val is missing"),
    "search-kind": (
        SEARCH,
        (NARROW, NAMES),
        {"X_val": NARROW, "y_val": NUMBERS},
        "y_val holds numbers but labels holds text",
    ),
}
each_refused = pytest.mark.parametrize(
    ("estimator", "data", "options", "match"), REFUSED.values(), ids=REFUSED
)


def _copy(estimator):
    return type(estimator)(**estimator.get_params())


def _changed(model, before):
    """Names of attributes that came, went or are other objects than before."""
    now, nothing = vars(model), object()
    return {
        name for name in {*before, *now} if now.get(name, nothing) is not before.get(name, nothing)
    }


@each_refused
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of squares that overflow
def test_an_earlier_model_stays_whole(estimator, data, options, match):
    model = _copy(estimator).fit(X, NUMBERS)
    before, answers = dict(vars(model)), model.predict_topk(X, 2)
    with pytest.raises((ValueError, TypeError, _Broken), match=match):
        model.fit(*data, **options)
    assert _changed(model, before) == set()
    np.testing.assert_array_equal(model.predict_topk(X, 2), answers)


@each_refused
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_unfitted_estimator_stays_unfitted(estimator, data, options, match):
    model = _copy(estimator)
    with pytest.raises((ValueError, TypeError, _Broken), match=match):
        model.fit(*data, **options)
    assert vars(model).keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_an_interrupted_search_keeps_the_earlier_one(monkeypatch):
    model = _copy(SEARCH).fit(X, NUMBERS)
    before = dict(vars(model))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TopKClassifier, "fit_path", interrupted)  # when all is measured and chosen
    with pytest.raises(KeyboardInterrupt):
        model.fit(NARROW, NAMES)
    assert _changed(model, before) == set()
