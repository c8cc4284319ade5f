"""Table 3's protocol: the range of C, the choice for each k, and models as good as cold fits."""

import math

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.experiments import paper
from shortlist.experiments.methods import LOSSES, classifier, kernels_of, relative_cost
from shortlist.experiments.protocol import (
    EXPONENTS,
    EXTENDED_EXPONENTS,
    PATIENCE,
    Parts,
    train_path,
)
from shortlist.experiments.splits import letter_parts
from shortlist.metrics import topk_accuracy

KS = (1, 3, 5, 10)


def parameters(method, **changes):
    return {
        "method": method,
        "ks": KS,
        "exponents": (-4, -3, -2, -1, 0, 1, 2),
        "extended_exponents": (-8, 6),
        "tol": 1e-4,
        "max_epochs": 500,
        "seed": 0,
        **changes,
    }


def ignore(share):
    pass


def log_C(point):
    return round(2 * math.log10(point["C"]))


@pytest.fixture(scope="module", params=["lr-multi", "topk-svm:3", "trunc-ent:3"])
def record(request, small_parts):
    return train_path(parameters(request.param), small_parts, ignore)


def test_each_k_has_the_model_that_validation_prefers(record):
    for k in KS:
        accuracies = [point["val"][k - 1] for point in record["points"]]
        first_best = record["points"][int(np.argmax(accuracies))]
        assert record["chosen"][str(k)] == first_best


def test_points_are_in_order_and_accuracy_grows_with_k(record):
    exponents = [log_C(point) for point in record["points"]]
    assert exponents == list(range(exponents[0], exponents[-1] + 1))
    for point in record["points"]:
        for part in ("val", "test"):
            assert len(point[part]) == 10
            assert point[part] == sorted(point[part])
            assert all(0 <= accuracy <= 100 for accuracy in point[part])


def test_convex_models_are_certified(record):
    for point in record["points"]:
        if record["method"] == "trunc-ent:3":
            assert math.isnan(point["relative_gap"])
        elif point["status"] == "converged":
            assert point["relative_gap"] <= 1e-4


@pytest.mark.parametrize("method", ["lr-multi", "smooth-topk-svm:3"])
def test_models_along_the_path_are_those_of_single_fits(method, small_parts):
    record = train_path(parameters(method, tol=1e-7), small_parts, ignore)
    for k in (1, 3):
        chosen = record["chosen"][str(k)]
        alone = classifier(method, C=chosen["C"], tol=1e-7, max_epochs=5000)
        alone.fit(small_parts.X_train, small_parts.y_train)
        scores = alone.decision_function(small_parts.X_test)
        expected = 100 * topk_accuracy(small_parts.y_test, scores, k)
        # One example of 360 may lie on the edge.
        assert chosen["test"][k - 1] == pytest.approx(expected, abs=100 / 360 + 1e-9)
        assert chosen["primal"] == pytest.approx(alone.result_.primal, rel=1e-6)


def test_the_range_is_extended_where_the_best_is_at_its_edge(small_parts):
    for exponents in [(-14, -13, -12), (6, 7, 8)]:
        changes = {"exponents": exponents, "extended_exponents": (-16, 9), "max_epochs": 100}
        record = train_path(parameters("lr-multi", **changes), small_parts, ignore)
        tried = [log_C(point) for point in record["points"]]
        for place, edge in ((0, exponents[0]), (-1, exponents[-1])):
            best = {log_C(record["chosen"][str(k)]) for k in KS}
            # Either the edge was passed, or nothing there was best.
            passed = tried[place] != edge
            assert passed or edge not in best
        assert tried[0] >= -16
        assert tried[-1] <= 9


def test_the_path_ends_when_nothing_improves_for_long(small_parts):
    # Many repetitions of few examples: large C overfits.
    few = Parts(
        small_parts.X_train[:24],
        small_parts.y_train[:24],
        small_parts.X_test,
        small_parts.y_test,
        small_parts.X_val,
        small_parts.y_val,
    )
    wide = {"exponents": tuple(range(-6, 12)), "extended_exponents": (-6, 12), "max_epochs": 50}
    record = train_path(parameters("lr-multi", **wide), few, ignore)
    exponents = [log_C(point) for point in record["points"]]
    best = max(log_C(record["chosen"][str(k)]) for k in KS)
    assert exponents[-1] == min(best + PATIENCE, 11)


def test_without_validation_part_the_chosen_models_are_trained_on_everything(small_parts):
    parts = Parts(small_parts.X_train, small_parts.y_train, small_parts.X_test, small_parts.y_test)
    record = train_path(parameters("lr-multi", tol=1e-6), parts, ignore)
    assert all("test" not in point for point in record["points"])
    chosen = record["chosen"]["1"]
    alone = TopKClassifier("entropy", C=chosen["C"], tol=1e-6, fit_intercept=False)
    alone.fit(parts.X_train, parts.y_train)
    assert chosen["primal"] == pytest.approx(alone.result_.primal, rel=1e-5)
    X, y, X_val, _ = parts.for_selection(seed=0)
    assert X.shape[0] + X_val.shape[0] == 240
    assert X_val.shape[0] == 48
    assert set(y) == set(parts.y_train)


def test_progress_grows_to_one(small_parts):
    shares = []
    train_path(parameters("lr-multi", max_epochs=5), small_parts, shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1.0


def test_the_range_is_the_papers():
    assert 10 ** (EXPONENTS[0] / 2) == pytest.approx(1e-5)
    assert 10 ** (EXPONENTS[-1] / 2) == pytest.approx(1e3)
    assert EXTENDED_EXPONENTS[0] < EXPONENTS[0]
    assert EXTENDED_EXPONENTS[1] > EXPONENTS[-1]


# The paper's own numbers, with C among those that validation prefers.
@pytest.mark.parametrize("method", ["lr-multi", "smooth-topk-svm:1", "lr-ova"])
def test_letter_agrees_with_the_paper(method):
    record = train_path(
        parameters(method, tol=1e-3, exponents=(0, 1, 2, 3), extended_exponents=(0, 3)),
        letter_parts(),
        ignore,
    )
    for k in KS:
        ours = record["chosen"][str(k)]["test"][k - 1]
        assert ours == pytest.approx(paper.accuracy("letter", method, k), abs=0.7)


def test_every_method_of_the_paper_has_a_classifier():
    for dataset in paper.datasets():
        for method in paper.methods(dataset):
            model = classifier(method)
            family, k = paper.split_method(method)
            assert (model.loss, model.k) == (LOSSES[family], k)
            assert model.fit_intercept is False
            assert relative_cost(method) > 0
            assert kernels_of(method)
    assert kernels_of("topk-svm:3") == kernels_of("smooth-topk-svm:1") != kernels_of("lr-multi")
