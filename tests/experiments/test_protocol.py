"""Table 3's protocol: the range of C, the choice for each k, and models as good as cold fits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.datasets import LabeledData
from shortlist.experiments import paper
from shortlist.experiments.parts import letter_parts
from shortlist.experiments.protocol import (
    EXPONENTS,
    EXTENDED_EXPONENTS,
    MAX_UNCONVERGED,
    MAX_WORSE_VALUES,
    Model,
    PathTask,
    _Path,
    classifier,
    code_kind,
    relative_cost,
)
from shortlist.metrics import topk_accuracy

KS = (1, 3, 5, 10)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def train_path(method, parts, **changes):
    options = {
        "tol": 1e-4,
        "max_epochs": 500,
        "seed": 0,
        "exponents": (-4, -3, -2, -1, 0, 1, 2),
        "extended_exponents": (-8, 6),
        **changes,
    }
    return PathTask(method, KS, "", **options).run(parts)


def log_C(model):
    return round(2 * math.log10(model.C))


@pytest.fixture(scope="module", params=["lr-multi", "topk-svm:3", "trunc-ent:3"])
def record(request, small_parts):
    return train_path(request.param, small_parts)


def test_each_k_has_the_model_that_validation_prefers(record):
    for k in KS:
        eligible = [model for model in record.models if model.converged]
        first_best = eligible[int(np.argmax([model.val[k - 1] for model in eligible]))]
        assert record.chosen[k].model == first_best
        assert record.accuracy(k) == first_best.test[k - 1]


def test_hits_are_those_of_the_chosen_model(record, small_parts):
    for k in KS:
        model = record.chosen[k].model
        hits = record.chosen[k].hits()
        assert hits.shape == (360,)
        assert 100 * hits.mean() == pytest.approx(model.test[k - 1])
    if record.method == "lr-multi":
        alone = classifier("lr-multi", C=record.chosen[1].model.C, tol=1e-6, max_epochs=5000)
        alone.fit(small_parts.X_train, small_parts.y_train)
        right = alone.predict(small_parts.X_test) == small_parts.y_test
        # Examples on the edge may differ between two solutions of the same problem.
        assert (right != record.chosen[1].hits()).sum() <= 5


def test_points_are_in_order_and_accuracy_grows_with_k(record):
    exponents = [log_C(model) for model in record.models]
    assert exponents == list(range(exponents[0], exponents[-1] + 1))
    for model in record.models:
        for accuracies in (model.val, model.test):
            assert len(accuracies) == 10
            assert list(accuracies) == sorted(accuracies)
            assert all(0 <= accuracy <= 100 for accuracy in accuracies)


def test_convex_models_are_certified(record):
    for model in record.models:
        if record.method == "trunc-ent:3":
            assert math.isnan(model.relative_gap)
        elif model.converged:
            assert model.relative_gap <= 1e-4


@pytest.fixture
def fails_above(monkeypatch):
    """Makes models with a larger C count as not converged."""
    model_of = _Path._model

    def fail(bound):
        def model(fitted, val):
            status = "max_epochs" if bound < fitted.C else "converged"
            return replace(model_of(fitted, val), status=status)

        monkeypatch.setattr(_Path, "_model", staticmethod(model))

    return fail


def test_only_models_that_met_their_tolerance_are_chosen(small_parts, fails_above):
    preferred = train_path("lr-multi", small_parts).chosen[1].model.C
    fails_above(preferred / 2)
    record = train_path("lr-multi", small_parts)
    assert record.n_left_out == MAX_UNCONVERGED
    # The path ends after a few in a row: larger values are harder still.
    assert [model.converged for model in record.models[-MAX_UNCONVERGED:]] == [False] * 2
    assert all(model.converged for model in record.models[:-MAX_UNCONVERGED])
    assert preferred == record.models[-MAX_UNCONVERGED].C
    for k in KS:
        assert record.chosen[k].model in record.models[:-MAX_UNCONVERGED]


def test_an_unfinished_upper_end_does_not_stop_the_extension_below(small_parts, fails_above):
    fails_above(1.5)
    options = {"exponents": (0, 2, 4, 6), "extended_exponents": (-5, 6), "max_epochs": 50}
    record = train_path("lr-multi", small_parts, **options)
    # C = 1 is the only one to choose from, and the lower edge.
    assert [log_C(model) for model in record.models] == [*range(-5, 1), 2, 4]


def test_without_any_such_model_there_is_no_number(small_parts):
    record = train_path("topk-svm:3", small_parts, tol=1e-12, max_epochs=1)
    assert record.chosen == {}
    assert math.isnan(record.accuracy(1))
    assert len(record.models) == record.n_left_out == MAX_UNCONVERGED


def test_a_model_that_fails_when_trained_again_is_not_chosen(small_parts, monkeypatch):
    parts = replace(small_parts, val=None)
    preferred = train_path("lr-multi", parts).chosen[1].model.C
    model_of = _Path._model
    seen = []

    def fails_the_second_time(fitted, val):
        seen.append(fitted.C)
        status = "max_epochs" if seen.count(preferred) == 2 else "converged"
        return replace(model_of(fitted, val), status=status)

    monkeypatch.setattr(_Path, "_model", staticmethod(fails_the_second_time))
    chosen = train_path("lr-multi", parts).chosen
    assert seen.count(preferred) == 2
    assert preferred not in {each.model.C for each in chosen.values()}
    assert all(each.model.converged for each in chosen.values())


@pytest.mark.parametrize("method", ["lr-multi", "smooth-topk-svm:3"])
def test_models_along_the_path_are_those_of_single_fits(method, small_parts):
    record = train_path(method, small_parts, tol=1e-7, max_epochs=5000)
    for k in (1, 3):
        chosen = record.chosen[k].model
        alone = classifier(method, C=chosen.C, tol=1e-7, max_epochs=5000)
        alone.fit(small_parts.X_train, small_parts.y_train)
        scores = alone.decision_function(small_parts.X_test)
        expected = 100 * topk_accuracy(small_parts.y_test, scores, k)
        # One example of 360 may lie on the edge.
        assert chosen.test[k - 1] == pytest.approx(expected, abs=100 / 360 + 1e-9)
        assert chosen.primal == pytest.approx(alone.result_.primal, rel=1e-6)


def test_the_range_is_extended_where_the_best_is_at_its_edge(small_parts):
    for exponents in [(-14, -13, -12), (6, 7, 8)]:
        changes = {"exponents": exponents, "extended_exponents": (-16, 9), "max_epochs": 100}
        record = train_path("lr-multi", small_parts, **changes)
        tried = [log_C(model) for model in record.models]
        for place, edge in ((0, exponents[0]), (-1, exponents[-1])):
            best = {log_C(record.chosen[k].model) for k in KS if k in record.chosen}
            # Either the edge was passed, or nothing there was best.
            passed = tried[place] != edge
            assert passed or edge not in best
        assert tried[0] >= -16
        assert tried[-1] <= 9


def test_the_path_ends_when_nothing_improves_for_long(small_parts):
    # Many repetitions of few examples: large C overfits.
    few = replace(
        small_parts, train=LabeledData(small_parts.X_train[:24], small_parts.y_train[:24])
    )
    wide = {"exponents": tuple(range(-6, 12)), "extended_exponents": (-6, 12), "max_epochs": 5000}
    record = train_path("lr-multi", few, **wide)
    exponents = [log_C(model) for model in record.models]
    peaks = [max(model.val[k - 1] for model in record.models) for k in KS]
    last_best = max(
        log_C(model)
        for k, peak in zip(KS, peaks, strict=True)
        for model in record.models
        if model.val[k - 1] == peak
    )
    assert exponents[-1] == min(last_best + MAX_WORSE_VALUES, 11)


def test_values_as_good_as_the_best_do_not_end_the_path(small_parts):
    # At small C plain hinges have W = C times the same matrix, so that all accuracies are equal.
    path = _Path(PathTask("svm-multi", (1, 2), "", 1e-3, 10, 0), small_parts)
    equal, worse = (50.0, 60.0), (49.0, 59.0)
    vals = [equal] * (MAX_WORSE_VALUES + 3) + [worse] * MAX_WORSE_VALUES
    enough = []
    for exponent, val in zip(EXPONENTS, vals, strict=False):
        path.models[exponent] = Model(10 ** (exponent / 2), 1.0, 0.0, 1.0, 0.0, "converged", val)
        enough.append(path._is_enough(exponent))
    assert enough == [False] * (len(vals) - 1) + [True]
    assert path.best(1) == path.best(2) == EXPONENTS[0]


def test_a_fall_does_not_end_the_path_of_a_loss_that_is_not_convex(small_parts):
    # News 20, truncated top-10 entropy: 97 per cent, then 57, then 91 and still rising.
    task = PathTask("trunc-ent:3", (1, 2), "", 1e-3, 10, 0)
    path = _Path(task, small_parts)
    for exponent, val in zip(EXPONENTS, [(50.0, 60.0)] + [(49.0, 59.0)] * 99, strict=False):
        path.models[exponent] = Model(10 ** (exponent / 2), 1.0, 0.0, 1.0, 0.0, "converged", val)
        assert path._is_enough(exponent) == (exponent == EXPONENTS[-1])


def test_without_validation_part_the_chosen_models_are_trained_on_everything(small_parts):
    parts = replace(small_parts, val=None)
    record = train_path("lr-multi", parts, tol=1e-6)
    chosen = record.chosen[1].model
    tested = {model.C for model in record.models if model.test}
    assert tested == {each.model.C for each in record.chosen.values()}
    alone = TopKClassifier("entropy", C=chosen.C, tol=1e-6, fit_intercept=False)
    alone.fit(parts.X_train, parts.y_train)
    assert chosen.primal == pytest.approx(alone.result_.primal, rel=1e-5)
    X, y, X_val, _ = parts.for_selection(seed=0)
    assert X.shape[0] + X_val.shape[0] == 240
    assert X_val.shape[0] == 48
    assert set(y) == set(parts.y_train)


def test_a_grid_in_lambda_is_a_decade_apart(small_parts):
    grid = {"exponents": (0, 1, 2), "extended_exponents": (0, 2), "per_decade": 1, "scale": 1 / 240}
    record = train_path("lr-multi", small_parts, **grid)
    lambdas = [1 / (model.C * 240) for model in record.models]
    assert lambdas == pytest.approx([1.0, 0.1, 0.01])


def test_the_range_is_the_papers():
    assert 10 ** (EXPONENTS[0] / 2) == pytest.approx(1e-5)
    assert 10 ** (EXPONENTS[-1] / 2) == pytest.approx(1e3)
    assert EXTENDED_EXPONENTS[0] < EXPONENTS[0]
    assert EXTENDED_EXPONENTS[1] > EXPONENTS[-1]


# The paper's own numbers, with C among those that validation prefers.
@pytest.mark.parametrize("method", ["lr-multi", "smooth-topk-svm:1", "lr-ova"])
def test_letter_agrees_with_the_paper(method):
    options = {"tol": 1e-3, "exponents": (0, 1, 2, 3), "extended_exponents": (0, 3)}
    record = train_path(method, letter_parts(), **options)
    for k in KS:
        assert record.accuracy(k) == pytest.approx(paper.accuracy("letter", method, k), abs=0.7)


def test_every_method_of_the_paper_has_a_classifier():
    for dataset in paper.datasets():
        for method in paper.methods(dataset):
            model = classifier(method)
            family, k = paper.split_method(method)
            assert (model.loss, model.k) == (paper.FAMILIES[family].loss, k)
            assert model.fit_intercept is False
            assert relative_cost(method) > 0
            assert code_kind(method)
    assert code_kind("topk-svm:3") == code_kind("smooth-topk-svm:10") != code_kind("lr-multi")
    assert code_kind("svm-multi") == code_kind("smooth-topk-svm:1") != code_kind("topk-svm:3")
