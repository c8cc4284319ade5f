"""Bad parameters and bad data are refused in the user's terms, before any training."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from shortlist.losses import registry
from tests.estimators.objectives import named_data


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"loss": "logistic"}, ValueError, "unknown loss 'logistic'; choose one of entropy, hinge"),
        ({"loss": None}, TypeError, "must be given by name"),
        ({"loss": "softmax", "k": 2}, ValueError, "softmax is the entropy loss at k=1; got k=2"),
        ({"k": 0}, ValueError, "k must be 1 or larger; got 0"),
        ({"k": 2.0}, TypeError, "k must be an integer; got 2.0"),
        ({"k": True}, TypeError, "k must be an integer; got True"),
        ({"k": 4}, ValueError, r"here 3; got k=4 with 4 classes"),
        ({"variant": "gamma"}, ValueError, "variant must be 'alpha' or 'beta'; got 'gamma'"),
        ({"smoothing": -1}, ValueError, "smoothing must be a finite number, zero or larger"),
        ({"smoothing": np.inf}, ValueError, "smoothing must be a finite number"),
        ({"C": 0}, ValueError, "C must be a positive finite number; got 0"),
        ({"C": -1.0}, ValueError, "C must be a positive finite number; got -1.0"),
        ({"C": np.nan}, ValueError, "C must be a positive finite number; got nan"),
        ({"C": np.inf}, ValueError, "C must be a positive finite number; got inf"),
        ({"C": "1"}, ValueError, "C must be a positive finite number; got '1'"),
        ({"C": None}, ValueError, "C must be a positive finite number; got None"),
        ({"C": True}, ValueError, "C must be a positive finite number; got True"),
        ({"tol": 0}, ValueError, "tol must be a positive finite number; got 0"),
        ({"tol": "small"}, ValueError, "tol must be a positive finite number; got 'small'"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be an integer, 1 or larger; got 0"),
        ({"max_epochs": 1.5}, ValueError, "max_epochs must be an integer, 1 or larger; got 1.5"),
        ({"max_epochs": True}, ValueError, "max_epochs must be an integer"),
        ({"intercept_scaling": 0}, ValueError, "intercept_scaling must be a positive finite"),
        ({"intercept_scaling": -2}, ValueError, "intercept_scaling must be a positive finite"),
        ({"intercept_scaling": 1e200}, ValueError, "too large to be squared; got 1e.200"),
        ({"class_weight": "even"}, ValueError, "class_weight"),
        ({"class_weight": {"ant": -1.0}}, ValueError, "zero or larger; got -1.0 for 'ant'"),
        ({"class_weight": {"ant": np.nan}}, ValueError, "finite numbers.*got nan for 'ant'"),
        ({"class_weight": {"ant": "2"}}, ValueError, "finite numbers.*got '2' for 'ant'"),
        ({"class_weight": {"wolf": 2.0}}, ValueError, "class_weight names 'wolf', which is not"),
        ({"class_weight": [1, 2, 3, 4]}, ValueError, "class_weight"),
        ({"random_state": "dice"}, ValueError, "dice"),
        ({"C": 1e308, "class_weight": {"ant": 100.0}}, ValueError, "overflows"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params, error, match, data):
    with pytest.raises(error, match=match):
        TopKClassifier(**params).fit(*data)


def test_a_parameter_that_is_not_used_is_not_checked(data):
    TopKClassifier(fit_intercept=False, intercept_scaling=0).fit(*data)


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X, y: (np.where(X > 1, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X > 1, np.inf, X), y), "infinity"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (X[0], y), "Expected 2D array"),
        (lambda X, y: (X[None], y), "dim 3"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X.astype(complex) * 1j, y), "Complex data"),
        (lambda X, y: (X, np.full(len(y), "ant")), "at least 2 classes; y holds only one class"),
        (lambda X, y: (X, np.linspace(0, 1, len(y))), "continuous"),
        (lambda X, y: (X, np.r_[np.nan, np.zeros(len(y) - 1)]), "NaN"),
        (lambda X, y: (X, None), "y"),
        (
            lambda X, y: (X, np.array(["a", 1, None] * 20, dtype=object)),
            "of one type; y holds NoneType, int, str",
        ),
        (lambda X, y: (X, y.astype("S")), "labels represented as bytes is not supported"),
    ],
    ids=[
        "NaN",
        "inf",
        "empty",
        "one example",
        "no features",
        "vector",
        "cube",
        "lengths",
        "complex",
        "one class",
        "continuous",
        "NaN label",
        "no labels",
        "mixed labels",
        "bytes",
    ],
)
def test_bad_data_is_said_to_be_so(spoil, match, data):
    with pytest.raises((ValueError, TypeError), match=match):
        TopKClassifier().fit(*spoil(*data))


def test_weights_of_absent_classes_are_ignored(data):
    """As when a fold of cross-validation lacks a class."""
    X, y = data
    weights = {"ant": 1.0, "bee": 2.0, "cat": 3.0, "dog": 4.0}
    few = np.isin(y, ["ant", "bee"])
    model = TopKClassifier(class_weight=weights, random_state=0).fit(X[few], y[few])
    alike = TopKClassifier(class_weight={"bee": 2.0}, random_state=0).fit(X[few], y[few])
    np.testing.assert_array_equal(model.coef_, alike.coef_)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("scale", "dtype", "C"),
    [
        (1e160, np.float64, 1.0),
        (1e20, np.float32, 1.0),
        (1.0, np.float32, 1e50),
        (1e10, "f4", 1e30),
    ],
)
def test_numbers_that_overflow_are_refused(scale, dtype, C, kind, data):
    X, y = data
    X = kind((X * scale).astype(dtype))
    with pytest.raises(ValueError, match="cannot hold; scale the features, lower C or use float64"):
        TopKClassifier(C=C).fit(X, y)
    with pytest.raises(ValueError, match="cannot hold"):
        TopKClassifier().fit_path(X, y, [1e-3, C])


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (lambda n: np.zeros(n), "zero"),
        (lambda n: np.r_[-1.0, np.ones(n - 1)], "[Nn]egative"),
        (lambda n: np.r_[np.nan, np.ones(n - 1)], "NaN"),
        (lambda n: np.ones(n - 1), "sample_weight.shape"),
        (lambda n: np.ones((n, 2)), "1D array or scalar"),
    ],
    ids=["zero", "negative", "NaN", "short", "matrix"],
)
def test_bad_weights_are_said_to_be_so(weight, match, data):
    X, y = data
    with pytest.raises(ValueError, match=match):
        TopKClassifier().fit(X, y, weight(len(y)))


def test_validation_data_come_in_pairs_of_the_same_length(data):
    X, y = data
    for half in ({"X_val": X}, {"y_val": y}):
        with pytest.raises(ValueError, match="X_val and y_val go together"):
            TopKClassifier().fit(X, y, **half)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TopKClassifier().fit(X, y, X_val=X, y_val=y[:-1])
    with pytest.raises(ValueError, match="4 features, but TopKClassifier is expecting 5"):
        TopKClassifier().fit(X, y, X_val=X[:, :4], y_val=y)


def test_prediction_checks_its_input(data):
    X, y = data
    model = TopKClassifier().fit(X, y)
    for method in (model.predict, model.predict_topk, model.decision_function):
        with pytest.raises(ValueError, match="4 features, but TopKClassifier is expecting 5"):
            method(X[:, :4])
        with pytest.raises(ValueError, match="NaN"):
            method(np.where(X > 1, np.nan, X))


def test_a_refused_refit_leaves_the_old_model_usable(data):
    X, y = data
    model = TopKClassifier(k=2, random_state=0).fit(X, y)
    before = model.predict_topk(X)
    with pytest.raises(ValueError, match="with 2 classes"):
        model.fit(X, y == "ant")
    np.testing.assert_array_equal(model.predict_topk(X), before)


@pytest.mark.parametrize("make", [TopKClassifier, KernelTopKClassifier, TopKClassifierCV])
def test_what_fit_would_refuse_is_told_before_there_is_data(make):
    make("hinge", k=3).check_trainable(4)
    make("hinge", k=3).check_trainable(4, multilabel=True)
    for model, n_classes, several, match in [
        (make("hinge", k=3), 3, False, "here 2; got k=3 with 3 classes"),
        (make("hinge", tol=0), 4, False, "tol must be a positive finite number"),
        (make("truncated_entropy"), 4, True, "takes one right label per example"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.check_trainable(n_classes, multilabel=several)


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge", "hinge", "ova_hinge"])
def test_smooth_losses_start_from_weights(loss):
    model = TopKClassifier(loss)
    assert model.starts_from_weights() == model.make_loss().smooth


def test_features_are_named_as_a_fit_to_a_frame_does():
    pandas = pytest.importorskip("pandas")
    X, y = np.eye(3), [0, 1, 2]
    framed = TopKClassifier().fit(pandas.DataFrame(X, columns=[*"abc"]), y)
    model = TopKClassifier().fit(X, y)
    with pytest.raises(ValueError, match="names must be 3, one for each feature; got 2"):
        model.name_features([*"ab"])
    model.name_features([*"abc"])
    assert model.feature_names_in_.dtype == framed.feature_names_in_.dtype
    assert model.feature_names_in_.tolist() == framed.feature_names_in_.tolist()


def test_a_search_is_checked_for_each_of_its_losses():
    search = TopKClassifierCV(losses=["hinge", {"loss": "entropy", "k": 5}])
    search.check_trainable(6)
    with pytest.raises(ValueError, match="got k=5 with 5 classes"):
        search.check_trainable(5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [TopKClassifier, KernelTopKClassifier])
def test_a_fit_makes_its_loss_once(kind, n_classes, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % n_classes
    made, get = [], registry.get

    def counted(*args, **options):
        made.append(args)
        return get(*args, **options)

    monkeypatch.setattr(registry, "get", counted)
    kind().fit(X, y)
    assert made == [("entropy",)]
