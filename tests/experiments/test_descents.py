"""Gradient descent from softmax, and the baselines of the convergence figures."""

import numpy as np
import pytest

from shortlist import TopKClassifier, losses
from shortlist.experiments.descents import DescentTask, Primal, Trace, fista, lbfgs
from shortlist.experiments.protocol import classifier
from shortlist.metrics import topk_accuracy_curve


@pytest.fixture(scope="module")
def record(small_parts):
    task = DescentTask("trunc-ent:3", "", (0.1, 1.0), (0, 1, 4, 16), 1e-5, 1000, 0)
    return task.run(small_parts)


def test_descent_starts_at_softmax_and_goes_down(record, small_parts):
    for C, run in zip(record.Cs, record.runs, strict=True):
        assert [point.steps for point in run] == [0, 1, 4, 16]
        objectives = [point.objective for point in run]
        assert objectives == sorted(objectives, reverse=True)
        assert objectives[-1] < objectives[0]
        softmax = classifier("lr-multi", C=C, tol=1e-5, max_epochs=1000)
        softmax.fit(small_parts.X_train, small_parts.y_train)
        scores = softmax.decision_function(small_parts.X_test)
        expected = 100 * topk_accuracy_curve(small_parts.y_test, scores, 10)
        assert run[0].test == pytest.approx(expected, abs=0.6)


def test_accuracies_along_choose_c_by_validation(record):
    assert record.steps == [0, 1, 4, 16]
    for k in (1, 3):
        along = record.accuracies(k)
        assert len(along) == 4
        for place, accuracy in enumerate(along):
            models = [run[place] for run in record.runs]
            best = int(np.argmax([model.val[k - 1] for model in models]))
            assert accuracy == models[best].test[k - 1]


@pytest.mark.parametrize("baseline", [fista, lbfgs])
@pytest.mark.parametrize("loss", ["entropy", "smooth_hinge"])
def test_baselines_reach_the_certified_optimum(baseline, loss, small_parts):
    X, y, C = small_parts.X_train, small_parts.y_train, 0.5
    model = TopKClassifier(loss, C=C, tol=1e-9, max_epochs=20_000, fit_intercept=False).fit(X, y)
    dual = max(e.dual for e in model.result_.history)
    trace = Trace(lambda weights: 0.0, 60.0, dual * (1 + 1e-7))
    baseline(Primal(X, y, 12, losses.get(loss), C), trace)
    primals = [point.primal for point in trace.points]
    assert primals[-1] == pytest.approx(dual, rel=1e-4)
    assert min(primals) >= dual * (1 - 1e-9)
    seconds = [point.seconds for point in trace.points]
    assert seconds == sorted(seconds)


def test_a_baseline_stops_at_its_time_limit(small_parts):
    trace = Trace(lambda weights: 0.0, 0.0, -np.inf)
    fista(Primal(small_parts.X_train, small_parts.y_train, 12, losses.get("entropy"), 1.0), trace)
    assert len(trace.points) == 1


def test_primal_has_its_gradient(small_parts):
    primal = Primal(small_parts.X_train, small_parts.y_train, 12, losses.get("smooth_hinge"), 0.3)
    random = np.random.default_rng(0)
    weights, direction = random.normal(size=(2, 6, 12))
    _, gradient = primal(weights)
    h = 1e-6
    slope = (primal(weights + h * direction)[0] - primal(weights - h * direction)[0]) / (2 * h)
    assert np.vdot(gradient, direction) == pytest.approx(slope, rel=1e-6)
