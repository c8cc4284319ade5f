"""How training ends: what the status says, what is told, and that the model is kept."""

import json
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier
from shortlist.solvers import StopTraining
from tests.estimators.objectives import NAMES, named_data, objective
from tests.solvers.problems import make_data

# A smooth loss at so large a C leaves SDCA for L-BFGS after a few epochs.
HARD = {"loss": "entropy", "C": 1e4, "tol": 1e-9, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return named_data()


def is_whole(model, X, y, k=1):
    """The record belongs to the model: its objective is the one computed from coef_."""
    codes = np.searchsorted(NAMES, y)
    value = objective(model.loss, model.coef_, X, codes, model.C, k=k, intercept=model.intercept_)
    assert model.result_.primal == pytest.approx(value, rel=1e-9)
    assert set(model.predict(X)) <= set(NAMES)
    assert model.result_.history[-1].primal == model.result_.primal
    return True


def test_converged_without_a_warning(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TopKClassifier(random_state=0).fit(*data)
    result = model.result_
    assert result.status == "converged"
    assert 0 <= result.relative_gap <= 1e-3
    assert result.gap == result.primal - result.dual
    assert result.relative_gap == result.gap / result.primal
    assert model.n_iter_ == int(np.ceil(result.epochs)) >= 1
    assert is_whole(model, *data)


@pytest.mark.parametrize("loss", ["entropy", "hinge", "ova_hinge", "ova_logistic"])
def test_out_of_epochs_with_a_warning_that_names_the_gap(loss, data):
    model = TopKClassifier(loss, C=100, tol=1e-9, max_epochs=2, random_state=0)
    with pytest.warns(ConvergenceWarning) as told:
        model.fit(*data)
    assert model.result_.status == "max_epochs"
    assert 2 <= model.result_.epochs < 4
    text = str(told[0].message)
    assert f"the relative duality gap is {model.result_.relative_gap:.2g}, tol=1e-09" in text
    assert "at C=100" in text
    assert "Raise max_epochs or tol, or lower C" in text
    assert told[0].filename == __file__  # it points at the user's line
    assert is_whole(model, *data)


@pytest.mark.parametrize(("scale", "hint"), [(1.0, False), (100.0, True)])
def test_the_warning_names_features_that_are_not_scaled(scale, hint, data):
    X, y = data
    with pytest.warns(ConvergenceWarning) as told:
        TopKClassifier("hinge", tol=1e-9, max_epochs=1, random_state=0).fit(scale * X, y)
    assert ("StandardScaler" in str(told[0].message)) == hint


@pytest.mark.parametrize(
    ("dtype", "C", "hint"),
    [(np.float32, 1e6, True), (np.float32, 1e-2, False), (np.float64, 1e6, False)],
)
def test_the_warning_names_a_precision_that_is_too_coarse(dtype, C, hint, data):
    X, y = data
    with pytest.warns(ConvergenceWarning) as told:
        TopKClassifier("hinge", C=C, tol=1e-5, max_epochs=1, random_state=0).fit(X.astype(dtype), y)
    assert ("try float64 input" in str(told[0].message)) == hint


@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge", "ova_logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_end_of_the_digits_is_an_end(loss, seed):
    """Asked for more than float32 has: not all epochs are spent, and a gap above tol is told."""
    X, y = named_data(n=40)
    model = TopKClassifier(loss, tol=1e-12, max_epochs=10**6, random_state=seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X.astype(np.float32), y)
    result = model.result_
    assert result.status in ("converged", "stalled")
    # The gap includes a bound on rounding.
    assert 0 <= result.relative_gap < 1e-5
    assert bool(told) == (result.relative_gap > 1e-12)
    assert all("stalled at C=1: the relative duality gap" in str(w.message) for w in told)


def test_no_warning_of_a_gap_that_is_met(data):
    """With a tol below rounding training goes on to the last epoch; a gap of zero is no failure."""
    X, y = data
    model = TopKClassifier("smooth_hinge", tol=1e-20, max_epochs=300, random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    met = model.result_.relative_gap <= 1e-20
    assert (model.result_.status == "converged") == met
    assert bool(told) != met


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "entropy", "tol": 1e-12},
        {"loss": "hinge", "C": 100.0, "tol": 1e-9},
        {"loss": "truncated_entropy", "k": 2, "tol": 1e-12},
        HARD,
    ],
    ids=["sdca", "support", "truncated", "l-bfgs"],
)
@pytest.mark.parametrize("after", [1, 4, 6])
@pytest.mark.parametrize("way", ["returns True", "raises", "Ctrl-C"])
def test_a_cut_anywhere_keeps_the_model(params, after, way, data):
    calls = 0

    def callback(progress):
        nonlocal calls
        calls += 1
        if calls < after:
            return None
        if way == "raises":
            raise StopTraining
        if way == "Ctrl-C":
            raise KeyboardInterrupt
        return True

    model = TopKClassifier(**{"random_state": 0, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fit that the user interrupts does not warn
        model.fit(*data, callback=callback)
    assert calls == after
    assert model.result_.status == ("interrupted" if way == "Ctrl-C" else "stopped")
    assert is_whole(model, *data, k=model.k)
    if model.loss != "truncated_entropy":
        assert model.result_.gap >= 0


@pytest.mark.parametrize("answer", [np.True_, True])
def test_what_counts_as_stop(answer, data):
    model = TopKClassifier(tol=1e-12, random_state=0).fit(*data, callback=lambda progress: answer)
    assert model.result_.status == "stopped"


@pytest.mark.parametrize("answer", [None, False, 0, 1, "yes", np.False_])
def test_what_does_not(answer, data):
    model = TopKClassifier(random_state=0).fit(*data, callback=lambda progress: answer)
    assert model.result_.status == "converged"


def test_errors_of_a_callback_are_the_users(data):
    def callback(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        TopKClassifier().fit(*data, callback=callback)


def test_a_callback_sees_every_epoch(data):
    seen = []
    model = TopKClassifier(C=0.01, tol=1e-6, random_state=0)
    model.fit(*data, callback=lambda progress: seen.append(progress))
    assert [progress.epoch for progress in seen] == list(range(1, len(seen) + 1))
    assert model.result_.epochs == seen[-1].epoch
    assert {(progress.tol, progress.max_epochs) for progress in seen} == {(1e-6, 1000)}
    assert seen[-1].last == model.result_.history[-1]
    assert seen[-1].weights.shape == (6, 4)
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)


def test_control_c_from_outside(tmp_path):
    """A real signal, while kernels run, to a process of its own."""
    script = textwrap.dedent("""
        import json, sys
        import numpy as np
        from shortlist import TopKClassifier
        from tests.estimators.objectives import objective
        from tests.solvers.problems import make_data

        X, y = make_data(n=400, d=30, m=8)
        X = X + np.random.default_rng(0).normal(size=X.shape) * 3
        model = TopKClassifier("hinge", C=1e6, tol=1e-15, max_epochs=10**9, random_state=0)
        told = []

        def callback(progress):
            if not told:
                told.append(print("training", flush=True))

        model.fit(X, y, callback=callback)
        result = model.result_
        value = objective("hinge", model.coef_, X, y, model.C, intercept=model.intercept_)
        print(json.dumps([
            result.status, result.gap, result.primal / value, model.predict_topk(X, 3).shape
        ]))
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "training\n"
        child.send_signal(signal.SIGINT)
        answer, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, errors
    status, gap, ratio, shape = json.loads(answer)
    assert status == "interrupted"
    assert gap > 0
    assert ratio == pytest.approx(1, rel=1e-9)
    assert shape == [400, 3]


def test_history_records_what_was_measured(data):
    model = TopKClassifier("smooth_hinge", k=2, tol=1e-8, random_state=0).fit(*data)
    history = model.result_.history
    assert len(history) >= 3
    for name in ("epoch", "seconds", "dual"):
        column = np.array([getattr(entry, name) for entry in history])
        assert (np.diff(column) >= -1e-14 * np.abs(column[1:])).all()  # rounding, in the dual
    assert all(entry.gap >= 0 and entry.accuracy is None for entry in history)
    assert history[-1].relative_gap == model.result_.relative_gap <= 1e-8
    assert model.result_.seconds >= history[-1].seconds > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "params", [{"loss": "smooth_hinge", "k": 2}, HARD, {"loss": "truncated_entropy", "k": 2}]
)
def test_history_has_the_accuracy_on_a_validation_set(params, sparse, data):
    from scipy.sparse import csr_array

    X, y = data
    X_val, y_val = named_data(n=50, seed=0)
    kind = csr_array if sparse else np.asarray
    model = TopKClassifier(**{"random_state": 0, **params})
    model.fit(kind(X), y, X_val=kind(X_val), y_val=y_val)
    order = np.argsort(-(X_val @ model.coef_.T + model.intercept_), axis=1)[:, : model.k]
    accuracy = (NAMES[order] == y_val[:, None]).any(axis=1).mean()
    accuracies = [entry.accuracy for entry in model.result_.history]
    assert accuracies[-1] == accuracy
    assert all(0 <= value <= 1 for value in accuracies)
    # Looking at validation data changes nothing.
    blind = TopKClassifier(**{"random_state": 0, **params}).fit(kind(X), y)
    np.testing.assert_array_equal(model.coef_, blind.coef_)


def test_a_validation_label_never_seen_is_an_error_of_the_model(data):
    X, y = data
    known = y != "dog"
    model = TopKClassifier(random_state=0).fit(X[known], y[known], X_val=X, y_val=y)
    expected = np.mean(model.predict(X) == y)
    assert model.result_.history[-1].accuracy == expected
    assert expected <= known.mean()


@pytest.mark.parametrize("n", [60, 300])
def test_single_precision_reports_the_objective_of_its_own_weights(n):
    X, codes = make_data(n=n, dtype=np.float32)
    model = TopKClassifier("hinge", tol=1e-4, random_state=0).fit(X, NAMES[codes])
    value = objective("hinge", model.coef_, X, codes, 1.0, intercept=model.intercept_)
    assert model.result_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "smooth_hinge", "entropy"])
def test_where_nothing_can_be_gained_zero_is_the_solution(loss):
    rows = np.random.default_rng(0).normal(size=(8, 5))
    X, y = np.repeat(rows, 3, axis=0), np.tile([0, 1, 2], 8)  # every row has every label
    model = TopKClassifier(loss, fit_intercept=False, random_state=0).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(model.result_.at_zero, rel=1e-12)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-5)
