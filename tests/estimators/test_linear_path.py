"""A path over C: the fits it stands for, in any order, each a model of its own."""

import warnings

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier
from tests.estimators.objectives import NAMES, named_data, objective

CS = [1e-3, 0.03, 1.0, 10.0]


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, csr_array])
@pytest.mark.parametrize(
    "params",
    [
        {"loss": "entropy"},
        {"loss": "entropy", "k": 2},
        {"loss": "hinge"},
        {"loss": "smooth_hinge", "k": 3},
        {"loss": "ova_logistic"},
    ],
    ids=str,
)
def test_every_model_is_as_good_as_a_fit_of_its_own(params, kind, data):
    X, y = data
    template = TopKClassifier(**params, tol=1e-5, max_epochs=50_000, random_state=0)
    for C, model in zip(CS, template.fit_path(kind(X), y, CS), strict=True):
        assert model.C == C
        assert model.result_.status == "converged"
        assert model.result_.relative_gap <= 1e-5
        cold = TopKClassifier(**{**template.get_params(), "C": C}).fit(kind(X), y)
        assert model.result_.primal == pytest.approx(cold.result_.primal, rel=1.1e-5)
        if params["loss"] == "hinge":
            codes = np.searchsorted(NAMES, y)
            value = objective("hinge", model.coef_, X, codes, C, intercept=model.intercept_)
            assert model.result_.primal == pytest.approx(value, rel=1e-9)


def test_a_path_takes_fewer_epochs_than_its_fits(data):
    X, y = data
    Cs = np.geomspace(1e-3, 10, 16)
    template = TopKClassifier("smooth_hinge", random_state=0)
    path = sum(model.result_.epochs for model in template.fit_path(X, y, Cs))
    fits = sum(
        TopKClassifier("smooth_hinge", C=C, random_state=0).fit(X, y).result_.epochs for C in Cs
    )
    assert path < 0.7 * fits


def test_any_order_and_repetitions(data):
    X, y = data
    template = TopKClassifier(random_state=0)
    ordered = dict(zip(CS, template.fit_path(X, y, CS), strict=True))
    wanted = [1.0, 1e-3, 10.0, 1.0, 0.03, 1e-3]
    for given in (wanted, tuple(wanted), np.array(wanted), iter(wanted), pandas.Series(wanted)):
        models = template.fit_path(X, y, given)
        assert [model.C for model in models] == wanted
        for C, model in zip(wanted, models, strict=True):
            np.testing.assert_array_equal(model.coef_, ordered[C].coef_)
    assert len({id(model) for model in models}) == len(models)


@pytest.mark.parametrize("d", [1, 5])
def test_models_share_nothing(d, data):
    X, y = data
    models = TopKClassifier(random_state=0).fit_path(X[:, :d], y, [*CS, CS[0]])
    names = ("coef_", "intercept_", "classes_")
    for i, one in enumerate(models):
        for other in models[i + 1 :]:
            for name in names:
                assert not np.shares_memory(getattr(one, name), getattr(other, name))
    before = [model.decision_function(X[:, :d]) for model in models]
    models[0].coef_[:] = 0.0
    models[0].set_params(C=5.0).fit(X[:30, :d], y[:30])
    for model, scores in zip(models[1:], before[1:], strict=True):
        np.testing.assert_array_equal(model.decision_function(X[:, :d]), scores)


def test_the_template_stays_as_it_was(data):
    X, y = data
    template = TopKClassifier(random_state=0)
    template.fit_path(X, y, CS)
    assert vars(template) == vars(TopKClassifier(random_state=0))
    # Nor does a path on other labels confuse a model that is fitted.
    fitted = TopKClassifier(random_state=0).fit(X, y)
    before = fitted.predict(X)
    fitted.fit_path(X[:, :3], y == "ant", CS[:1])
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_weights_count_and_the_templates_own_C_does_not(data):
    X, y = data
    weight = np.arange(len(y)) % 3
    for C in (1e-300, 1.0, 1e308):
        template = TopKClassifier(C=C, tol=1e-10, class_weight="balanced", random_state=0)
        (model,) = template.fit_path(X, y, [0.1], weight)
        cold = TopKClassifier(C=0.1, tol=1e-10, class_weight="balanced", random_state=0)
        np.testing.assert_allclose(model.coef_, cold.fit(X, y, weight).coef_, atol=1e-4)


