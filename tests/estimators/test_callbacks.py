"""scikit-learn's own callbacks: a task for each epoch, nothing at all where there are none."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import KernelTopKClassifier, TopKClassifier
from tests.estimators.objectives import named_data

callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")

MODELS = {
    "linear": TopKClassifier("smooth_hinge", k=2, tol=1e-5, random_state=0),
    "l-bfgs": TopKClassifier(C=1e4, tol=1e-6, random_state=0),
    "truncated": TopKClassifier("truncated_entropy", k=2, random_state=0),
    "kernel": KernelTopKClassifier("smooth_hinge", k=2, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    return named_data()


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


class Recorder:
    """Notes every call; stops training after ``stop_after`` epochs."""

    def __init__(self, stop_after=np.inf):
        self.calls, self.models, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.calls.append(("end", context.task_name, context.task_id))
        self.models.append((fitted_estimator, X, y, metadata))
        return context.task_name == "epoch" and context.task_id + 1 >= self.stop_after

    def epochs(self, what):
        return [number for name, task, number in self.calls if (name, task) == (what, "epoch")]


class NestedRecorder(Recorder):
    """One that is handed on from a pipeline to its steps."""

    max_propagation_depth = None


def test_one_task_an_epoch_within_one_task_for_the_fit(model, data):
    recorder, told = Recorder(), []
    model.set_callbacks(recorder).fit(*data, callback=told.append)
    assert model.result_.status == "converged"
    assert recorder.calls[:3] == [("setup", "fit", 0), ("begin", "fit", 0), ("begin", "epoch", 0)]
    assert recorder.calls[-2:] == [("end", "fit", 0), ("teardown", "fit", 0)]
    # Only the solver knows when the truncated entropy, which has no gap, is done: an epoch that it
    # turns out not to need ends as soon as it has begun.
    epochs = list(range(len(told) + (model.loss == "truncated_entropy")))
    assert recorder.epochs("begin") == recorder.epochs("end") == epochs
    # In order, one after the other.
    inner = [call for call in recorder.calls if call[1] == "epoch"]
    assert [call[0] for call in inner] == ["begin", "end"] * len(epochs)


def test_they_change_nothing(model, data):
    X, y = data
    plain = clone(model).fit(X, y)
    watched = model.set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(watched.decision_function(X), plain.decision_function(X))
    assert watched.result_.epochs == plain.result_.epochs


def test_each_end_brings_the_model_so_far(model, data):
    X, y = data
    weight = np.ones(len(y))
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X, y, sample_weight=weight)
    for so_far, X_told, y_told, metadata in recorder.models:
        assert X_told is X
        assert y_told is y
        assert metadata["sample_weight"] is weight
        assert set(so_far.predict(X)) <= set(model.classes_)
    scores = [so_far.decision_function(X) for so_far, *_ in recorder.models]
    np.testing.assert_array_equal(scores[-1], model.decision_function(X))
    assert not np.array_equal(scores[0], scores[-1])


@pytest.mark.parametrize("after", [1, 2])
def test_they_can_stop_training(after, model, data):
    recorder = Recorder(stop_after=after)
    model.set_params(tol=1e-9).set_callbacks(recorder).fit(*data)
    assert model.result_.status == "stopped"
    assert recorder.epochs("begin") == recorder.epochs("end") == list(range(after))
    assert recorder.calls[-1][0] == "teardown"
    assert model.predict(data[0]).shape == (60,)


def test_control_c_ends_the_open_tasks(data):
    def interrupt(progress):
        raise KeyboardInterrupt

    recorder = Recorder()
    model = TopKClassifier(tol=1e-9).set_callbacks(recorder).fit(*data, callback=interrupt)
    assert model.result_.status == "interrupted"
    assert recorder.epochs("begin") == recorder.epochs("end")
    assert [call[0] for call in recorder.calls[-2:]] == ["end", "teardown"]


def test_an_error_still_tears_down(data):
    def fail(progress):
        raise ZeroDivisionError

    recorder = Recorder()
    with pytest.raises(ZeroDivisionError):
        TopKClassifier().set_callbacks(recorder).fit(*data, callback=fail)
    assert recorder.calls[-1] == ("teardown", "fit", 0)


def test_scikit_learns_progress_bar(data, capsys):
    model = TopKClassifier(tol=1e-6).set_callbacks(callback.ProgressBar()).fit(*data)
    shown = capsys.readouterr().out
    assert "TopKClassifier - fit" in shown
    assert "100%" in shown
    assert model.result_.status == "converged"


def test_scikit_learns_scoring_monitor(data):
    X, y = data
    monitor = callback.ScoringMonitor(scoring="accuracy")
    told = []
    model = TopKClassifier(tol=1e-6, random_state=0).set_callbacks(monitor)
    model.fit(X, y, callback=told.append)
    log = [row for row in monitor.get_logs().data if row["task_name"] == "epoch"]
    assert len(log) == len(told)
    assert log[-1]["accuracy"] == np.mean(model.predict(X) == y)


def test_a_pipeline_hands_them_on(data):
    recorder = NestedRecorder()
    model = TopKClassifier(random_state=0)
    told = []
    pipeline = make_pipeline(StandardScaler(), model).set_callbacks(recorder)
    pipeline.fit(*data, topkclassifier__callback=told.append)
    assert recorder.epochs("begin") == recorder.epochs("end") == list(range(len(told)))
    assert len(told) >= 2


def test_without_callbacks_no_context_is_made(model, data, monkeypatch):
    def fail(self, **options):
        raise AssertionError("a context was made")

    monkeypatch.setattr(type(model), "_init_callback_context", fail)
    model.fit(*data)
    with pytest.raises(AssertionError, match="a context was made"):
        model.set_callbacks(Recorder()).fit(*data)
    model.set_callbacks().fit(*data)  # none again


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="FitCallback"):
        TopKClassifier().set_callbacks(print)


def test_older_scikit_learn():
    """Where sklearn.callback is absent, there is no set_callbacks, and all else works."""
    script = textwrap.dedent("""
        import importlib, sys
        from shortlist import TopKClassifier
        from shortlist.estimators import callbacks

        sys.modules["sklearn.callback"] = None  # scikit-learn itself has imported it by now
        importlib.reload(callbacks)

        class Model(callbacks.CallbackSupportMixin):
            pass

        assert hasattr(TopKClassifier(), "set_callbacks")
        assert not hasattr(Model(), "set_callbacks")
        with callbacks.told_to_scikit_learn(Model(), "own", None, X=1) as told:
            assert told == "own"
    """)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