def test_frames_leave_their_names(data):
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abcde"))
    for model in TopKClassifier().fit_path(frame, y, CS[:2]):
        assert model.feature_names_in_.tolist() == list("abcde")
        assert model.n_features_in_ == 5
        model.predict(frame)


def test_the_callback_gets_each_model_as_it_is_ready(data):
    seen = []
    models = TopKClassifier(random_state=0).fit_path(*data, CS[::-1], callback=seen.append)
    assert [model.C for model in seen] == CS
    assert {id(model) for model in seen} == {id(model) for model in models}


def test_an_interrupt_keeps_what_is_there(data, monkeypatch):
    from shortlist.solvers.strategy import path

    whole, calls = path.train, []

    def interrupted_at_the_third(problem, **options):
        calls.append(problem)
        if len(calls) == 3:

            def callback(progress):
                raise KeyboardInterrupt

            options["callback"] = callback
        return whole(problem, **options)

    monkeypatch.setattr(path, "train", interrupted_at_the_third)
    models = TopKClassifier(tol=1e-9, random_state=0).fit_path(*data, CS)
    assert [model.C for model in models] == CS[:3]
    assert [model.result_.status for model in models] == ["converged"] * 2 + ["interrupted"]
    assert models[-1].predict(data[0]).shape == (60,)


def test_an_interrupt_between_two_fits_keeps_what_is_there(data):
    seen = []

    def interrupt(model):
        seen.append(model)
        if len(seen) == 2:
            raise KeyboardInterrupt

    models = TopKClassifier(random_state=0).fit_path(*data, CS[::-1], callback=interrupt)
    assert [model.C for model in models] == [CS[1], CS[0]]


def test_an_interrupt_before_there_is_a_model_is_the_users(data, monkeypatch):
    from shortlist.solvers.strategy import path

    def interrupted(problem, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(path, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TopKClassifier().fit_path(*data, CS)


def test_each_C_that_does_not_converge_is_told(data):
    template = TopKClassifier(tol=1e-12, max_epochs=2, random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        template.fit_path(*data, CS)
    texts = [str(w.message) for w in told if issubclass(w.category, ConvergenceWarning)]
    for C in CS:
        assert sum(f"at C={C:g}:" in text for text in texts) == 1
    assert {w.filename for w in told} == {__file__}


def test_the_truncated_entropy_has_a_path_too(data):
    X, y = data
    template = TopKClassifier("truncated_entropy", k=2, tol=1e-5, random_state=0)
    for C, model in zip(CS, template.fit_path(X, y, CS), strict=True):
        codes = np.searchsorted(NAMES, y)
        value = objective(
            "truncated_entropy", model.coef_, X, codes, C, k=2, intercept=model.intercept_
        )
        assert model.result_.primal == pytest.approx(value, rel=1e-9)
        cold = TopKClassifier(**{**template.get_params(), "C": C}).fit(X, y)
        assert model.result_.primal == pytest.approx(cold.result_.primal, rel=1e-3)


@pytest.mark.parametrize(
    ("Cs", "error", "match"),
    [
        ([], ValueError, "Cs must hold at least one value"),
        ([1.0, 0.0], ValueError, "every C in Cs must be a positive finite number; got 0"),
        ([-1], ValueError, "got -1"),
        ([np.nan], ValueError, "got nan"),
        ([1.0, np.inf], ValueError, "got inf"),
        (["small"], ValueError, "every C in Cs must be a positive finite number; got 'small'"),
        ([None], ValueError, "got None"),
        ([[1.0, 2.0]], ValueError, r"got \[1.0, 2.0\]"),
        (1.0, TypeError, "Cs must be a list of numbers; got 1.0"),
        ("0.1", TypeError, "Cs must be a list of numbers; got '0.1'"),
        (None, TypeError, "Cs must be a list of numbers; got None"),
    ],
)
def test_bad_values_are_named(Cs, error, match, data):
    with pytest.raises(error, match=match):
        TopKClassifier().fit_path(*data, Cs)
